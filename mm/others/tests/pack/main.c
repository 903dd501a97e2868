/*
 * Packs the traces that a kernel has recorded, from the memory of its machine.
 *
 *     pack MEMORY ADDRESS FOLDER
 *
 * MEMORY is the file that was the machine's memory, ADDRESS the physical
 * address of the recording in it (tools/workshop/trace/recording.h). Each trace
 * that was saved becomes FOLDER/NAME.ktr.
 *
 * A trace begins with an allocation of each block that was there before. To
 * know them, all records are read from the first: twice, for whether a block
 * was there until the trace began is known when its free is found, or the end.
 */
#include "mm/platform.h"
#include "mm/others/tests/trace.h"
#include "tools/workshop/trace/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NONE   UINT32_MAX
#define CHAINS 65536u

static const uint8_t *memory;
static size_t memory_size;
static const struct recording *r;
static uint32_t records; /* that are there; the others are lost */

/* By record: the next in its chain; of an allocation, its free, of a free, its
 * allocation; and the slot. */
static uint32_t *next, *partner, *slot;
static uint32_t chain[CHAINS]; /* live blocks by address */

static struct {
    uint32_t own_addr; /* 0: destroyed, or not created yet */
} own[RECORDING_CACHES];

/* For trace.c, too. */
void mm_panic(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fputs("pack: ", stderr);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

static void *get_room(size_t count, size_t size)
{
    void *room = calloc(count + 1, size);

    if (room == NULL)
        mm_panic("no memory for %zu records", count);
    return room;
}

/* ---- the recording ------------------------------------------------------ */

static const void *physical(uint64_t address, size_t size)
{
    if (address > memory_size || memory_size - address < size)
        mm_panic("damaged: 0x%llx is outside of memory",
                 (unsigned long long)address);
    return memory + address;
}

static const struct record *record_at(uint32_t n)
{
    const struct record *block =
        (const void *)(memory + r->recording_block[n / RECORDS_IN_BLOCK]);

    return &block[n % RECORDS_IN_BLOCK];
}

static uint32_t caches_kept(void)
{
    return MIN(r->recording_caches, (uint32_t)RECORDING_CACHES);
}

static void check_names(void)
{
    for (uint32_t i = 0; i < caches_kept(); i++)
        if (r->recording_cache[i].recorded_name[RECORDING_NAME - 1] != '\0')
            mm_panic("damaged: cache %u", i + 1);
    for (uint32_t i = 0; i < r->recording_traces; i++) {
        const struct recorded_trace *t = &r->recording_trace[i];
        const char *name = t->recorded_name;

        if (name[0] == '\0' || name[RECORDING_NAME - 1] != '\0' ||
            strchr(name, '/') != NULL || t->recorded_first > t->recorded_end ||
            t->recorded_end > r->recording_count)
            mm_panic("damaged: trace %u", i + 1);
    }
}

static void check_records(void)
{
    for (uint32_t i = 0; i < r->recording_room / RECORDS_IN_BLOCK; i++)
        physical(r->recording_block[i], RECORD_BLOCK);
    for (uint32_t i = 0; i < records; i++) {
        const struct record *e = record_at(i);

        if (e->record_op == TRACE_END || e->record_op > RECORD_CREATE ||
            e->record_cpu > UINT8_MAX ||
            (e->record_op == RECORD_CREATE && e->record_addr == 0))
            mm_panic("damaged: record %u", i + 1);
    }
}

static void open_recording(const char *name, const char *address)
{
    int file = open(name, O_RDONLY);
    struct stat st;
    char *rest;

    if (file < 0 || fstat(file, &st) != 0)
        mm_panic("%s: %s", name, strerror(errno));
    memory_size = (size_t)st.st_size;
    memory = memory_size == 0
                 ? NULL
                 : mmap(NULL, memory_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (memory == MAP_FAILED)
        mm_panic("%s: %s", name, strerror(errno));
    r = physical(strtoull(address, &rest, 0), sizeof(*r));
    if (*rest != '\0' || r->recording_magic != RECORDING_MAGIC)
        mm_panic("no recording is at %s", address);
    if (r->recording_room > RECORDING_BLOCKS * RECORDS_IN_BLOCK ||
        r->recording_traces > RECORDING_TRACES)
        mm_panic("damaged: its counts");
    records = MIN(r->recording_count, r->recording_room);
    check_names();
    check_records();
    next = get_room(records, sizeof(*next));
    partner = get_room(records, sizeof(*partner));
    slot = get_room(records, sizeof(*slot));
}

/* ---- which free is of which allocation ---------------------------------- */

static bool is_alloc(const struct record *e)
{
    return e->record_op == TRACE_CACHE_ALLOC || e->record_op == TRACE_ALLOC;
}

static uint32_t *chain_of(uint32_t addr)
{
    return &chain[addr / 8 % CHAINS];
}

/* The link to the live block at an address, or to NONE. */
static uint32_t *find(uint32_t addr)
{
    uint32_t *link = chain_of(addr);

    while (*link != NONE && record_at(*link)->record_addr != addr)
        link = &next[*link];
    return link;
}

static void note_alloc(uint32_t n)
{
    uint32_t addr = record_at(n)->record_addr;

    if (*find(addr) != NONE)
        mm_panic("damaged: record %u allocates 0x%x, which is allocated", n + 1,
                 addr);
    next[n] = *chain_of(addr);
    *chain_of(addr) = n;
}

static void note_free(uint32_t n)
{
    uint32_t *link = find(record_at(n)->record_addr);

    if (*link == NONE)
        mm_panic("damaged: record %u frees 0x%x, which is not allocated", n + 1,
                 record_at(n)->record_addr);
    partner[n] = *link;
    partner[*link] = n;
    *link = next[*link];
}

static void pair_records(void)
{
    memset(chain, 0xff, sizeof(chain));
    memset(partner, 0xff, records * sizeof(*partner));
    for (uint32_t n = 0; n < records; n++)
        if (is_alloc(record_at(n)))
            note_alloc(n);
        else if (record_at(n)->record_op == TRACE_FREE)
            note_free(n);
}

/* ---- a trace ------------------------------------------------------------ */

/* The number of the cache at an address, counted from 1; 0: it is not one of
 * those that are kept. */
static uint32_t cache_at(uint32_t addr)
{
    for (uint32_t i = 0; i < caches_kept(); i++)
        if (own[i].own_addr == addr)
            return i + 1;
    return 0;
}

static void follow_caches(const struct record *e)
{
    uint32_t cache;

    if (e->record_op == RECORD_CREATE) {
        if (e->record_what < caches_kept())
            own[e->record_what].own_addr = e->record_addr;
        return;
    }
    cache = cache_at(e->record_addr);
    if (e->record_op == TRACE_DESTROY && cache != 0)
        own[cache - 1].own_addr = 0;
}

static bool is_of_cache(const struct record *e)
{
    return e->record_op == TRACE_CACHE_ALLOC ||
           e->record_op == TRACE_CACHE_FAIL || e->record_op == TRACE_DESTROY;
}

/* Adds the event of a record. False: its cache is none of those that are
 * kept. */
static bool put_record(struct trace_writer *w, uint32_t n, uint64_t time)
{
    const struct record *e = record_at(n);
    struct trace_event event = {.event_op = e->record_op,
                                .event_cpu = (uint8_t)e->record_cpu,
                                .event_time = time,
                                .event_operand = e->record_what};

    if (is_of_cache(e))
        event.event_operand = cache_at(e->record_what);
    else if (e->record_op == TRACE_FREE)
        event.event_operand = slot[partner[n]];
    if (is_of_cache(e) && event.event_operand == 0)
        return false;
    if (event.event_operand == NONE && e->record_op == TRACE_FREE)
        return true; /* of an event that is lost */
    slot[n] = trace_put(w, &event);
    return true;
}

/* Returns how many events are lost for want of their cache. */
static uint32_t put_records(struct trace_writer *w, uint32_t first,
                            uint32_t end)
{
    uint64_t time = 0;
    uint32_t lost = 0;

    memset(own, 0, sizeof(own));
    memset(slot, 0xff, records * sizeof(*slot));
    for (uint32_t n = 0; n < end; n++) {
        const struct record *e = record_at(n);

        if (n >= first && e->record_op != RECORD_CREATE) {
            /* (processors read the clock after they have got a number) */
            time = MAX(time, e->record_us - record_at(first)->record_us);
            lost += !put_record(w, n, time);
        } else if (is_alloc(e) && partner[n] >= first) {
            lost += !put_record(w, n, 0);
        }
        follow_caches(e);
    }
    return lost;
}

static void begin(struct trace_writer *w, uint32_t end)
{
    static struct trace_cache cache[RECORDING_CACHES];
    uint32_t cpus = 1;

    for (uint32_t n = 0; n < end; n++)
        cpus = MAX(cpus, record_at(n)->record_cpu + 1u);
    for (uint32_t i = 0; i < caches_kept(); i++) {
        const struct recorded_cache *c = &r->recording_cache[i];

        strcpy(cache[i].cache_name, c->recorded_name);
        cache[i].cache_size = c->recorded_size;
        cache[i].cache_align = c->recorded_align;
        cache[i].cache_flags = c->recorded_flags;
    }
    trace_begin(w, TRACE_TIMED | (cpus > 1 ? TRACE_CPUS : 0), cpus, cache,
                caches_kept());
}

/* Returns the exit status: 1 if events are lost. */
static int pack(const struct recorded_trace *t, const char *folder)
{
    uint32_t end = MIN(t->recorded_end, records);
    uint32_t lost = t->recorded_end - end;
    struct trace_writer w;
    struct trace check;
    const char *wrong;
    char name[4096];
    uint8_t *bytes;
    size_t size;

    begin(&w, end);
    lost += put_records(&w, t->recorded_first, end);
    trace_lose(&w, lost);
    bytes = trace_end(&w, &size);
    wrong = trace_open(&check, bytes, size);
    if (wrong != NULL)
        mm_panic("%s: %s", t->recorded_name, wrong);
    snprintf(name, sizeof(name), "%s/%s.ktr", folder, t->recorded_name);
    if (!trace_store(name, bytes, size))
        mm_panic("%s: %s", name, strerror(errno));
    printf("%s: %u events, %u allocations, %u frees\n", name,
           check.trace_header.header_events, check.trace_header.header_allocs,
           check.trace_header.header_frees);
    fflush(stdout);
    if (lost != 0)
        fprintf(stderr,
                "pack: %s: %u more events are lost, so it has no figures: the "
                "recorder had memory for %u\n",
                name, lost, r->recording_room);
    trace_close(&check);
    free(bytes);
    return lost != 0;
}

int main(int argc, char **argv)
{
    int failed = 0;

    if (argc != 4) {
        fputs("usage: pack MEMORY ADDRESS FOLDER\n", stderr);
        return 2;
    }
    open_recording(argv[1], argv[2]);
    if (r->recording_traces == 0)
        mm_panic("no trace was saved");
    pair_records();
    for (uint32_t i = 0; i < r->recording_traces; i++)
        failed |= pack(&r->recording_trace[i], argv[3]);
    return failed;
}
