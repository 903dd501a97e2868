/*
 * Counts of spin locks. A lock finds its class when it is first taken; the
 * table of classes only grows. Two processors may hold two locks of one class,
 * so each class has a bit of its own that guards its counts.
 */
#include "kernel/x86/lockstat.h"
#include "kernel/lib/string.h"
#include "kernel/x86/panic.h"
#include "kernel/x86/spinlock.h"

#ifdef CONFIG_DEBUG
static struct lock_class classes[LOCK_CLASSES_MAX];
static unsigned class_count;
static uint32_t table_busy;
static uint64_t since;

/* Interrupts are disabled. The processor that has the bit may be stopped after
 * a panic: then nobody waits for it. */
static void lockstat_enter(uint32_t *busy)
{
    while (__atomic_exchange_n(busy, 1, __ATOMIC_ACQUIRE) != 0 &&
           !panic_happened())
        cpu_relax();
}

static void lockstat_leave(uint32_t *busy)
{
    __atomic_store_n(busy, 0, __ATOMIC_RELEASE);
}

/* ---- the table ---------------------------------------------------------- */

struct lock_class *lock_class_of(struct spinlock *l)
{
    struct lock_class *c = classes;

    if (l->lock_class != NULL)
        return l->lock_class;
    lockstat_enter(&table_busy);
    while (c < classes + class_count &&
           (c->class_rank != l->lock_rank ||
            strcmp(c->class_name, l->lock_name) != 0))
        c++;
    if (c == classes + LOCK_CLASSES_MAX)
        panic("lock %s: there are more than %u names of locks", l->lock_name,
              LOCK_CLASSES_MAX);
    if (c == classes + class_count) {
        c->class_name = l->lock_name;
        c->class_rank = l->lock_rank;
        __atomic_store_n(&class_count, class_count + 1, __ATOMIC_RELEASE);
    }
    l->lock_class = c;
    lockstat_leave(&table_busy);
    return c;
}

/* ---- counting ----------------------------------------------------------- */

void lock_class_turn(struct spinlock *l, bool first)
{
    struct lock_class *class = lock_class_of(l);

    lockstat_enter(&class->class_busy);
    class->class_waited += first;
    class->class_turns++;
    lockstat_leave(&class->class_busy);
}

void lock_class_count(struct spinlock *l, uintptr_t release)
{
    uint64_t now = rdtsc();
    uint64_t held = now > l->lock_since ? now - l->lock_since : 0;
    struct lock_class *class = lock_class_of(l);

    lockstat_enter(&class->class_busy);
    class->class_taken++;
    class->class_held += held;
    if (held > class->class_longest) {
        class->class_longest = held;
        class->class_release = release;
    }
    lockstat_leave(&class->class_busy);
}

/* ---- reading ------------------------------------------------------------ */

bool lock_class_stat(unsigned number, struct lock_class *out)
{
    uint32_t flags;

    if (number >= __atomic_load_n(&class_count, __ATOMIC_ACQUIRE))
        return false;
    flags = irq_save();
    lockstat_enter(&classes[number].class_busy);
    *out = classes[number];
    lockstat_leave(&classes[number].class_busy);
    irq_restore(flags);
    return true;
}

uint64_t lock_class_since(void)
{
    return since;
}

void lock_class_reset(void)
{
    const size_t counts = offsetof(struct lock_class, class_taken);
    unsigned n = __atomic_load_n(&class_count, __ATOMIC_ACQUIRE);

    for (unsigned i = 0; i < n; i++) {
        uint32_t flags = irq_save();

        lockstat_enter(&classes[i].class_busy);
        memset((uint8_t *)&classes[i] + counts, 0, sizeof(classes[i]) - counts);
        lockstat_leave(&classes[i].class_busy);
        irq_restore(flags);
    }
    since = rdtsc();
}
#endif
