/*
 * mm/platform.h on real threads.
 */
#include "mm/platform.h"
#include "mm/tests/threads/threads.h"
#include "mm/debug/platform.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define WAITS 100000 /* for memory; more in one thread is a hang */

char *threads_arena;
__thread unsigned threads_self = 1;
uint64_t threads_clock_ms;

static uint8_t *unmapped; /* a byte for each page */
static __thread unsigned locks;
static __thread unsigned waits;

void mm_lock(mm_lock_t *lock)
{
    pthread_mutex_lock(&lock->lock_mutex);
    __atomic_store_n(&lock->lock_owner, threads_self, __ATOMIC_RELAXED);
    locks++;
}

void mm_unlock(mm_lock_t *lock)
{
    if (!mm_lock_held(lock))
        mm_panic("lock \"%s\" is released but not held", lock->lock_name);
    locks--;
    __atomic_store_n(&lock->lock_owner, 0, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock->lock_mutex);
}

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

bool mm_wait_for_memory(void)
{
    sched_yield();
    return locks == 0 && waits++ < WAITS;
}

bool mm_wait_for_task(void)
{
    return mm_wait_for_memory();
}

void mm_wake_waiters(void)
{
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

void mm_stop_others(void)
{
}

void mm_resume_others(void)
{
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
