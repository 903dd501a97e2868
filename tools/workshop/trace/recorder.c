/*
 * Records what clients request of the slab allocator.
 *
 * In the kernel of `make trace` the linker redirects calls of the public
 * functions here (--wrap): `__real_f` is the `f` of other kernels. There the
 * allocator is one object (tools/make/test.mk), so its calls of itself are not
 * redirected: only what clients request is recorded, and the code of both is
 * that of the ordinary kernel, instruction for instruction.
 *
 *     client ──> __wrap_kmem_alloc ──> kmem_alloc ──> kmem_cache_alloc ─ ─>
 *                        └──> the next record
 *
 * An allocation is numbered after it, a free before it. So the free of a block
 * precedes the next allocation of its address on any processor.
 *
 * It records from the first request after boot, and never stops: a trace that
 * begins later needs to know what was allocated before. Its memory is buddy's,
 * as much as the option trace= says; when it is full, records are lost.
 */
#include "tools/workshop/trace/recorder.h"
#include "drivers/pit.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/option.h"
#include "kernel/lib/string.h"
#include "kernel/x86/cpu.h"
#include "mm/buddy.h"
#include "mm/kmem.h"

/* The linker calls the wrappers, so no header declares them. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* Reports skip the frames of these functions, as those of the allocator. */
#define HEAP __attribute__((section(".text.heap")))

struct kmem_cache *
__real_kmem_cache_create_from(const char *name, size_t size, size_t align,
                              kmem_ctor_t *ctor, kmem_dtor_t *dtor,
                              const struct kmem_supplier *supplier);
int __real_kmem_cache_destroy(struct kmem_cache *cp);
void *__real_kmem_cache_alloc(struct kmem_cache *cp, int flags);
void __real_kmem_cache_free(struct kmem_cache *cp, void *buf);
void *__real_kmem_alloc(size_t size, int flags);
void *__real_kmem_zalloc(size_t size, int flags);
void __real_kmem_free(void *buf, size_t size);
void __real_buddy_set_pressure(size_t (*reclaim)(void));

struct recording recording = {.recording_magic = RECORDING_MAGIC};

static uint32_t blocks; /* of RECORD_BLOCK bytes, that are wanted */

static bool set_memory(char *value)
{
    uint32_t mib;

    if (!parse_u32(value, &mib) || mib < RECORD_BLOCK / MIB(1) ||
        mib / (RECORD_BLOCK / MIB(1)) > RECORDING_BLOCKS)
        return false;
    blocks = mib / (RECORD_BLOCK / MIB(1));
    return true;
}

BOOT_OPTION(trace, "trace=", "trace=MIB",
            "memory for what is recorded (4 to 1024)", set_memory);

/* Before there is an allocator. */
static void get_memory(const void *arg UNUSED)
{
    for (uint32_t i = 0; i < blocks; i++) {
        struct page *p = buddy_alloc(BUDDY_MAX_ORDER);

        if (p == NULL)
            return;
        recording.recording_block[i] = mm_virt_to_phys(page_to_virt(p));
        recording.recording_room += RECORDS_IN_BLOCK;
    }
}

HOOK(HOOK_FRAMES, get_memory);

static struct record *record_at(uint32_t n)
{
    struct record *block =
        mm_phys_to_virt(recording.recording_block[n / RECORDS_IN_BLOCK]);

    return &block[n % RECORDS_IN_BLOCK];
}

HEAP void recorder_put(enum trace_op op, const void *addr, uint32_t what)
{
    uint32_t eflags = irq_save();
    uint32_t n =
        __atomic_fetch_add(&recording.recording_count, 1, __ATOMIC_SEQ_CST);

    if (n < recording.recording_room)
        *record_at(n) =
            (struct record){.record_us = timer_us(),
                            .record_addr = (uint32_t)(uintptr_t)addr,
                            .record_what = what,
                            .record_cpu = (uint16_t)cpu_self()->cpu_number,
                            .record_op = (uint16_t)op};
    irq_restore(eflags);
}

/* ---- caches ------------------------------------------------------------- */

/* Returns the number of the cache. */
static uint32_t put_cache(const char *name, size_t size, size_t align,
                          uint32_t flags)
{
    uint32_t n =
        __atomic_fetch_add(&recording.recording_caches, 1, __ATOMIC_SEQ_CST);
    struct recorded_cache *c = &recording.recording_cache[n];

    if (n >= RECORDING_CACHES)
        return n;
    strlcpy(c->recorded_name, name, sizeof(c->recorded_name));
    c->recorded_size = size;
    c->recorded_align = align;
    c->recorded_flags = flags;
    return n;
}

struct kmem_cache *
__wrap_kmem_cache_create_from(const char *name, size_t size, size_t align,
                              kmem_ctor_t *ctor, kmem_dtor_t *dtor,
                              const struct kmem_supplier *supplier)
{
    struct kmem_cache *cp =
        __real_kmem_cache_create_from(name, size, align, ctor, dtor, supplier);

    if (cp != NULL)
        recorder_put(RECORD_CREATE, cp,
                     put_cache(name, size, align,
                               (ctor != NULL ? TRACE_CTOR : 0) |
                                   (dtor != NULL ? TRACE_DTOR : 0)));
    return cp;
}

struct kmem_cache *__wrap_kmem_cache_create(const char *name, size_t size,
                                            size_t align, kmem_ctor_t *ctor,
                                            kmem_dtor_t *dtor)
{
    return __wrap_kmem_cache_create_from(name, size, align, ctor, dtor, NULL);
}

int __wrap_kmem_cache_destroy(struct kmem_cache *cp)
{
    int error = __real_kmem_cache_destroy(cp);

    if (error == 0)
        recorder_put(TRACE_DESTROY, cp, (uint32_t)(uintptr_t)cp);
    return error;
}

HEAP void *__wrap_kmem_cache_alloc(struct kmem_cache *cp, int flags)
{
    void *obj = __real_kmem_cache_alloc(cp, flags);

    recorder_put(obj != NULL ? TRACE_CACHE_ALLOC : TRACE_CACHE_FAIL, obj,
                 (uint32_t)(uintptr_t)cp);
    return obj;
}

HEAP void __wrap_kmem_cache_free(struct kmem_cache *cp, void *buf)
{
    recorder_put(TRACE_FREE, buf, (uint32_t)(uintptr_t)cp);
    __real_kmem_cache_free(cp, buf);
}

/* ---- memory of any size ------------------------------------------------- */

/* Nothing is allocated for size 0. */
static HEAP void put_alloc(const void *buf, size_t size)
{
    if (size != 0)
        recorder_put(buf != NULL ? TRACE_ALLOC : TRACE_FAIL, buf, size);
}

HEAP void *__wrap_kmem_alloc(size_t size, int flags)
{
    void *buf = __real_kmem_alloc(size, flags);

    put_alloc(buf, size);
    return buf;
}

HEAP void *__wrap_kmem_zalloc(size_t size, int flags)
{
    void *buf = __real_kmem_zalloc(size, flags);

    put_alloc(buf, size);
    return buf;
}

HEAP void __wrap_kmem_free(void *buf, size_t size)
{
    if (buf != NULL)
        recorder_put(TRACE_FREE, buf, size);
    __real_kmem_free(buf, size);
}

/* ---- memory pressure ---------------------------------------------------- */

static size_t (*pressure)(void);

/* Buddy has no page left. (kmem_reapd, which comes before that, keeps the
 * working sets: no reason for a replay to return all that is free.) */
static size_t record_pressure(void)
{
    recorder_put(TRACE_PRESSURE, NULL, 0);
    return pressure();
}

void __wrap_buddy_set_pressure(size_t (*reclaim)(void))
{
    pressure = reclaim;
    __real_buddy_set_pressure(record_pressure);
}
