/*
 * The reference trace R1: a stream of requests with the shape of the paper's
 * workload (section 5.2), made by a generator, so that figures of an allocator
 * can be compared to the page without a recording.
 *
 *     boot     100 programs start, and files are found
 *     spike    256 processes at once, which end in random order
 *     find     3000 files are looked at, each by a process of its own
 *     kenbus   20000 steps of a development load
 *
 * A mark ends each. Blocks have numbers here, as in the description, and slots
 * in the trace.
 */
#include "mm/others/tests/r1.h"
#include "kernel/lib/string.h"
#include "mm/platform.h"

#define INTERVAL (2 * TRACE_UNITS)

const struct trace_cache r1_cache[R1_CACHES] = {
    {.cache_name = "proc", .cache_size = 476},
    {.cache_name = "thread", .cache_size = 228},
    {.cache_name = "vmspace", .cache_size = 92},
    {.cache_name = "region", .cache_size = 44},
    {.cache_name = "file", .cache_size = 36},
    {.cache_name = "fdtab", .cache_size = 148},
    {.cache_name = "pipe", .cache_size = 120},
    {.cache_name = "inode", .cache_size = 300},
    {.cache_name = "dentry", .cache_size = 84},
    {.cache_name = "cred", .cache_size = 60},
    {.cache_name = "timer", .cache_size = 28},
    {.cache_name = "bufhdr", .cache_size = 52},
};

static uint32_t rnd(struct r1 *r, uint32_t n)
{
    r->r1_random = r->r1_random * 1664525 + 1013904223;
    return (r->r1_random >> 16) % n;
}

static void note(struct r1 *r, char op, uint32_t id, uint32_t size,
                 uint8_t kind)
{
    uint8_t record[10] = {(uint8_t)op};

    memcpy(record + 1, &id, sizeof(id));
    memcpy(record + 5, &size, sizeof(size));
    record[9] = kind;
    for (size_t i = 0; i < sizeof(record); i++)
        r->r1_hash = (r->r1_hash ^ record[i]) * 0x01000193;
    r->r1_events++;
}

static uint32_t put(struct r1 *r, enum trace_op op, uint32_t operand)
{
    r->r1_event.event_op = op;
    r->r1_event.event_operand = operand;
    return r->r1_sink(r, &r->r1_event);
}

/* A block for `e`, which nothing frees if it is NULL. */
static struct r1_block add(struct r1 *r, struct r1_elem *e, uint32_t at,
                           uint32_t size, uint8_t kind)
{
    struct r1_block block = {.block_id = ++r->r1_allocs, .block_slot = at};

    note(r, 'A', block.block_id, size, kind);
    if (e != NULL) {
        struct r1_block *b = r->r1_unused;

        MM_ASSERT(b != NULL);
        r->r1_unused = b->block_next;
        *b = block;
        if (e->elem_ids++ == 0)
            e->elem_first = b;
        else
            e->elem_last->block_next = b;
        e->elem_last = b;
    }
    return block;
}

/* An object of a cache, and untyped memory. */
static struct r1_block c(struct r1 *r, struct r1_elem *e, uint8_t kind)
{
    return add(r, e, put(r, TRACE_CACHE_ALLOC, kind),
               r1_cache[kind - 1].cache_size, kind);
}

static struct r1_block g(struct r1 *r, struct r1_elem *e, uint32_t size)
{
    return add(r, e, put(r, TRACE_ALLOC, size), size, 0);
}

static void f(struct r1 *r, struct r1_block b)
{
    note(r, 'F', b.block_id, 0, 0);
    r->r1_frees++;
    put(r, TRACE_FREE, b.block_slot);
}

static void f_each(struct r1 *r, struct r1_elem *e)
{
    for (; e->elem_ids > 0; e->elem_ids--) {
        struct r1_block *b = e->elem_first;

        f(r, *b);
        e->elem_first = b->block_next;
        b->block_next = r->r1_unused;
        r->r1_unused = b;
    }
}

static void k(struct r1 *r, unsigned intervals)
{
    while (intervals-- > 0) {
        note(r, 'K', 0, 0, 0);
        r->r1_event.event_time += INTERVAL;
        put(r, TRACE_IDLE, 0);
    }
}

static struct r1_elem *append(struct r1_vector *v)
{
    MM_ASSERT(v->vector_elems < R1_LISTS);
    v->vector_elem[v->vector_elems].elem_ids = 0;
    return &v->vector_elem[v->vector_elems++];
}

static void take(struct r1 *r, struct r1_vector *v, unsigned i)
{
    f_each(r, &v->vector_elem[i]);
    v->vector_elems--;
    memmove(&v->vector_elem[i], &v->vector_elem[i + 1],
            (v->vector_elems - i) * sizeof(struct r1_elem));
}

static void several(struct r1 *r, struct r1_elem *e, unsigned n, uint8_t kind)
{
    while (n-- > 0)
        c(r, e, kind);
}

/* A process with its threads and regions. */
static void pnew(struct r1 *r, struct r1_elem *e)
{
    static const uint8_t kinds[] = {1, 2, 3, 6, 10, 11, 4, 4, 4, 4, 4};

    for (size_t i = 0; i < sizeof(kinds); i++)
        c(r, e, kinds[i]);
    g(r, e, 24 + rnd(r, 100));
}

static void boot(struct r1 *r)
{
    for (int i = 0; i < 100; i++) {
        struct r1_block a, n;

        pnew(r, NULL);
        a = g(r, NULL, 256 + rnd(r, 2500));
        for (int j = 0; j < 8; j++)
            g(r, NULL, 16 + rnd(r, 500));
        several(r, NULL, 3, 5);
        f(r, a);
        for (int j = 0; j < 15; j++) {
            several(r, NULL, 1, 8);
            several(r, NULL, 1, 9);
            n = g(r, NULL, 1024);
            if (rnd(r, 2) != 0)
                c(r, NULL, 12);
            f(r, n);
        }
    }
    k(r, 1);
}

static void spike(struct r1 *r)
{
    for (int i = 0; i < 256; i++) {
        struct r1_elem *p = append(&r->r1_programs);

        pnew(r, p);
        c(r, p, 7);
        several(r, p, 2, 5);
        c(r, p, 8);
        g(r, p, 64 + rnd(r, 64));
        if (i % 16 == 0) {
            c(r, NULL, 9);
            g(r, NULL, 40 + rnd(r, 200));
        }
    }
    k(r, 30);
    while (r->r1_programs.vector_elems != 0) {
        take(r, &r->r1_programs, rnd(r, r->r1_programs.vector_elems));
        if (r->r1_programs.vector_elems % 16 == 0)
            g(r, NULL, 40 + rnd(r, 200));
    }
    k(r, 15);
}

static void add_file(struct r1 *r)
{
    struct r1_elem *e = append(&r->r1_files);

    c(r, e, 8);
    c(r, e, 9);
}

static void find(struct r1 *r)
{
    struct r1_block n, a, b;

    for (unsigned i = 0; i < 3000 / r->r1_part; i++) {
        n = g(r, NULL, 1024);
        add_file(r);
        if (r->r1_files.vector_elems > 400)
            take(r, &r->r1_files, rnd(r, 60));
        pnew(r, &r->r1_program);
        a = g(r, NULL, 64 + rnd(r, 3000));
        several(r, &r->r1_opened, 3, 5);
        b = c(r, NULL, 12);
        f(r, n);
        f(r, a);
        f_each(r, &r->r1_opened);
        f_each(r, &r->r1_program);
        if (rnd(r, 8) != 0)
            f(r, b);
        if (i % 40 == 0)
            k(r, 1);
    }
    while (r->r1_files.vector_elems > 200)
        take(r, &r->r1_files, rnd(r, r->r1_files.vector_elems));
    k(r, 15);
}

static void start_program(struct r1 *r)
{
    struct r1_elem *p = append(&r->r1_programs);

    pnew(r, p);
    several(r, p, rnd(r, 4) + 1, 5);
    g(r, p, 64 + rnd(r, 2000));
    if (r->r1_programs.vector_elems > 64 + rnd(r, 192))
        take(r, &r->r1_programs, rnd(r, r->r1_programs.vector_elems));
}

static void use_buffers(struct r1 *r)
{
    struct r1_block a = g(r, NULL, 1024);
    struct r1_block b = g(r, NULL, 100 + rnd(r, 400));

    f(r, a);
    f(r, b);
}

static void kenbus_step(struct r1 *r, uint32_t choice)
{
    struct r1_elem *q = &r->r1_others.vector_elem[0];

    if (choice < 40) {
        start_program(r);
    } else if (choice < 58) {
        if (r->r1_programs.vector_elems != 0)
            take(r, &r->r1_programs, rnd(r, r->r1_programs.vector_elems));
    } else if (choice < 70) {
        add_file(r);
        if (r->r1_files.vector_elems > 300)
            take(r, &r->r1_files, rnd(r, r->r1_files.vector_elems));
    } else if (choice < 85) {
        g(r, q, 16 + rnd(r, 600));
        if (q->elem_ids > 200)
            f_each(r, q);
    } else if (choice < 95) {
        use_buffers(r);
    } else if (r->r1_programs.vector_elems != 0) {
        struct r1_vector *v = &r->r1_programs;
        struct r1_elem *last = &v->vector_elem[v->vector_elems - 1];

        c(r, last, 7);
        several(r, last, 2, 5);
    }
}

static void kenbus(struct r1 *r)
{
    for (unsigned s = 0; s < 20000 / r->r1_part; s++) {
        uint32_t choice = rnd(r, 100);

        kenbus_step(r, choice);
        if (choice == 0)
            g(r, NULL, 16 + rnd(r, 240));
        if (s % 200 == 0)
            k(r, 1);
    }
    while (r->r1_programs.vector_elems != 0)
        take(r, &r->r1_programs, 0);
    f_each(r, &r->r1_others.vector_elem[0]);
    k(r, 15);
}

void r1_run(struct r1 *r, uint32_t seed, unsigned part)
{
    static void (*const phase[])(struct r1 *) = {boot, spike, find, kenbus};

    *r = (struct r1){.r1_sink = r->r1_sink,
                     .r1_own = r->r1_own,
                     .r1_random = seed,
                     .r1_hash = 0x811c9dc5,
                     .r1_part = part};
    for (size_t i = 0; i < R1_BLOCKS; i++) {
        r->r1_block[i].block_next = r->r1_unused;
        r->r1_unused = &r->r1_block[i];
    }
    for (uint32_t i = 0; i < ARRAY_SIZE(phase); i++) {
        phase[i](r);
        note(r, 'M', i + 1, 0, 0);
        put(r, TRACE_MARK, i + 1);
    }
}
