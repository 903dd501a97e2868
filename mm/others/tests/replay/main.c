/*
 * Replays a trace on every allocator, each in a process of its own.
 *
 *     replay [-jo] [-c EVENTS] [-a ALLOCATOR] [FILE]
 *                                        held memory and waste at each mark
 *     replay -l [FILE]                   lists the trace's events
 *     replay -w FILE                     writes the reference trace R1
 *
 * Without a FILE the trace is R1. -j prints a line of JSON for each allocator,
 * with the parts of the waste and what the allocator counts of its own work; -c
 * checks every invariant after so many events, besides at each mark; -a replays
 * on one allocator only, which is the way to yours (mm/others/yours.c); with -o
 * SLUB is that of 2014. A run prints the same each time.
 */
#include "mm/others/linux_slab.h"
#include "mm/others/linux_slub.h"
#include "mm/others/slmb.h"
#include "mm/others/slob.h"
#include "mm/others/sunos.h"
#include "mm/others/svr4.h"
#include "mm/others/tests/r1.h"
#include "mm/others/tests/replay.h"
#include "mm/others/tests/replay/slab.h"
#include "mm/page.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 16384 /* of each allocator's arena: 64 MiB */
#define MARKS 16

/* ---- the rows of the table ---------------------------------------------- */

static void small_header(void)
{
    slob_header = 4;
}

static void keep_pages(void)
{
    sunos_at_once = false;
}

static void leftmost(void)
{
    sunos_policy = SUNOS_LEFTMOST;
}

static void nodes_inside(void)
{
    sunos_inline = true;
}

static void eager(void)
{
    svr4_eager = true;
}

static void four_processors(void)
{
    other_cpus = 4;
}

static struct other_stat ran; /* when all events were over */

/* What an allocator has counted of its own work then. */
static char counts[400];
static size_t counts_length;

static void add_count(const char *name, uint64_t value)
{
    counts_length += (size_t)snprintf(
        counts + counts_length, sizeof(counts) - counts_length, "%s\"%s\":%llu",
        counts_length == 0 ? "" : ",", name, (unsigned long long)value);
}

static void count_slob(void)
{
    add_count("pages_scanned", slob_stat.stat_pages_scanned);
    add_count("blocks_scanned", slob_stat.stat_blocks_scanned);
}

static void count_sunos(void)
{
    add_count("visits", sunos_stat.stat_visits);
    add_count("relinks", sunos_stat.stat_relinks);
    add_count("nodes", sunos_stat.stat_nodes);
    add_count("depth", sunos_depth());
}

static void count_slmb(void)
{
    add_count("pages_scanned", slob_stat.stat_pages_scanned);
}

static void count_linux_slab(void)
{
    add_count("alloc_hit", ran.stat_allocs - lslab_stat.stat_alloc_miss);
    add_count("alloc_miss", lslab_stat.stat_alloc_miss);
    add_count("free_hit", ran.stat_frees - lslab_stat.stat_free_miss);
    add_count("free_miss", lslab_stat.stat_free_miss);
}

static void count_linux_slub(void)
{
    add_count("alloc_fast", ran.stat_allocs - slub_stat.stat_alloc_slow);
    add_count("alloc_slow", slub_stat.stat_alloc_slow);
    add_count("refill", slub_stat.stat_refill);
    add_count("from_partial", slub_stat.stat_from_partial);
    add_count("new", slub.grown);
    add_count("free_fast", ran.stat_frees - slub_stat.stat_free_slow);
    add_count("free_slow", slub_stat.stat_free_slow);
    add_count("free_frozen", slub_stat.stat_free_frozen);
    add_count("cpu_free", slub_stat.stat_cpu_free);
    add_count("drain", slub_stat.stat_cpu_drain);
    add_count("returned", slub.returned);
    add_count("aliases", slub_stat.stat_aliases);
}

static void count_svr4(void)
{
    uint64_t splits = 0, lazy = 0, reclaiming = 0, accelerated = 0;

    for (int i = 0; i < SVR4_CLASSES; i++) {
        splits += svr4_class[i].class_splits;
        lazy += svr4_class[i].class_lazy;
        reclaiming += svr4_class[i].class_reclaiming;
        accelerated += svr4_class[i].class_accelerated;
    }
    add_count("splits", splits);
    add_count("lazy", lazy);
    add_count("reclaiming", reclaiming);
    add_count("accelerated", accelerated);
}

static const struct row {
    const char *row_name;
    const struct other_allocator *row_allocator;
    void (*row_set)(void);   /* its parameters; NULL: as they are */
    bool row_reclaims;       /* pressure before a mark's sample */
    void (*row_count)(void); /* NULL: no counts */
} rows[] = {
    {"slab", &slab_allocator, NULL, false, NULL},
    {"slab, reclaimed at each mark", &slab_allocator, NULL, true, NULL},
    {"sunos", &sunos_allocator, NULL, false, count_sunos},
    {"sunos, pages are kept", &sunos_allocator, keep_pages, false, count_sunos},
    {"sunos, leftmost", &sunos_allocator, leftmost, false, count_sunos},
    {"sunos, nodes inside", &sunos_allocator, nodes_inside, false, count_sunos},
    {"bsd", &bsd_allocator, NULL, false, NULL},
    {"svr4", &svr4_allocator, NULL, false, count_svr4},
    {"svr4, eager", &svr4_allocator, eager, false, count_svr4},
    {"slob, header 8", &slob_allocator, NULL, false, count_slob},
    {"slob, header 4", &slob_allocator, small_header, false, count_slob},
    {"slmb", &slmb_allocator, NULL, false, count_slmb},
    {"linux_slab", &linux_slab_allocator, NULL, false, count_linux_slab},
    {"linux_slab, 4 processors", &linux_slab_allocator, four_processors, false,
     count_linux_slab},
    {"linux_slub", &linux_slub_allocator, NULL, false, count_linux_slub},
    {"linux_slub, shrunk at marks", &linux_slub_allocator, NULL, true,
     count_linux_slub},
    {"linux_slub, 4 processors", &linux_slub_allocator, four_processors, false,
     count_linux_slub},
    {"yours", &yours_allocator, NULL, false, NULL},
};

/* ---- samples ------------------------------------------------------------ */

static const struct row *row;
static bool json;
static const char *only; /* the name of an allocator; NULL: all but yours */

static bool is_wanted(const struct row *r)
{
    return only == NULL ? r->row_allocator != &yours_allocator
                        : strcmp(r->row_allocator->op_name, only) == 0;
}
static struct other_stat sample[MARKS];
static unsigned samples;

static unsigned waste(const struct other_stat *st)
{
    size_t unused = st->stat_held - st->stat_requested;

    return st->stat_held == 0 ? 0
                              : (unsigned)((unused * 200 + st->stat_held) /
                                           (2 * st->stat_held));
}

static void __attribute__((noreturn, format(printf, 1, 2)))
fail(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fputs("replay: ", stderr);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

static struct other_stat take_sample(void)
{
    struct other_stat st;

    row->row_allocator->op_stat(&st);
    if (st.stat_held != st.stat_requested + st.stat_internal +
                            st.stat_external + st.stat_metadata)
        fail("%s: requested, internal, external and metadata bytes are not "
             "all of %zu",
             row->row_name, st.stat_held);
    return st;
}

static void at_mark(struct replay *r UNUSED, uint32_t mark UNUSED)
{
    if (row->row_reclaims && row->row_allocator->op_pressure != NULL)
        row->row_allocator->op_pressure();
    if (samples == MARKS)
        fail("more than %d marks", MARKS);
    sample[samples++] = take_sample();
}

static void print_json(const struct other_stat *end)
{
    printf("{\"row\":\"%s\",\"allocator\":\"%s\",\"peak\":%zu,"
           "\"residue\":%zu,\"allocs\":%llu,\"frees\":%llu,"
           "\"counts\":{%s},\"marks\":[",
           row->row_name, row->row_allocator->op_name, end->stat_peak,
           end->stat_held, (unsigned long long)ran.stat_allocs,
           (unsigned long long)ran.stat_frees, counts);
    for (unsigned i = 0; i < samples; i++)
        printf("%s{\"held\":%zu,\"requested\":%zu,\"internal\":%zu,"
               "\"external\":%zu,\"metadata\":%zu,\"waste\":%u}",
               i == 0 ? "" : ",", sample[i].stat_held, sample[i].stat_requested,
               sample[i].stat_internal, sample[i].stat_external,
               sample[i].stat_metadata, waste(&sample[i]));
    puts("]}");
}

static void print_text(const struct other_stat *end)
{
    printf("%-29s", row->row_name);
    for (unsigned i = 0; i < samples; i++)
        printf("%6zu%4u %%", sample[i].stat_held / 1024, waste(&sample[i]));
    printf("%8zu%8zu\n", end->stat_peak / 1024, end->stat_held / 1024);
}

static void print_heading(const struct trace *t)
{
    struct trace copy = *t;
    struct trace_event e;
    unsigned marks = 0;

    while (trace_next(&copy, &e))
        if (e.event_op == TRACE_MARK)
            printf(marks++ == 0 ? "%-29s%10s%u" : "%.0s%10s%u",
                   "KiB held, and waste, at", "mark ", e.event_operand);
    printf(marks == 0 ? "%-29s%8s%8s\n" : "%.0s%8s%8s\n", "", "peak", "freed");
}

/* ---- replays ------------------------------------------------------------ */

static const char *replay_row(struct trace *t, uint32_t check_each)
{
    static uintptr_t info[PAGES][SUPPLY_INFO_WORDS];
    static uint8_t used[PAGES];
    const struct other_allocator *a = row->row_allocator;
    struct supply pages;
    struct replay r;
    const char *wrong;

    supply_arena(&pages, aligned_alloc(MIB(4), PAGES * PAGE_SIZE), PAGES, info,
                 used);
    if (pages.supply_base == NULL)
        fail("no memory for %d pages", PAGES);
    if (row->row_set != NULL)
        row->row_set();
    a->op_init(&pages);
    replay_begin(&r, a, t);
    r.replay_mark = at_mark;
    r.replay_check_each = check_each;
    wrong = replay_run(&r);
    if (wrong != NULL)
        return wrong;
    ran = take_sample();
    if (row->row_count != NULL)
        row->row_count();
    return replay_end(&r);
}

/* After all was freed. */
static struct other_stat reclaimed(void)
{
    if (row->row_allocator->op_pressure != NULL)
        row->row_allocator->op_pressure();
    return take_sample();
}

static void replay_in_child(struct trace *t, uint32_t check_each)
{
    const char *wrong = replay_row(t, check_each);
    struct other_stat end;

    if (wrong != NULL)
        fail("%s: %s", row->row_name, wrong);
    end = reclaimed();
    if (json)
        print_json(&end);
    else
        print_text(&end);
    exit(0);
}

/* Returns the exit status: a row that fails leaves the others. */
static int replay_all(struct trace *t, uint32_t check_each)
{
    int failed = 0, status;

    if (t->trace_header.header_lost != 0)
        fail("the recorder lost %u events: the trace has no figures",
             t->trace_header.header_lost);
    if (!json)
        print_heading(t);
    for (row = rows; row < rows + ARRAY_SIZE(rows); row++) {
        pid_t child;

        if (!is_wanted(row))
            continue;
        fflush(stdout);
        child = fork();
        if (child == 0)
            replay_in_child(t, check_each);
        if (child < 0 || waitpid(child, &status, 0) < 0)
            fail("fork: %s", strerror(errno));
        if (WIFSIGNALED(status))
            fprintf(stderr, "replay: %s: signal %d\n", row->row_name,
                    WTERMSIG(status));
        failed |= status != 0;
    }
    return failed;
}

/* ---- the trace ---------------------------------------------------------- */

static uint8_t *read_file(const char *name, size_t *size)
{
    FILE *f = fopen(name, "rb");
    size_t room = MIB(1);
    uint8_t *bytes = malloc(room);

    if (f == NULL || bytes == NULL)
        fail("%s: %s", name, strerror(errno));
    *size = 0;
    for (size_t n; (n = fread(bytes + *size, 1, room - *size, f)) != 0;) {
        *size += n;
        if (*size == room) {
            room *= 2;
            bytes = realloc(bytes, room);
            if (bytes == NULL)
                fail("%s: %s", name, strerror(errno));
        }
    }
    if (ferror(f) || fclose(f) != 0)
        fail("%s: %s", name, strerror(errno));
    return bytes;
}

static uint8_t *make_r1(size_t *size)
{
    struct trace_writer w;

    r1_write(&w);
    return trace_end(&w, size);
}

static int write_r1(const char *name)
{
    size_t size;
    uint8_t *bytes = make_r1(&size);

    if (!trace_store(name, bytes, size))
        fail("%s: %s", name, strerror(errno));
    free(bytes);
    return 0;
}

/* A line for each cache: number, size, name, alignment, flags; and for each
 * event: what, microseconds, operand, slot of an allocation. */
static int list_events(struct trace *t)
{
    static const char *const name[TRACE_OPS] = {
        "end",  "cache_alloc", "alloc",    "free", "cache_fail",
        "fail", "mark",        "pressure", "idle", "destroy"};
    const struct trace_cache *c = t->trace_state.state_cache;
    struct trace_event e;

    for (uint32_t i = 1; i <= t->trace_header.header_caches; i++)
        printf("cache %u %u %s %u %u\n", i, c[i].cache_size, c[i].cache_name,
               c[i].cache_align, c[i].cache_flags);
    printf("units %u\n", t->trace_header.header_units);
    while (trace_next(t, &e))
        printf("%s %llu %u %u\n", name[e.event_op],
               (unsigned long long)e.event_time, e.event_operand, e.event_slot);
    return 0;
}

static const char usage[] = "usage: replay [-jo] [-c EVENTS] [-a ALLOCATOR] "
                            "[FILE] | -l [FILE] | -w FILE\n";

static bool is_allocator(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (strcmp(rows[i].row_allocator->op_name, name) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    unsigned long check_each = 20000;
    bool list = false, wrong = false;
    const char *why;
    struct trace t;
    uint8_t *bytes;
    size_t size;

    for (int option; (option = getopt(argc, argv, "jola:c:w:")) != -1;) {
        if (option == 'w')
            return write_r1(optarg);
        if (option == 'a')
            only = optarg;
        if (option == 'c')
            check_each = strtoul(optarg, NULL, 10);
        json |= option == 'j';
        slub_2014 |= option == 'o';
        list |= option == 'l';
        wrong |= option == '?' || (option == 'c' && check_each == 0);
    }
    if (wrong || argc > optind + 1) {
        fputs(usage, stderr);
        return 2;
    }
    if (only != NULL && !is_allocator(only))
        fail("there is no allocator %s", only);
    bytes =
        argv[optind] == NULL ? make_r1(&size) : read_file(argv[optind], &size);
    why = trace_open(&t, bytes, size);
    if (why != NULL)
        fail("%s: %s", argv[optind], why);
    return list ? list_events(&t) : replay_all(&t, (uint32_t)check_each);
}
