/*
 * Guards of words that the tested code may write only with a lock held, or may
 * neither read nor write.
 *
 * A guard is a breakpoint on data (Intel SDM volume 3, chapter 17): the
 * processor traps after the instruction that writes, with the flags still as
 * they were. So a missing lock is seen at the write, though no other task came
 * in between, and the code under test needs no mark.
 */
#include "tools/workshop/labs/guard.h"
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/symbol.h"
#include "kernel/x86/panic.h"

#define GUARDS 4 /* DR0 to DR3 */

/* Bits of DR7 for breakpoint i: enabled in all tasks; on writes, or on reads
 * and writes, of four bytes. */
#define ENABLE(i) (2u << 2 * (i))
#define WRITES(i) (13u << (16 + 4 * (i)))
#define USES(i)   (15u << (16 + 4 * (i)))

static struct guard {
    const char *guard_file; /* of the test */
    int guard_line;
    const char *guard_what;
    bool (*guard_held)(const struct trapframe *tf); /* NULL: never */
    bool guard_failed;                              /* reported once */
} guards[GUARDS];

static unsigned count;
static trap_handler_t before; /* the handler of all other debug exceptions */

static void write_control(uint32_t value)
{
    __asm__ volatile("mov %0, %%db7" : : "r"(value) : "memory");
}

/* The breakpoints that caused this exception; the processor only adds to
 * them. */
static uint32_t take_status(void)
{
    uint32_t status;

    __asm__ volatile("mov %%db6, %0" : "=r"(status));
    __asm__ volatile("mov %0, %%db6" : : "r"(status & ~0xfu));
    return status & 0xf;
}

static void check(struct guard *g, const struct trapframe *tf)
{
    char where[64];

    if (g->guard_failed || (g->guard_held != NULL && g->guard_held(tf)))
        return;
    g->guard_failed = true;
    symbol_format(tf->eip, where, sizeof(where));
    ktest_fail(g->guard_file, g->guard_line, "%s was %s, in %s", g->guard_what,
               g->guard_held == NULL ? "read or written"
                                     : "written without its lock",
               where);
}

static bool on_use(struct trapframe *tf)
{
    uint32_t used = take_status();

    for (unsigned i = 0; i < count; i++)
        if (used & 1u << i)
            check(&guards[i], tf);
    return used != 0 || (before != NULL && before(tf));
}

static void write_address(unsigned i, const void *word)
{
    switch (i) {
    case 0:
        __asm__ volatile("mov %0, %%db0" : : "r"(word));
        break;
    case 1:
        __asm__ volatile("mov %0, %%db1" : : "r"(word));
        break;
    case 2:
        __asm__ volatile("mov %0, %%db2" : : "r"(word));
        break;
    default:
        __asm__ volatile("mov %0, %%db3" : : "r"(word));
    }
}

void lab_guard_at(const char *file, int line, const char *what,
                  const void *word, bool (*held)(const struct trapframe *tf))
{
    uint32_t control = 0;

    if (count == GUARDS)
        panic("a test has more than %u guards", GUARDS);
    if (count == 0)
        before = trap_set_handler(TRAP_DEBUG, on_use);
    guards[count] = (struct guard){file, line, what, held, false};
    write_address(count++, word);
    for (unsigned i = 0; i < count; i++)
        control |=
            ENABLE(i) | (guards[i].guard_held == NULL ? USES(i) : WRITES(i));
    write_control(control);
}

void lab_unguard(void)
{
    if (count == 0)
        return;
    write_control(0);
    trap_set_handler(TRAP_DEBUG, before);
    count = 0;
}

bool lab_spin_held(const struct trapframe *tf)
{
    return (tf->eflags & EFLAGS_IF) == 0;
}
