/*
 * mm/platform.h on real threads. A run that hangs ends, however long a thread
 * waits for a processor: no lock can be part of a deadlock, a wait ends when
 * nothing that is waited for can happen, and the steps of loops are counted.
 */
#include "mm/platform.h"
#include "mm/buddy.h"
#include "mm/tests/threads/threads.h"
#include "mm/debug/debug.h"
#include "tools/test/budget.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define LOCKS 8
#define STEPS 10000000 /* of an operation; the longest takes 30,000 */

char *threads_arena;
__thread unsigned threads_self = 1;
uint64_t threads_clock_ms;

static uint8_t *unmapped; /* a byte for each page */
static __thread const mm_lock_t *held[LOCKS];
static __thread unsigned locks;

/* ---- budgets ------------------------------------------------------------ */

static __thread long long steps_left = STEPS;

__attribute__((no_sanitize("thread"))) void budget_step(void)
{
    if (--steps_left == 0)
        mm_panic("the operation used up its budget of %d steps: it hangs",
                 STEPS);
}

/* ---- locks -------------------------------------------------------------- */

/* Locks that are taken in the order of their ranks, and released, cause no
 * deadlock. */
void mm_lock(mm_lock_t *lock)
{
    if (locks == LOCKS ||
        (locks != 0 && held[locks - 1]->lock_rank >= lock->lock_rank))
        mm_panic("lock \"%s\" is taken out of order", lock->lock_name);
    pthread_mutex_lock(&lock->lock_mutex);
    __atomic_store_n(&lock->lock_owner, threads_self, __ATOMIC_RELAXED);
    held[locks++] = lock;
}

void mm_unlock(mm_lock_t *lock)
{
    if (!mm_lock_held(lock))
        mm_panic("lock \"%s\" is released but not held", lock->lock_name);
    if (held[--locks] != lock)
        mm_panic("lock \"%s\" is not released last in, first out",
                 lock->lock_name);
    __atomic_store_n(&lock->lock_owner, 0, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock->lock_mutex);
}

#if MM_MAGAZINES
static pthread_mutex_t cpus[MM_CPUS_MAX] = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static __thread unsigned cpu;

/* A thread is on another processor each time. */
void mm_cpu_enter(void)
{
    if (locks != 0)
        mm_panic("lock \"%s\" is held at mm_cpu_enter",
                 held[locks - 1]->lock_name);
    cpu = (cpu + threads_self) % MM_CPUS_MAX;
    pthread_mutex_lock(&cpus[cpu]);
}

void mm_cpu_leave(void)
{
    pthread_mutex_unlock(&cpus[cpu]);
}

unsigned mm_cpu_number(void)
{
    return cpu;
}

void mm_call_all(void (*fn)(void *arg), void *arg)
{
    for (cpu = 0; cpu < MM_CPUS_MAX; cpu++) {
        pthread_mutex_lock(&cpus[cpu]);
        fn(arg);
        pthread_mutex_unlock(&cpus[cpu]);
    }
    cpu = 0;
}

bool mm_memory_low(void)
{
    return buddy_free_pages() < 16;
}
#endif

__attribute__((no_sanitize("thread"))) const void *
threads_read(const void *from, size_t size)
{
    static __thread uint64_t value;

    switch (size) {
    case 1:
        *(uint8_t *)&value = *(const volatile uint8_t *)from;
        break;
    case 2:
        *(uint16_t *)&value = *(const volatile uint16_t *)from;
        break;
    case 4:
        *(uint32_t *)&value = *(const volatile uint32_t *)from;
        break;
    default:
        value = *(const volatile uint64_t *)from;
    }
    return &value;
}

uint64_t mm_clock_ms(void)
{
    return __atomic_load_n(&threads_clock_ms, __ATOMIC_RELAXED);
}

/* ---- waiting ------------------------------------------------------------ */

/* A thread that waits tries again when another one has completed an operation,
 * or freed pages. If all wait, all try once more. If all wait again and none
 * has completed anything, they would wait for ever. */
static pthread_mutex_t waits = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t retry = PTHREAD_COND_INITIALIZER;
static unsigned threads = 1;
static unsigned waiting;
static uint64_t retries;
static uint64_t completed, completed_before; /* the last time all waited */

/* Caller holds `waits`. */
static void retry_all(void)
{
    retries++;
    __atomic_store_n(&waiting, 0, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&retry);
}

/* A thread that does not wait does not take the mutex: it would order accesses
 * that no lock of mm/ orders. A thread that begins to wait just now tries again
 * the next time. */
void mm_wake_waiters(void)
{
    if (__atomic_load_n(&waiting, __ATOMIC_RELAXED) == 0)
        return;
    pthread_mutex_lock(&waits);
    retry_all();
    pthread_mutex_unlock(&waits);
}

static bool wait_for_others(void)
{
    bool hope = true;
    uint64_t now, n;

    if (locks != 0)
        return false;
    pthread_mutex_lock(&waits);
    n = retries;
    if (__atomic_add_fetch(&waiting, 1, __ATOMIC_RELAXED) == threads) {
        now = __atomic_load_n(&completed, __ATOMIC_RELAXED);
        hope = now != completed_before;
        completed_before = now;
        retry_all();
    }
    while (retries == n)
        pthread_cond_wait(&retry, &waits);
    pthread_mutex_unlock(&waits);
    return hope;
}

bool mm_wait_for_memory(void)
{
    return wait_for_others();
}

bool mm_wait_for_task(void)
{
    return wait_for_others();
}

void threads_completed(void)
{
    if (locks != 0)
        mm_panic("lock \"%s\" is still held after the operation",
                 held[locks - 1]->lock_name);
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELAXED);
    mm_wake_waiters();
    steps_left = STEPS;
}

/* ---- threads ------------------------------------------------------------ */

static void (*run_thread)(unsigned number);
static uint64_t run_seed;
static __thread uint64_t random_state;

static void *thread_main(void *arg)
{
    unsigned number = (unsigned)(uintptr_t)arg;

    threads_self = number + 2;
    random_state = run_seed * THREADS + number;
    run_thread(number);
    threads_completed();
    pthread_mutex_lock(&waits);
    threads--;
    retry_all();
    pthread_mutex_unlock(&waits);
    return NULL;
}

void threads_run(void (*run)(unsigned number), uint64_t seed)
{
    pthread_t id[THREADS];

    run_thread = run;
    run_seed = seed;
    threads = THREADS;
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&id[i], NULL, thread_main, (void *)i) != 0)
            mm_panic("no thread");
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(id[i], NULL);
    threads = 1;
}

unsigned threads_below(unsigned n)
{
    random_state = random_state * 6364136223846793005u + 1;
    return (unsigned)(random_state >> 33) % n;
}

void mm_print(const char *fmt, ...)
{
    (void)fmt;
}

void mm_panic(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    fflush(stdout);
    _exit(1);
}

/* ---- for the debugging modes -------------------------------------------- */

uint64_t mm_clock_us(void)
{
    return mm_clock_ms() * 1000;
}

uint32_t mm_task_id(void)
{
    return threads_self;
}

uint32_t mm_cpu_id(void)
{
    return 0;
}

const char *mm_task_name(uint32_t id)
{
    (void)id;
    return "thread";
}

const char *mm_symbol(uintptr_t pc, char *text, size_t size)
{
    snprintf(text, size, "%lx", (unsigned long)pc);
    return text;
}

void mm_event(const char *fmt, ...)
{
    (void)fmt;
}

unsigned mm_backtrace(uintptr_t *pc, unsigned max)
{
    pc[0] = (uintptr_t)__builtin_return_address(0);
    return max != 0;
}

/* Pages are only marked: the sanitizer needs them. */
bool mm_page_map(void *page, bool present)
{
    if (page != NULL)
        __atomic_store_n(&unmapped[mm_virt_to_phys(page) >> PAGE_SHIFT],
                         !present, __ATOMIC_RELAXED);
    return true;
}

bool mm_readable(const void *addr)
{
    return __atomic_load_n(&unmapped[mm_virt_to_phys(addr) >> PAGE_SHIFT],
                           __ATOMIC_RELAXED) == 0;
}

bool mm_describe(const void *addr, char *text, size_t size)
{
    (void)addr;
    snprintf(text, size, "elsewhere");
    return false;
}

/* No thread is on a processor meanwhile. */
void mm_stop_others(void)
{
#if MM_MAGAZINES
    for (unsigned i = 0; i < MM_CPUS_MAX; i++)
        pthread_mutex_lock(&cpus[i]);
#endif
}

void mm_resume_others(void)
{
#if MM_MAGAZINES
    for (unsigned i = MM_CPUS_MAX; i-- > 0;)
        pthread_mutex_unlock(&cpus[i]);
#endif
}

void mm_roots(mm_root_t *fn)
{
    (void)fn;
}

bool mm_is_root(const struct kmem_cache *cp)
{
    (void)cp;
    return false;
}

uintptr_t mm_pointer(const struct kmem_cache *cp, uintptr_t word)
{
    (void)cp;
    return word;
}

/* ---- memory ------------------------------------------------------------- */

void threads_start_pages(size_t frames)
{
    const struct mem_region all = {MIB(1), (uint64_t)frames << PAGE_SHIFT,
                                   true};

    threads_arena = mmap(NULL, frames << PAGE_SHIFT, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (threads_arena == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    unmapped = calloc(frames, 1);
    page_init(aligned_alloc(BUDDY_ALIGN, page_array_bytes(frames)), frames,
              &all, 1, MIB(1), MIB(1) + KIB(512));
    buddy_init();
}
