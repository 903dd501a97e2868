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

struct lock_row {
    struct lock_class row_class;
    uint64_t row_of; /* the time that they were counted for */
    uint64_t row_mean;
    char row_share[24];
    char row_place[PLACE_MAX], row_function[PLACE_MAX];
};

#define LOCK(member, ...) COLUMN(struct lock_row, row_##member, __VA_ARGS__)

static const struct column lock_columns[] = {
    LOCK(class.class_name, STRING, -14, "LOCK", "lock"),
    LOCK(class.class_rank, NUMBER, 4, "RANK", "rank"),
    LOCK(class.class_taken, NUMBER, 9, "TAKEN", "taken"),
    LOCK(class.class_waited, NUMBER, 7, "WAITED", "waited"),
    LOCK(class.class_turns, NUMBER, 0, NULL, "turns"),
    LOCK(share, CHARS, 5, "HELD%", NULL),
    LOCK(class.class_held, NUMBER, 0, NULL, "held"),
    LOCK(of, NUMBER, 0, NULL, "of"),
    LOCK(mean, NUMBER, 6, "MEAN", NULL),
    LOCK(class.class_longest, NUMBER, 8, "LONGEST", "longest"),
    LOCK(place, CHARS, 0, NULL, "released_in"),
    LOCK(function, CHARS, -19, " IN", NULL),
    {0},
};

static void print_class(const struct table *t, const struct lock_class *c)
{
    struct lock_row row = {.row_class = *c,
                           .row_of = rdtsc() - lock_class_since()};
    uint64_t thousandths = c->class_held * 1000 / row.row_of;
    char *plus;

    if (c->class_taken != 0)
        row.row_mean = c->class_held / c->class_taken;
    snprintf(row.row_share, sizeof(row.row_share), "%llu.%llu",
             thousandths / 10, thousandths % 10);
    strlcpy(row.row_place, "-", PLACE_MAX);
    if (c->class_release != 0)
        symbol_caller(c->class_release, row.row_place, PLACE_MAX);
    snprintf(row.row_function, PLACE_MAX, " %.19s", row.row_place);
    plus = strchr(row.row_function, '+');
    if (plus != NULL)
        *plus = '\0';
    table_row(t, &row);
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

static int cmd_locks(char **argv UNUSED)
{
    struct lock_class c = {.class_rank = 0};
    struct table t;

    if (shell_option('r')) {
        lock_class_reset();
        return 0;
    }
    t = shell_table(lock_columns);
    for (unsigned i = next_class(~0u, 0); lock_class_stat(i, &c);
         i = next_class(i, c.class_rank))
        print_class(&t, &c);
    return 0;
}
#else
static int cmd_locks(char **argv)
{
    (void)argv;
    return shell_error("nothing is counted; make run WORKSHOP=1 DEBUG=1 "
                       "counts locks");
}
#endif
SHELL_COMMAND(locks, {"[-j]", cmd_locks, SHELL_ACTION},
              {"-r", cmd_locks, SHELL_ACTION});
