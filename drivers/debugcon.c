/*
 * Port 0xE9 of Bochs and QEMU: bytes written go to a file of the host; it reads
 * as 0xE9 if it exists.
 */
#include "drivers/debugcon.h"
#include "kernel/lib/printf.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/io.h"

#define PORT_DEBUG 0xE9
#define EVENT_MAX  (DEBUGCON_LINE_MAX + 1)

bool debugcon_present(void)
{
    return inb(PORT_DEBUG) == PORT_DEBUG;
}

static void write(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        outb(PORT_DEBUG, (uint8_t)text[i]);
}

void debugcon_line(const char *text, size_t n)
{
    uint32_t flags;

    if (!debugcon_present())
        return;
    flags = irq_save();
    write(text, n);
    write("\n", 1);
    irq_restore(flags);
}

/* An event that does not fit is dropped: truncated JSON breaks parsers. */
void debugcon_event(const char *fmt, ...)
{
    static const char too_long[] = "{\"event\":\"too-long\"}";
    static char text[EVENT_MAX]; /* guarded by disabled interrupts */
    uint32_t flags;
    va_list ap;
    int n;

    if (!debugcon_present())
        return;
    flags = irq_save();
    va_start(ap, fmt);
    n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if ((size_t)n < sizeof(text))
        debugcon_line(text, (size_t)n);
    else
        debugcon_line(too_long, sizeof(too_long) - 1);
    irq_restore(flags);
}

void debugcon_escape(const char *text, char *out, size_t size)
{
    size_t n = 0;

    for (; *text != '\0' && n + 2 < size; text++) {
        if (*text == '"' || *text == '\\')
            out[n++] = '\\';
        out[n++] = *text >= ' ' && *text < 127 ? *text : '?';
    }
    out[n] = '\0';
}
