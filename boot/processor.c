/*
 * Refuses a processor without the features that the kernel and programs use,
 * with a message on VGA and the serial line.
 *
 * entry.asm calls it before paging is on. So the linker script puts it into
 * .boot, it is compiled for a 386, and it uses no data or function of another
 * file.
 */
#include <cpuid.h>

#include "kernel/x86/cpu.h"
#include "kernel/x86/io.h"

#define VGA      ((volatile uint16_t *)0xB8000)
#define COLUMNS  80
#define CELLS    (25 * COLUMNS)
#define GREY     0x0700
#define UART     0x3F8   /* COM1; drivers/serial.c has its registers */
#define PATIENCE 1000000 /* reads, then the UART is taken for absent */

/* In EDX of leaf 1 (Intel SDM volume 2, CPUID). */
static const struct {
    uint32_t bit;
    const char *name;
} needed[] = {
    {1u << 3, "4 MiB pages (PSE)"},
    {1u << 4, "time-stamp counter (TSC)"},
    {1u << 15, "conditional moves (CMOV)"},
};

/* Register, value: no interrupts, 115200 baud, 8 data bits, no parity. */
static const uint8_t uart_setup[][2] = {
    {1, 0}, {3, 0x80}, {0, 1}, {1, 0}, {3, 3},
};

void processor_check(void);

static void send_char(char c)
{
    for (unsigned i = 0; i < PATIENCE && (inb(UART + 5) & 0x20) == 0; i++)
        ;
    outb(UART, (uint8_t)c);
}

/* Prints at a cell of the screen; returns the cell after the text. */
static unsigned print(unsigned cell, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n') {
            send_char('\r');
            cell += COLUMNS - cell % COLUMNS;
        } else {
            VGA[cell++] = (uint16_t)(GREY | *text);
        }
        send_char(*text);
    }
    return cell;
}

static void __attribute__((noreturn)) refuse(uint32_t features)
{
    unsigned cell = 0;

    for (unsigned i = 0; i < ARRAY_SIZE(uart_setup); i++)
        outb(UART + uart_setup[i][0], uart_setup[i][1]);
    for (unsigned i = 0; i < CELLS; i++)
        VGA[i] = GREY | ' ';
    for (unsigned i = 0; i < ARRAY_SIZE(needed); i++) {
        if ((features & needed[i].bit) != 0)
            continue;
        cell = print(cell, "Slate cannot start: the processor has no ");
        cell = print(cell, needed[i].name);
        cell = print(cell, ".\n");
    }
    print(cell, "A Pentium Pro and later ones have all of it. Halted.\n");
    irq_disable();
    for (;;)
        cpu_halt();
}

void processor_check(void)
{
    uint32_t eax, ebx, ecx, edx = 0;

    __get_cpuid(1, &eax, &ebx, &ecx, &edx); /* 0 without CPUID */
    for (unsigned i = 0; i < ARRAY_SIZE(needed); i++)
        if ((edx & needed[i].bit) == 0)
            refuse(edx);
}
