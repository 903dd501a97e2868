/*
 * The command `test`: runs the kernel's test cases and prints KTAP (the
 * kernel's dialect of the Test Anything Protocol, version 1).
 *
 * Every case is checked for leaks (leak.h).
 */
#include "tools/workshop/ktest/failures.h"
#include "kernel/cmdline.h"
#include "kernel/lib/printf.h"
#include "kernel/task/task.h"
#include "kernel/lib/string.h"
#include "kernel/shell/pager.h"
#include "kernel/shell/shell.h"
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "mm/debug/debug.h"
#include "mm/kmem_impl.h"
#include "tools/workshop/ktest/leak.h"

static bool run_case(const struct ktest *t, unsigned number, void *unused)
{
    const char *skipped = ktest_skipped();
    bool failed;

    (void)unused;
    leak_note(true);
    ktest_run(t->ktest_run, leak_free);
    leak_check(ktest_leak);
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

static void list(const char *what)
{
    for (const struct ktest *t = __start_ktests; t < __stop_ktests; t++)
        if (ktest_selected(t, what))
            kprintf("%s.%s\n", t->ktest_suite, t->ktest_name);
}

static int cmd_test(char **argv)
{
    int result;

    if (!ktest_exists(argv[1]))
        return 1;
    if (shell_option('l')) {
        list(argv[1]);
        return 0;
    }
    pager_to_end();
    kmem_handles_keep(false); /* cases count slabs, */
    sched_confine(true);      /* know in which order tasks run */
    if (MM_MAGAZINES)
        kmem_mag_disable(); /* and which object is allocated next */
    result = ktest_each(argv[1], run_case, NULL);
    if (MM_MAGAZINES)
        kmem_mag_enable();
    sched_confine(false);
    kmem_handles_keep(cmdline_debugs());
    return result;
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

SHELL_COMMAND(test, {"[-l] [SUITE|CASE]", cmd_test, SHELL_ACTION});
SHELL_WORDS(SUITE, offer_suites);
SHELL_WORDS(CASE, offer_cases);
