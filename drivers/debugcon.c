/*
 * Port 0xE9 of Bochs and QEMU: bytes written go to a file of the host; it reads
 * as 0xE9 if it exists.
 */
#include "drivers/debugcon.h"
#include "kernel/lib/printf.h"
#include "kernel/x86/io.h"
#include "kernel/x86/spinlock.h"

#define PORT_DEBUG 0xE9
#define EVENT_MAX  (DEBUGCON_LINE_MAX + 1)

/* The port: a line is written whole; and the text of an event. */
static struct spinlock debugcon_lock =
    SPINLOCK_INIT("debugcon", LOCK_RANK_DEBUGCON);

bool debugcon_present(void)
{
    return inb(PORT_DEBUG) == PORT_DEBUG;
}

static void debugcon_write_line(const char *text, size_t n)
{
    spin_assert_held(&debugcon_lock);
    for (size_t i = 0; i < n; i++)
        outb(PORT_DEBUG, (uint8_t)text[i]);
    outb(PORT_DEBUG, '\n');
}

void debugcon_line(const char *text, size_t n)
{
    if (!debugcon_present())
        return;
    spin_lock(&debugcon_lock);
    debugcon_write_line(text, n);
    spin_unlock(&debugcon_lock);
}

/* An event that does not fit is dropped: truncated JSON breaks parsers. */
void debugcon_event(const char *fmt, ...)
{
    static const char too_long[] = "{\"event\":\"too-long\"}";
    static char text[EVENT_MAX];
    va_list ap;
    int n;

    if (!debugcon_present())
        return;
    spin_lock(&debugcon_lock);
    va_start(ap, fmt);
    n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if ((size_t)n < sizeof(text))
        debugcon_write_line(text, (size_t)n);
    else
        debugcon_write_line(too_long, sizeof(too_long) - 1);
    spin_unlock(&debugcon_lock);
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
