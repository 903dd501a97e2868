/*
 * Reports for a debugger: see report.h.
 */
#include "kernel/shell/report.h"
#include "drivers/console.h"
#include "kernel/shell/pager.h"
#include "kernel/x86/panic.h"

struct report report;

void __attribute__((noipa)) report_full(void)
{
}

static void keep_text(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (report.report_length == REPORT_TEXT) {
            report_full();
            report.report_length = 0;
        }
        report.report_text[report.report_length++] = s[i];
    }
}

int report_run(void)
{
    panic_pretend();
    console_divert(keep_text);
    pager_begin();
    return shell_report(report.report_line);
}
