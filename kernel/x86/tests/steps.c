/*
 * Single steps; steps.h says what for.
 */
#include "kernel/x86/tests/steps.h"

#define EFLAGS_TF (1u << 8)

static void (*callback)(const struct trapframe *tf, unsigned n);
static unsigned count;

static bool step(struct trapframe *tf)
{
    callback(tf, ++count);
    return true;
}

unsigned steps_run(void (*fn)(void),
                   void (*each)(const struct trapframe *tf, unsigned n))
{
    trap_handler_t before = trap_set_handler(TRAP_DEBUG, step);

    callback = each;
    count = 0;
    write_eflags(read_eflags() | EFLAGS_TF);
    fn();
    write_eflags(read_eflags() & ~EFLAGS_TF);
    trap_set_handler(TRAP_DEBUG, before);
    return count;
}

static void nothing(void)
{
}

static void ignore(const struct trapframe *tf UNUSED, unsigned n UNUSED)
{
}

bool steps_work(void)
{
    return steps_run(nothing, ignore) != 0;
}
