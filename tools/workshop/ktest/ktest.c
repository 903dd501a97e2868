/*
 * Failed expectations of the kernel's tests: each is a line that KTAP takes for
 * a comment, and an event.
 */
#include "tools/workshop/ktest/failures.h"
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "kernel/lib/printf.h"
#include "kernel/vm/commit.h"

#define EVENT_TEXT 300 /* always fits an event, escaped */

static unsigned failures;
static char skipped[80];

void ktest_begin(void)
{
    failures = 0;
    skipped[0] = '\0';
}

unsigned ktest_failures(void)
{
    return failures;
}

const char *ktest_skipped(void)
{
    return skipped;
}

bool ktest_enough(size_t bytes)
{
    struct commit_stat st;
    size_t there;

    commit_stat(&st);
    there = st.stat_available * PAGE_SIZE;
    if (there < bytes)
        snprintf(skipped, sizeof(skipped),
                 "needs %zu KiB of free memory, has %zu", bytes >> 10,
                 there >> 10);
    return there >= bytes;
}

void ktest_fail(const char *file, int line, const char *fmt, ...)
{
    char text[EVENT_TEXT];
    char escaped[EVENT_TEXT];
    va_list ap;

    failures++;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    kprintf("# %s:%d: %s\n", file, line, text);
    debugcon_escape(text, escaped, sizeof(escaped));
    debugcon_event("{\"event\":\"expectation\",\"file\":\"%s\",\"line\":%d,"
                   "\"text\":\"%s\"}",
                   file, line, escaped);
}
