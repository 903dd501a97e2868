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

#define IDS      210725 /* allocations of the whole trace */
#define ELEMS    512    /* in a list, and in each of its elements */
#define INTERVAL (2 * TRACE_UNITS)

struct r1 r1;

static struct trace_writer *writer;
static struct trace_event event; /* the last */
static uint32_t slot[IDS + 1];   /* by number */

static const struct trace_cache cache[] = {
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

struct elem {
    unsigned elem_ids;
    uint32_t elem_id[ELEMS];
};

struct vector {
    unsigned vector_elems;
    struct elem vector_elem[ELEMS];
};

static struct vector programs, files, others;

static uint32_t rnd(uint32_t n)
{
    r1.r1_random = r1.r1_random * 1664525 + 1013904223;
    return (r1.r1_random >> 16) % n;
}

static void note(char op, uint32_t id, uint32_t size, uint8_t kind)
{
    uint8_t record[10] = {(uint8_t)op};

    memcpy(record + 1, &id, sizeof(id));
    memcpy(record + 5, &size, sizeof(size));
    record[9] = kind;
    for (size_t i = 0; i < sizeof(record); i++)
        r1.r1_hash = (r1.r1_hash ^ record[i]) * 0x01000193;
    r1.r1_events++;
}

static uint32_t put(enum trace_op op, uint32_t operand)
{
    event.event_op = op;
    event.event_operand = operand;
    return trace_put(writer, &event);
}

static uint32_t add(struct elem *e, uint32_t at, uint32_t size, uint8_t kind)
{
    uint32_t id = ++r1.r1_allocs;

    MM_ASSERT(id <= IDS);
    note('A', id, size, kind);
    slot[id] = at;
    if (e != NULL) {
        MM_ASSERT(e->elem_ids < ELEMS);
        e->elem_id[e->elem_ids++] = id;
    }
    return id;
}

/* An object of a cache, and untyped memory. */
static uint32_t c(struct elem *e, uint8_t kind)
{
    return add(e, put(TRACE_CACHE_ALLOC, kind), cache[kind - 1].cache_size,
               kind);
}

static uint32_t g(struct elem *e, uint32_t size)
{
    return add(e, put(TRACE_ALLOC, size), size, 0);
}

static void f(uint32_t id)
{
    note('F', id, 0, 0);
    r1.r1_frees++;
    put(TRACE_FREE, slot[id]);
}

static void f_each(struct elem *e)
{
    for (unsigned i = 0; i < e->elem_ids; i++)
        f(e->elem_id[i]);
    e->elem_ids = 0;
}

static void k(unsigned intervals)
{
    while (intervals-- > 0) {
        note('K', 0, 0, 0);
        event.event_time += INTERVAL;
        put(TRACE_IDLE, 0);
    }
}

static struct elem *append(struct vector *v)
{
    MM_ASSERT(v->vector_elems < ELEMS);
    v->vector_elem[v->vector_elems].elem_ids = 0;
    return &v->vector_elem[v->vector_elems++];
}

static void take(struct vector *v, unsigned i)
{
    f_each(&v->vector_elem[i]);
    v->vector_elems--;
    memmove(&v->vector_elem[i], &v->vector_elem[i + 1],
            (v->vector_elems - i) * sizeof(struct elem));
}

static void several(struct elem *e, unsigned n, uint8_t kind)
{
    while (n-- > 0)
        c(e, kind);
}

/* A process with its threads and regions. */
static void pnew(struct elem *e)
{
    static const uint8_t kinds[] = {1, 2, 3, 6, 10, 11, 4, 4, 4, 4, 4};

    for (size_t i = 0; i < sizeof(kinds); i++)
        c(e, kinds[i]);
    g(e, 24 + rnd(100));
}

static void boot(void)
{
    for (int i = 0; i < 100; i++) {
        uint32_t a, n;

        pnew(NULL);
        a = g(NULL, 256 + rnd(2500));
        for (int j = 0; j < 8; j++)
            g(NULL, 16 + rnd(500));
        several(NULL, 3, 5);
        f(a);
        for (int j = 0; j < 15; j++) {
            several(NULL, 1, 8);
            several(NULL, 1, 9);
            n = g(NULL, 1024);
            if (rnd(2) != 0)
                c(NULL, 12);
            f(n);
        }
    }
    k(1);
}

static void spike(void)
{
    for (int i = 0; i < 256; i++) {
        struct elem *p = append(&programs);

        pnew(p);
        c(p, 7);
        several(p, 2, 5);
        c(p, 8);
        g(p, 64 + rnd(64));
        if (i % 16 == 0) {
            c(NULL, 9);
            g(NULL, 40 + rnd(200));
        }
    }
    k(30);
    while (programs.vector_elems != 0) {
        take(&programs, rnd(programs.vector_elems));
        if (programs.vector_elems % 16 == 0)
            g(NULL, 40 + rnd(200));
    }
    k(15);
}

static void add_file(void)
{
    struct elem *e = append(&files);

    c(e, 8);
    c(e, 9);
}

static void find(void)
{
    static struct elem opened, program;
    uint32_t n, a, b;

    for (int i = 0; i < 3000; i++) {
        n = g(NULL, 1024);
        add_file();
        if (files.vector_elems > 400)
            take(&files, rnd(60));
        pnew(&program);
        a = g(NULL, 64 + rnd(3000));
        several(&opened, 3, 5);
        b = c(NULL, 12);
        f(n);
        f(a);
        f_each(&opened);
        f_each(&program);
        if (rnd(8) != 0)
            f(b);
        if (i % 40 == 0)
            k(1);
    }
    while (files.vector_elems > 200)
        take(&files, rnd(files.vector_elems));
    k(15);
}

static void start_program(void)
{
    struct elem *p = append(&programs);

    pnew(p);
    several(p, rnd(4) + 1, 5);
    g(p, 64 + rnd(2000));
    if (programs.vector_elems > 64 + rnd(192))
        take(&programs, rnd(programs.vector_elems));
}

static void use_buffers(void)
{
    uint32_t a = g(NULL, 1024);
    uint32_t b = g(NULL, 100 + rnd(400));

    f(a);
    f(b);
}

static void kenbus_step(uint32_t r)
{
    struct elem *q = &others.vector_elem[0];

    if (r < 40) {
        start_program();
    } else if (r < 58) {
        if (programs.vector_elems != 0)
            take(&programs, rnd(programs.vector_elems));
    } else if (r < 70) {
        add_file();
        if (files.vector_elems > 300)
            take(&files, rnd(files.vector_elems));
    } else if (r < 85) {
        g(q, 16 + rnd(600));
        if (q->elem_ids > 200)
            f_each(q);
    } else if (r < 95) {
        use_buffers();
    } else if (programs.vector_elems != 0) {
        struct elem *last = &programs.vector_elem[programs.vector_elems - 1];

        c(last, 7);
        several(last, 2, 5);
    }
}

static void kenbus(void)
{
    for (int s = 0; s < 20000; s++) {
        uint32_t r = rnd(100);

        kenbus_step(r);
        if (r == 0)
            g(NULL, 16 + rnd(240));
        if (s % 200 == 0)
            k(1);
    }
    while (programs.vector_elems != 0)
        take(&programs, 0);
    f_each(&others.vector_elem[0]);
    k(15);
}

void r1_write(struct trace_writer *w)
{
    static void (*const phase[])(void) = {boot, spike, find, kenbus};

    writer = w;
    event = (struct trace_event){0};
    programs.vector_elems = files.vector_elems = 0;
    others.vector_elem[0].elem_ids = 0;
    r1 = (struct r1){.r1_random = 12345, .r1_hash = 0x811c9dc5};
    trace_begin(w, TRACE_TIMED | TRACE_SYNTHETIC, 1, cache, ARRAY_SIZE(cache));
    for (uint32_t i = 0; i < ARRAY_SIZE(phase); i++) {
        phase[i]();
        note('M', i + 1, 0, 0);
        put(TRACE_MARK, i + 1);
    }
}
