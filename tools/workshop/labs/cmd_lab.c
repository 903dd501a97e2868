/*
 * The command `lab`: the tests of the labs that need nothing but a running
 * kernel, tried at the prompt.
 */
#include "drivers/console.h"
#include "tools/workshop/labs/lab.h"
#include "kernel/lib/string.h"
#include "kernel/shell/shell.h"

static bool needs_boot(const struct lab_test *t)
{
    return t->lab_stage == LAB_EARLY || t->lab_stage == LAB_PAGES;
}

/* The test whose name comes next after `last`, or NULL. */
static const struct lab_test *next_test(const char *last)
{
    const struct lab_test *next = NULL;

    for (const struct lab_test *t = __start_lab_tests; t < __stop_lab_tests;
         t++)
        if (strcmp(t->lab_name, last) > 0 &&
            (next == NULL || strcmp(t->lab_name, next->lab_name) < 0))
            next = t;
    return next;
}

static void list(void)
{
    const struct lab_test *t = next_test("");

    for (; t != NULL; t = next_test(t->lab_name))
        kprintf("%-24s%s\n", t->lab_name,
                needs_boot(t) ? "while the kernel starts: option grade="
                              : "here");
}

static int cmd_lab(char **argv)
{
    const struct lab_test *t;

    if (!argv[1]) {
        list();
        return 0;
    }
    t = labs_find(argv[1]);
    if (t == NULL)
        return shell_error("no test \"%.32s\"; `lab` lists them", argv[1]);
    if (needs_boot(t))
        return shell_error("%s runs while the kernel starts: make run "
                           "APPEND=grade=%s",
                           t->lab_name, t->lab_name);
    return labs_try(t) ? 0 : 1;
}

static void offer_tests(const struct shell_offer *o)
{
    for (const struct lab_test *t = __start_lab_tests; t < __stop_lab_tests;
         t++)
        shell_offer(o, t->lab_name);
}

SHELL_COMMAND(lab, {"[TEST]", cmd_lab, SHELL_ACTION});
SHELL_WORDS(TEST, offer_tests);
