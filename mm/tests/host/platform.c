/*
 * The fake machine under mm/ in the host tests: memory, clock, checked locks, a
 * panic that a test can expect, and the printed text.
 */
#include "mm/tests/host/host.h"
#include "tools/workshop/ktest/ktest.h"
#include "tools/workshop/labs/missing.h"
#include "tools/test/budget.h"
#include "mm/buddy.h"
#include "mm/debug/debug.h"
#include "mm/kmem_impl.h"

#include <execinfo.h>
#include <sanitizer/asan_interface.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

char *host_arena;
uint64_t host_clock_ms;
bool (*host_wait)(void);
size_t mm_keep_most;
static size_t keep;
static bool (*refuses)(void);
uint64_t host_returns;
uint64_t host_locks_taken;
char host_printed[4096];

jmp_buf host_panic_jump;
bool host_panic_expected;
char host_panic_text[256];

/* ---- locks -------------------------------------------------------------- */

static struct host_task only_task;

struct host_task *host_self = &only_task;
const struct host_explorer *host_explorer;

static void lock_error(const char *what, const mm_lock_t *lock)
{
    const struct host_task *t = host_self;

    fprintf(stderr, "lock \"%s\" (rank %u): %s\n", lock->lock_name,
            lock->lock_rank, what);
    for (unsigned i = 0; i < t->task_locks; i++)
        fprintf(stderr, "  held: \"%s\" (rank %u)\n",
                t->task_lock[i]->lock_name, t->task_lock[i]->lock_rank);
    if (host_explorer != NULL)
        host_explorer->failed(what);
    abort();
}

void host_point(const char *what, const mm_lock_t *lock, const char *file,
                int line)
{
    if (host_explorer != NULL)
        host_explorer->point(what, lock, file, line);
}

void host_lock(mm_lock_t *lock, const char *file, int line)
{
    struct host_task *t = host_self;

    host_point("lock", lock, file, line);
    if (lock->lock_name == NULL || lock->lock_rank == 0)
        lock_error("was never initialised", lock);
    if (lock->lock_owner == t ||
        (lock->lock_owner != NULL && host_explorer == NULL))
        lock_error("is taken twice", lock);
    if (t->task_locks == HOST_LOCKS)
        lock_error("is one too many", lock);
    if (t->task_locks != 0 &&
        t->task_lock[t->task_locks - 1]->lock_rank >= lock->lock_rank)
        lock_error("is taken out of order", lock);
    while (lock->lock_owner != NULL)
        host_explorer->block(lock);
    lock->lock_owner = t;
    lock->lock_taken++;
    host_locks_taken++;
    t->task_lock[t->task_locks++] = lock;
    if (host_explorer != NULL)
        host_explorer->taken(lock, file, line);
}

void host_unlock(mm_lock_t *lock, const char *file, int line)
{
    struct host_task *t = host_self;

    if (lock->lock_owner != t)
        lock_error("is released but not held", lock);
    if (t->task_lock[t->task_locks - 1] != lock)
        lock_error("is not released last in, first out", lock);
    lock->lock_owner = NULL;
    t->task_locks--;
    host_point("unlock", lock, file, line);
}

void host_check_unlocked(const char *when)
{
    if (host_self->task_locks != 0)
        lock_error(when, host_self->task_lock[host_self->task_locks - 1]);
}

/* ---- magazines ---------------------------------------------------------- */

#if MM_MAGAZINES
void host_magazines(bool on)
{
    static bool off;

    if (off == !on)
        return;
    off = !on;
    (on ? kmem_mag_enable : kmem_mag_disable)();
}

void mm_cpu_enter(void)
{
    host_point("enters", NULL, __FILE__, __LINE__);
    host_check_unlocked("is held at mm_cpu_enter");
    if (host_self->task_inside)
        mm_panic("mm_cpu_enter is called twice");
    host_self->task_inside = true;
}

void mm_cpu_leave(void)
{
    host_check_unlocked("is held at mm_cpu_leave");
    if (!host_self->task_inside)
        mm_panic("mm_cpu_leave without mm_cpu_enter");
    host_self->task_inside = false;
    host_point("leaves", NULL, __FILE__, __LINE__);
}

unsigned mm_cpu_number(void)
{
    if (!host_self->task_inside)
        mm_panic("mm_cpu_number: the task may move to another processor");
    return host_cpu;
}

/* While no fiber runs, a test says on which processor it is. */
void mm_call_all(void (*fn)(void *arg), void *arg)
{
    uint32_t cpu = host_cpu;

    host_check_unlocked("is held at mm_call_all");
    if (host_self->task_inside)
        mm_panic("mm_call_all: interrupts are disabled");
    if (host_explorer != NULL && host_explorer->call(fn, arg))
        return;
    host_self->task_inside = true;
    for (host_cpu = 0; host_cpu < MM_CPUS_MAX; host_cpu++)
        fn(arg);
    host_self->task_inside = false;
    host_cpu = cpu;
}

bool mm_memory_low(void)
{
    return buddy_free_pages() < 16;
}
#endif

/* ---- memory, clock, waiting, printing ----------------------------------- */

size_t mm_keep(void)
{
    return refuses != NULL && refuses() ? page_count : keep;
}

void host_set_keep(size_t pages)
{
    keep = mm_keep_most = pages;
}

void host_set_refuses(bool (*fn)(void))
{
    refuses = fn;
    mm_keep_most = fn != NULL ? page_count : keep;
}

uint64_t mm_clock_ms(void)
{
    return host_clock_ms;
}

bool mm_wait_for_memory(void)
{
    host_check_unlocked("is held by a sleeper");
    return host_wait != NULL && host_wait();
}

bool mm_wait_for_task(void)
{
    host_check_unlocked("is held by a sleeper");
    return host_wait != NULL && host_wait();
}

void mm_wake_waiters(void)
{
    host_returns++;
}

void host_print_clear(void)
{
    host_printed[0] = '\0';
}

void mm_print(const char *fmt, ...)
{
    size_t n = strlen(host_printed);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(host_printed + n, sizeof(host_printed) - n, fmt, ap);
    va_end(ap);
}

/* ---- for the debugging modes -------------------------------------------- */

uint64_t host_clock_extra_us;
uint32_t host_task = 1;
uint32_t host_cpu;
char host_events[4096];
bool host_unmaps = true;
const void *host_root_from[2], *host_root_end[2];
const struct kmem_cache *host_root_cache;
const uintptr_t *host_stack;
unsigned host_stack_depth;
bool host_others_stopped;
const struct kmem_cache *host_inverted_cache;

static uint8_t *unmapped; /* a byte for each page of the arena */
static size_t arena_pages;

uint64_t mm_clock_us(void)
{
    return host_clock_ms * 1000 + ++host_clock_extra_us;
}

uint32_t mm_task_id(void)
{
    return host_task;
}

uint32_t mm_cpu_id(void)
{
    return host_cpu;
}

const char *mm_task_name(uint32_t id)
{
    return id == 1 ? "one" : "other";
}

const char *mm_symbol(uintptr_t pc, char *text, size_t size)
{
    snprintf(text, size, "%lx", (unsigned long)pc);
    return text;
}

void mm_event(const char *fmt, ...)
{
    size_t n = strlen(host_events);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(host_events + n, sizeof(host_events) - n, fmt, ap);
    va_end(ap);
}

static size_t page_of(const void *addr)
{
    return mm_virt_to_phys(addr) >> PAGE_SHIFT;
}

bool mm_page_map(void *page, bool present)
{
    if (page == NULL)
        return host_unmaps;
    unmapped[page_of(page)] = !present;
    if (mprotect(page, PAGE_SIZE, present ? PROT_READ | PROT_WRITE : 0) != 0)
        abort();
    return true;
}

bool mm_readable(const void *addr)
{
    return page_of(addr) >= arena_pages || !unmapped[page_of(addr)];
}

/* The host's stack is the megabyte around here. */
bool mm_describe(const void *addr, char *text, size_t size)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    bool stack = (uintptr_t)addr + MIB(1) - here < 2 * MIB(1);

    snprintf(text, size, "%s", stack ? "on the stack" : "elsewhere");
    return stack;
}

void mm_stop_others(void)
{
    host_others_stopped = true;
}

void mm_resume_others(void)
{
    host_others_stopped = false;
}

void host_root_over(const void *from, const void *end)
{
    ASAN_UNPOISON_MEMORY_REGION(
        from, (size_t)((const char *)end - (const char *)from));
}

void mm_roots(mm_root_t *fn)
{
    for (size_t i = 0; i < ARRAY_SIZE(host_root_from); i++)
        if (host_root_from[i] != NULL)
            fn(host_root_from[i], host_root_end[i], "root");
}

bool mm_is_root(const struct kmem_cache *cp)
{
    return cp == host_root_cache;
}

uintptr_t mm_pointer(const struct kmem_cache *cp, uintptr_t word)
{
    return cp != NULL && cp == host_inverted_cache ? ~word : word;
}

unsigned mm_backtrace(uintptr_t *pc, unsigned max)
{
    void *frames[32];
    int n = host_stack == NULL ? backtrace(frames, 32) : 0;
    unsigned i = 0;

    for (; host_stack != NULL && i < MIN(max, host_stack_depth); i++)
        pc[i] = host_stack[i];
    for (; i < max && (int)i + 2 < n; i++)
        pc[i] = (uintptr_t)frames[i + 2];
    return i;
}

/* ---- panic -------------------------------------------------------------- */

void lab_missing(const char *task, const char *page)
{
    fprintf(stderr, "lab task %s is yours to write: see %s\n", task, page);
    abort();
}

void mm_panic(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(host_panic_text, sizeof(host_panic_text), fmt, ap);
    va_end(ap);
    if (host_explorer != NULL)
        host_explorer->failed(host_panic_text);
    if (!host_panic_expected) {
        fprintf(stderr, "panic: %s\n", host_panic_text);
        abort();
    }
    while (host_self->task_locks != 0)
        host_self->task_lock[--host_self->task_locks]->lock_owner = NULL;
    host_self->task_inside = false;
    kmem_transfers = 0;
    longjmp(host_panic_jump, 1);
}

void host_panic_check(const char *file, int line, const char *text)
{
    host_panic_expected = false;
    if (host_panic_text[0] == '\0')
        ktest_fail(file, line, "no panic; expected \"%s\"", text);
    else if (strstr(host_panic_text, text) == NULL)
        ktest_fail(file, line, "panic \"%s\"; expected \"%s\"", host_panic_text,
                   text);
}

/* ---- budgets ------------------------------------------------------------ */

void budget_used_up(const char *why)
{
    if (host_explorer != NULL)
        host_explorer->failed(why);
    printf("%s\n", why);
    fflush(stdout);
    _exit(1);
}

/* ---- memory ------------------------------------------------------------- */

static char *map_memory(size_t bytes)
{
    char *from = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (from == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return from;
}

/* Memory for a page array of so many bytes. The page after its last byte cannot
 * be accessed. */
static void *map_page_array(size_t bytes)
{
    char *from = map_memory(BUDDY_ALIGN + bytes + PAGE_SIZE);

    from = (char *)ROUND_UP((uintptr_t)from, (uintptr_t)BUDDY_ALIGN);
    if (mprotect(from + bytes, PAGE_SIZE, PROT_NONE) != 0)
        abort();
    return from;
}

#define ARENA_ALIGN MIB(16)

/* A machine with the usual hole below 1 MiB and another, higher up, whose
 * edges are not on page boundaries. The lower digits of its addresses are the
 * same in every run: hash chains depend on them. */
void host_start_pages(size_t frames)
{
    const struct mem_region regions[] = {
        {0, 0x9fc00, true},
        {MIB(1), (uint64_t)frames << PAGE_SHIFT, true},
        {MIB(3) + 100, MIB(3) + 200 * PAGE_SIZE + 1, false},
    };

    host_arena = map_memory((frames << PAGE_SHIFT) + ARENA_ALIGN);
    host_arena = (char *)ROUND_UP((uintptr_t)host_arena, ARENA_ALIGN);
    unmapped = calloc(frames, 1);
    arena_pages = frames;
    page_init(map_page_array(page_array_bytes(frames)), frames, regions,
              ARRAY_SIZE(regions), MIB(1), MIB(1) + KIB(512));
    buddy_init();
}
