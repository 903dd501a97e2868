/*
 * The shadow of memory, and the checks that the compiler calls.
 *
 * kasan_map.c has mapped the shadow, with zeroes: every access is allowed. This
 * file poisons the shadow of free pages of buddy and of the redzones after
 * global objects. Code that the compiler generates poisons the redzones around
 * the arrays of a function when it begins, and clears their shadow when it
 * returns. Before a call that does not return it calls
 * __asan_handle_no_return, which clears the shadow of the stack.
 *
 * An address without a shadow (of a device, of a program, or where nothing is)
 * passes every check; only the processor checks it.
 */
#include "tools/workshop/sanitize/kasan.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/string.h"
#include "tools/workshop/sanitize/sanitize.h"
#include "kernel/task/task.h"
#include "mm/page.h"

/* The compiler's description of a global object. */
struct kasan_global {
    uintptr_t global_start;
    size_t global_size;
    size_t global_with_room;
    const char *global_name;
    const char *global_file;
    uintptr_t global_rest[3];
};

/* The objects of one source file. */
struct unit {
    const struct kasan_global *unit_globals;
    size_t unit_count;
};

#define UNITS_MAX 512

static struct unit units[UNITS_MAX];
static size_t unit_count;
static uintptr_t limit; /* of addresses with a shadow; 0 before the start */

bool kasan_covers(uintptr_t addr)
{
    return addr >= KERNEL_BASE && addr < limit;
}

/* ---- opening and closing ------------------------------------------------ */

void kasan_open(const void *addr, size_t size)
{
    uint8_t *shadow = kasan_shadow((uintptr_t)addr);

    if (!kasan_covers((uintptr_t)addr))
        return;
    memset(shadow, KASAN_OPEN, size / KASAN_GRANULE);
    if (size % KASAN_GRANULE != 0)
        shadow[size / KASAN_GRANULE] = (uint8_t)(size % KASAN_GRANULE);
}

void kasan_close(const void *addr, size_t size, enum kasan_shadow why)
{
    uintptr_t from = ROUND_UP((uintptr_t)addr, KASAN_GRANULE);
    uintptr_t to = ROUND_UP((uintptr_t)addr + size, KASAN_GRANULE);

    if (kasan_covers(from) && from < to)
        memset(kasan_shadow(from), why, (to - from) / KASAN_GRANULE);
}

/* ---- checking ----------------------------------------------------------- */

bool kasan_closed(uintptr_t addr)
{
    int8_t s = (int8_t)*kasan_shadow(addr);

    return s != 0 && (int8_t)(addr % KASAN_GRANULE) >= s;
}

/* The first byte of the range that may not be touched, or 0. A granule of
 * which some may be touched can only be its last. */
static uintptr_t first_closed(uintptr_t addr, size_t size)
{
    uintptr_t end = addr + size;

    if (end > limit || end < addr)
        end = limit;
    while (addr < end) {
        uintptr_t next = ROUND_UP(addr + 1, KASAN_GRANULE);
        uintptr_t last = MIN(next, end) - 1;

        if (unlikely(*kasan_shadow(addr) != 0) && kasan_closed(last)) {
            while (!kasan_closed(addr))
                addr++;
            return addr;
        }
        addr = next;
    }
    return 0;
}

void kasan_check(uintptr_t addr, size_t size, bool write, uintptr_t pc,
                 uintptr_t ebp)
{
    uintptr_t bad = kasan_covers(addr) ? first_closed(addr, size) : 0;

    if (unlikely(bad != 0))
        kasan_report(bad, size, write, pc, ebp);
}

/* Mostly it is one granule, all of which may be touched. */
#define CHECK(addr, size, write)                                               \
    do {                                                                       \
        if (kasan_covers(addr) &&                                              \
            (*kasan_shadow(addr) != 0 ||                                       \
             (addr) % KASAN_GRANULE + (size) > KASAN_GRANULE))                 \
            kasan_check(addr, size, write, CALLER);                            \
    } while (0)

#define ACCESS(size)                                                           \
    void __asan_load##size##_noabort(uintptr_t addr)                           \
    {                                                                          \
        CHECK(addr, size, false);                                              \
    }                                                                          \
    void __asan_store##size##_noabort(uintptr_t addr)                          \
    {                                                                          \
        CHECK(addr, size, true);                                               \
    }

ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

void __asan_loadN_noabort(uintptr_t addr, size_t size)
{
    kasan_check(addr, size, false, CALLER);
}

void __asan_storeN_noabort(uintptr_t addr, size_t size)
{
    kasan_check(addr, size, true, CALLER);
}

/* ---- stacks ------------------------------------------------------------- */

/* The end of the stack that `esp` is on, or 0 if it is an unknown one. */
static uintptr_t stack_end(uintptr_t esp)
{
    const struct task *self = task_self();

    if (esp >= (uintptr_t)boot_stack_bottom && esp < (uintptr_t)boot_stack_top)
        return (uintptr_t)boot_stack_top;
    if (self != NULL && esp < self->task_stack_top &&
        self->task_stack_top - esp < KSTACK_BYTES)
        return self->task_stack_top;
    return 0;
}

void __asan_handle_no_return(void)
{
    uintptr_t esp = (uintptr_t)__builtin_frame_address(0);
    uintptr_t from = esp & ~(uintptr_t)(KASAN_GRANULE - 1);

    if (stack_end(esp) != 0)
        kasan_open((void *)from, stack_end(esp) - from);
}

/* Blocks of more than a few words: the compiler does the others itself. */
void __asan_poison_stack_memory(const void *addr, size_t size)
{
    kasan_close(addr, size, KASAN_STACK_SCOPE);
}

void __asan_unpoison_stack_memory(const void *addr, size_t size)
{
    kasan_open(addr, size);
}

/* ---- global objects ----------------------------------------------------- */

void __asan_register_globals(const struct kasan_global *globals, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct kasan_global *g = &globals[i];

        kasan_open((void *)g->global_start, g->global_size);
        kasan_close((void *)(g->global_start + g->global_size),
                    g->global_with_room - g->global_size, KASAN_GLOBAL);
    }
    if (unit_count < UNITS_MAX)
        units[unit_count++] = (struct unit){globals, n};
}

/* The compiler calls it at the end of the program, which the kernel never
 * reaches. */
void __asan_unregister_globals(const struct kasan_global *globals, size_t n)
{
    (void)globals;
    (void)n;
}

const char *kasan_global(uintptr_t addr, const char **file, uintptr_t *start,
                         size_t *size)
{
    for (size_t i = 0; i < unit_count; i++) {
        for (size_t k = 0; k < units[i].unit_count; k++) {
            const struct kasan_global *g = &units[i].unit_globals[k];

            if (addr - g->global_start >= g->global_with_room)
                continue;
            *file = g->global_file;
            *start = g->global_start;
            *size = g->global_size;
            return g->global_name;
        }
    }
    return NULL;
}

/* ---- start -------------------------------------------------------------- */

/* From the linker script: one function for each source file with globals. */
extern void (*const init_array_start[])(void);
extern void (*const init_array_end[])(void);

/* From here on accesses are checked. */
static void start(const void *arg)
{
    (void)arg;
    limit = KERNEL_BASE + (page_count << PAGE_SHIFT);
    kasan_pages_init();
    for (void (*const *fn)(void) = init_array_start; fn < init_array_end; fn++)
        (*fn)();
}

HOOK(HOOK_FRAMES, start);
