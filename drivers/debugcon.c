/*
 * Port 0xE9, as Bochs and QEMU have it: each byte written goes to a file of
 * the host, and reading it gives 0xE9, which tells whether it is there.
 */
#include "drivers/debugcon.h"
#include "kernel/lib/printf.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/io.h"

#define PORT_DEBUG 0xE9
#define EVENT_MAX  512

static void write(const char *text)
{
    while (*text)
        outb(PORT_DEBUG, (uint8_t)*text++);
}

/* An event that does not fit would break its reader's parser if cut. */
void debugcon_event(const char *fmt, ...)
{
    static char text[EVENT_MAX]; /* guarded by disabled interrupts */
    uint32_t flags;
    va_list ap;
    int n;

    if (inb(PORT_DEBUG) != PORT_DEBUG)
        return;
    flags = irq_save();
    va_start(ap, fmt);
    n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if ((size_t)n < sizeof(text))
        write(text);
    else
        write("{\"event\":\"too-long\"}");
    write("\n");
    irq_restore(flags);
}
