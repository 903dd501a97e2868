/*
 * What mm/ asks of the kernel (mm/platform.h): the clock, waiting, printing,
 * panicking, backtraces.
 */
#include "drivers/console.h"
#include "drivers/pit.h"
#include "kernel/lib/printf.h"
#include "kernel/panic.h"
#include "kernel/shell/shell.h"
#include "kernel/x86/backtrace.h"
#include "mm/platform.h"

uint64_t mm_clock_ms(void)
{
    return timer_ms();
}

/* There is nobody yet who could give memory back while this one waits. What
 * holds the memory is the next question, so it is answered. */
bool mm_wait_for_memory(void)
{
    char command[] = "kmastat -z";

    kprintf("\nout of memory: a KM_SLEEP allocation would wait for ever\n");
    shell_execute(command);
    return false;
}

void mm_memory_returned(void)
{
}

void mm_print(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    kvprintf(fmt, ap);
    va_end(ap);
}

void mm_panic(const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    panic("%s", text);
}

unsigned mm_backtrace(uintptr_t *pc, unsigned max)
{
    return backtrace(read_ebp(), pc, max);
}
