/*
 * Reports for a debugger: see asked.h.
 */
#include "kernel/shell/asked.h"
#include "drivers/console.h"
#include "kernel/shell/pager.h"
#include "kernel/x86/panic.h"

struct asked asked;

void __attribute__((noipa)) asked_full(void)
{
}

/* A console pager. */
static bool hear(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (asked.asked_length == ASKED_TEXT) {
            asked_full();
            asked.asked_length = 0;
        }
        asked.asked_text[asked.asked_length++] = s[i];
    }
    return true;
}

int asked_run(void)
{
    panic_pretend();
    console_divert(hear);
    pager_begin();
    return shell_ask(asked.asked_line);
}
