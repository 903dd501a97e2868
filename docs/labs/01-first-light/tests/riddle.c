/*
 * Lab 1: the command `riddle`. One of the functions that it calls raises an
 * exception, which the handler repairs before it is visible. Only a debugger
 * finds the trap frame. Its contents depend on the seed of the hand-out.
 */
#include "drivers/console.h"
#include "tools/workshop/labs/seed.h"
#include "kernel/shell/shell.h"
#include "kernel/x86/tests/fault.h"
#include "kernel/x86/trap.h"

enum purpose {
    WAY,
    DEPTH,
    NUMBER,
    MEMORY,
    DESCRIPTOR,
    PLACE
};

/* The compiler must keep these functions as they are written, for the
 * debugger. */
#define APART static __attribute__((noipa))

/* A function that calls another must have a frame for the debugger to
 * follow. */
APART void riddle_nothing(void)
{
    __asm__ volatile("" : : : "memory");
}

APART void riddle_alpha(void)
{
    riddle_nothing();
    fault_opcode();
}

APART void riddle_beta(void)
{
    fault_selector((uint16_t)((64 + lab_pick(DESCRIPTOR, 8000)) * 8));
}

APART void riddle_gamma(void)
{
    fault_read(0x10000 + PAGE_SIZE * lab_pick(PLACE, 1000));
}

APART void riddle_delta(void)
{
    fault_write(0x10000 + PAGE_SIZE * lab_pick(PLACE, 1000), 1);
}

static void (*const ways[])(void) = {riddle_alpha, riddle_beta, riddle_gamma,
                                     riddle_delta};

/* The statement after the call prevents the compiler from making it a jump. */
APART void riddle_deeper(unsigned more)
{
    if (more == 0)
        ways[lab_pick(WAY, ARRAY_SIZE(ways))]();
    else
        riddle_deeper(more - 1);
    __asm__ volatile("" : : : "memory");
}

APART void riddle_begin(void)
{
    volatile uint32_t number = 10000 + lab_pick(NUMBER, 50000);

    riddle_deeper(2 + lab_pick(DEPTH, 20));
    (void)number;
}

static bool skip(struct trapframe *tf)
{
    tf->eip += FAULT_LENGTH;
    return true;
}

static int cmd_riddle(char **argv)
{
    static const uint8_t vectors[] = {TRAP_OPCODE, TRAP_PROTECTION,
                                      TRAP_PAGE_FAULT};
    trap_handler_t before[ARRAY_SIZE(vectors)];

    (void)argv;
    for (size_t i = 0; i < ARRAY_SIZE(vectors); i++)
        before[i] = trap_set_handler(vectors[i], skip);
    riddle_begin();
    for (size_t i = 0; i < ARRAY_SIZE(vectors); i++)
        trap_set_handler(vectors[i], before[i]);
    kprintf("Something has happened, and left no visible trace.\n"
            "Your machine for task 1.2 has %u MiB: make run MEM=%u\n",
            20 + lab_pick(MEMORY, 200), 20 + lab_pick(MEMORY, 200));
    return 0;
}

SHELL_COMMAND(riddle, {"", cmd_riddle, SHELL_ACTION});
