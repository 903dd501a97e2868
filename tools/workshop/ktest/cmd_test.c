/*
 * The command `test`: runs the kernel's test cases and prints KTAP (the
 * kernel's dialect of the Test Anything Protocol, version 1).
 *
 * Every case is checked for leaks (leak.h).
 */
#include "tools/workshop/ktest/failures.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/shell.h"
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "tools/workshop/ktest/leak.h"

static void say_leak(const char *line)
{
    KT_FAIL("leak: %s", line);
}

/* ---- running ------------------------------------------------------------ */

static bool run_case(const struct ktest *t, unsigned number)
{
    const char *skipped = ktest_skipped();
    bool failed;

    leak_note(true);
    ktest_run(t->ktest_run, leak_free);
    leak_check(say_leak);
    failed = ktest_failures() > 0;
    kprintf("%s %u - %s.%s%s%s\n", failed ? "not ok" : "ok", number,
            t->ktest_suite, t->ktest_name, skipped[0] == '\0' ? "" : " # SKIP ",
            skipped);
    debugcon_event("{\"event\":\"test\",\"suite\":\"%s\",\"name\":\"%s\","
                   "\"ok\":%s,\"skipped\":\"%s\"}",
                   t->ktest_suite, t->ktest_name, failed ? "false" : "true",
                   skipped);
    return !failed;
}

static int run_selected(const char *what)
{
    unsigned n = 0;
    unsigned passed = 0;

    kprintf("KTAP version 1\n1..%u\n", ktest_count(what));
    for (const struct ktest *t = __start_ktests; t < __stop_ktests; t++) {
        if (!ktest_selected(t, what))
            continue;
        if (shell_interrupted()) {
            kprintf("Bail out! interrupted after %u cases\n", n);
            break;
        }
        n++;
        passed += run_case(t, n);
    }
    kprintf("# %u passed, %u failed\n", passed, n - passed);
    debugcon_event("{\"event\":\"tests\",\"passed\":%u,\"failed\":%u}", passed,
                   n - passed);
    return passed == n ? 0 : 1;
}

static void list(const char *what)
{
    for (const struct ktest *t = __start_ktests; t < __stop_ktests; t++)
        if (ktest_selected(t, what))
            kprintf("%s.%s\n", t->ktest_suite, t->ktest_name);
}

static int cmd_test(char **argv)
{
    if (ktest_count(argv[1]) == 0)
        return shell_error("no suite or case \"%.32s\"; `test -l` lists them",
                           argv[1]);
    if (!shell_option('l'))
        return run_selected(argv[1]);
    list(argv[1]);
    return 0;
}

static void offer_suites(const struct shell_offer *o)
{
    for (const struct ktest *t = __start_ktests; t < __stop_ktests; t++)
        shell_offer(o, t->ktest_suite);
}

/* There are thousands: only those of the suite that was typed. */
static void offer_cases(const struct shell_offer *o)
{
    char name[LINE_MAX + 1];

    for (const struct ktest *t = __start_ktests; t < __stop_ktests; t++) {
        snprintf(name, sizeof(name), "%s.%s", t->ktest_suite, t->ktest_name);
        if (strchr(o->offer_typed, '.'))
            shell_offer(o, name);
    }
}

SHELL_COMMAND(test, cmd_test);
SHELL_WORDS(SUITE, offer_suites);
SHELL_WORDS(CASE, offer_cases);
