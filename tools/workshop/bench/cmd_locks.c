/*
 * locks: how often and for how long spin locks are held, by name. The kernel
 * counts them if it was built with DEBUG=1 (kernel/x86/lockstat.h).
 */
#include "drivers/console.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/shell/shell.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/lockstat.h"

#ifdef CONFIG_DEBUG
#define PLACE_MAX 64

static const char *place(uintptr_t pc, char buf[PLACE_MAX])
{
    return pc == 0 ? "-" : symbol_caller(pc, buf, PLACE_MAX);
}

/* The place's function, cut to what fits into the last column. */
static const char *function(uintptr_t pc, char buf[PLACE_MAX])
{
    char *plus;

    if (place(pc, buf) != buf)
        return "-";
    plus = strchr(buf, '+');
    if (plus != NULL)
        *plus = 0;
    return buf;
}

static void print_row(const struct lock_class *c)
{
    uint64_t time = rdtsc() - lock_class_since();
    uint64_t mean = c->class_taken == 0 ? 0 : c->class_held / c->class_taken;
    uint64_t thousandths = c->class_held * 1000 / time;
    char buf[PLACE_MAX];

    kprintf("%-14s %4u %9llu %7llu %3llu.%llu %6llu %8llu  %.19s\n",
            c->class_name, c->class_rank, (unsigned long long)c->class_taken,
            (unsigned long long)c->class_waited,
            (unsigned long long)(thousandths / 10),
            (unsigned long long)(thousandths % 10), (unsigned long long)mean,
            (unsigned long long)c->class_longest,
            function(c->class_release, buf));
}

static void json_row(const struct lock_class *c)
{
    uint64_t time = rdtsc() - lock_class_since();
    char buf[PLACE_MAX];

    kprintf("{\"lock\":");
    shell_json_string(c->class_name);
    kprintf(",\"rank\":%u,\"taken\":%llu,\"waited\":%llu,\"turns\":%llu,"
            "\"held\":%llu,\"of\":%llu,\"longest\":%llu,\"released_in\":",
            c->class_rank, (unsigned long long)c->class_taken,
            (unsigned long long)c->class_waited,
            (unsigned long long)c->class_turns,
            (unsigned long long)c->class_held, (unsigned long long)time,
            (unsigned long long)c->class_longest);
    shell_json_string(place(c->class_release, buf));
    kprintf("}\n");
}

/* The class with the lowest rank above that of `last`; of one rank, in the
 * order of the table. Returns LOCK_CLASSES_MAX after the last one. */
static unsigned next_class(unsigned last, unsigned last_rank)
{
    unsigned next = LOCK_CLASSES_MAX;
    unsigned next_rank = ~0u;
    struct lock_class c;

    for (unsigned i = 0; lock_class_stat(i, &c); i++)
        if ((c.class_rank > last_rank ||
             (c.class_rank == last_rank && i > last)) &&
            c.class_rank < next_rank) {
            next = i;
            next_rank = c.class_rank;
        }
    return next;
}

static int cmd_locks(char **argv)
{
    struct lock_class c = {.class_rank = 0};

    (void)argv;
    if (shell_option('r')) {
        lock_class_reset();
        return 0;
    }
    if (!shell_option('j'))
        kprintf("%-14s %4s %9s %7s %5s %6s %8s  %s\n", "LOCK", "RANK", "TAKEN",
                "WAITED", "HELD%", "MEAN", "LONGEST", "IN");
    for (unsigned i = next_class(~0u, 0); lock_class_stat(i, &c);
         i = next_class(i, c.class_rank))
        if (shell_option('j'))
            json_row(&c);
        else
            print_row(&c);
    return 0;
}
#else
static int cmd_locks(char **argv)
{
    (void)argv;
    return shell_error("locks: nothing is counted; make run WORKSHOP=1 DEBUG=1 "
                       "counts locks");
}
#endif
SHELL_COMMAND(locks, cmd_locks);
