/*
 * Runs the test of a lab that grade= names, and notes how it ended.
 *
 *     option ──> set_grade ──> early / pages / all_up (kernel/lib/hook.h)
 *                                      │ the test, the table of leaks
 *                                      v
 *                                 lab_result ──> power_exit
 *
 * The grader boots with panic=exit and reads lab_result from the machine's
 * memory after its end (tools/grading/stopped.py). What is printed, and the
 * records on the debug port, are for people: they earn nothing.
 */
#include "tools/workshop/labs/lab.h"
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "drivers/power.h"
#include "tools/workshop/ktest/failures.h"
#include "tools/workshop/labs/guard.h"
#include "tools/workshop/labs/lab_impl.h"
#include "tools/workshop/labs/watchdog.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/option.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/panic.h"
#include "tools/workshop/ktest/leak.h"
#include "kernel/shell/shell.h"
#include "kernel/x86/paging.h"

#define SECONDS 2 /* that a test may take, unless it asks for more */

static const struct lab_test *selected;
static bool unknown; /* there is no such test */
static bool hangs;
static bool up; /* there are tasks and commands */
static unsigned leaks;
static unsigned rows;                  /* of the table of leaks */
static const struct lab_test *running; /* its function, or NULL */
static bool must_panic;

/* Global: the grader finds it by its name, which a static variable of a
 * hand-in could have as well. */
volatile struct lab_result lab_result;

/* ---- options ------------------------------------------------------------ */

const struct lab_test *labs_find(const char *name)
{
    for (const struct lab_test *t = __start_lab_tests; t < __stop_lab_tests;
         t++)
        if (strcmp(t->lab_name, name) == 0)
            return t;
    return NULL;
}

static bool set_grade(char *name)
{
    selected = labs_find(name);
    unknown = selected == NULL;
    if (unknown)
        debugcon_event("{\"event\":\"lab-unknown\"}");
    return !unknown;
}

BOOT_OPTION(grade, "grade=", "grade=TEST",
            "run a test of the labs and end (docs/labs.md)", set_grade);

/* ---- the table of leaks ------------------------------------------------- */

static void say_leak(const char *line)
{
    char escaped[160];

    kprintf("  %s\n", line);
    debugcon_escape(line, escaped, sizeof(escaped));
    debugcon_event("{\"event\":\"leak\",\"text\":\"%s\"}", escaped);
}

void lab_held(const char *what, size_t now, size_t before)
{
    char line[96];

    rows++;
    snprintf(line, sizeof(line), "%s: %zu, had %zu", what, now, before);
    if (now == before) {
        kprintf("  %s\n", line);
        return;
    }
    leaks++;
    say_leak(line);
}

static bool has_heap(const struct lab_test *t)
{
    return t->lab_stage == LAB_UP || t->lab_stage == LAB_BARE;
}

static void print_leaks(const struct lab_test *t)
{
    kprintf("leaked by %s:\n", t->lab_name);
    if (has_heap(t))
        leaks += leak_check(say_leak);
    else if (rows == 0)
        kprintf("  the heap does not exist yet\n");
    if (leaks == 0 && (has_heap(t) || rows > 0))
        kprintf("  nothing\n");
}

/* ---- running ------------------------------------------------------------ */

/* A test that expects nothing, because it was skipped, has not passed. */
static void check_skipped(void)
{
    if (ktest_skipped()[0] == '\0')
        return;
    ktest_excuse(NULL);
    KT_FAIL("the test was skipped: %s", ktest_skipped());
}

/* After a lock that was not released, interrupts stay disabled. So they may
 * after one that was released and not taken, and guards see no write then. */
static void check_interrupts(void)
{
    if (read_eflags() & EFLAGS_IF)
        return;
    irq_enable();
    KT_FAIL("interrupts were disabled at the end: a lock was not released, or "
            "released and not taken");
}

static bool run(const struct lab_test *t)
{
    leaks = 0;
    rows = 0;
    must_panic = false;
    if (has_heap(t))
        leak_note(t->lab_stage == LAB_UP);
    running = t;
    ktest_run(t->lab_run, NULL);
    lab_unguard();
    running = NULL;
    if (t->lab_panics != NULL)
        KT_FAIL("there was no panic with \"%s\"", t->lab_panics);
    check_skipped();
    if (has_heap(t))
        check_interrupts();
    print_leaks(t);
    kprintf("%s %s", t->lab_name, ktest_failures() == 0 ? "passes" : "fails");
    kprintf(leaks == 0 ? "\n" : ", and leaks\n");
    return ktest_failures() == 0;
}

bool labs_try(const struct lab_test *t)
{
    return run(t) && leaks == 0;
}

/* ---- tests that hang ---------------------------------------------------- */

/* The watchdog's interrupt. The frames that follow say where. */
static bool hang(struct trapframe *tf)
{
    char text[96];
    char where[64];

    hangs = true;
    symbol_format(tf->eip, where, sizeof(where));
    debugcon_event("{\"event\":\"lab-hang\",\"at\":\"%s\"}", where);
    snprintf(text, sizeof(text), "the test %s hangs, in %s", selected->lab_name,
             where);
    panic_at(tf, text);
}

void lab_seconds(unsigned seconds)
{
    if (selected != NULL)
        watchdog_start(seconds, hang);
}

/* Prints the waiting tasks. */
static void show_waiters(void)
{
    char ps[] = "ps";
    char ports[] = "ports -w";

    kprintf("the waiting tasks (ps, ports -w):\n");
    shell_execute(ps);
    shell_execute(ports);
}

void lab_must_panic(void)
{
    if (running == NULL || running->lab_panics == NULL)
        panic("lab_must_panic is for a test that says which panic ends it");
    kprintf("the next call must panic: \"%s\"\n", running->lab_panics);
    must_panic = true;
}

/* After a panic. */
static void stopped(const void *arg)
{
    (void)arg;
    watchdog_stop();
    if (hangs && up)
        show_waiters();
}

HOOK(HOOK_STOPPED, stopped);

/* ---- stages ------------------------------------------------------------- */

static void __attribute__((noreturn)) end(void)
{
    watchdog_stop();
    lab_result.failures = ktest_failures();
    lab_result.leaks = leaks;
    lab_result.over = selected;
    power_exit(lab_result.failures == 0 ? 0 : 1);
}

static void run_selected(void)
{
    lab_seconds(SECONDS);
    run(selected);
    end();
}

static bool begins_or_ends(const char *text, const char *part)
{
    size_t len = strlen(part);

    return strncmp(text, part, len) == 0 ||
           (strlen(text) > len && strcmp(text + strlen(text) - len, part) == 0);
}

/* The panic that the running test must end with, ends it here. */
static void panics(const void *arg)
{
    const char *text = arg;

    if (running == NULL || running != selected || !must_panic ||
        !begins_or_ends(text, running->lab_panics))
        return;
    running = NULL;
    kprintf("panic, as required: %s\n", text);
    check_skipped();
    end();
}

HOOK(HOOK_PANIC, panics);

static bool is_now(enum lab_stage stage)
{
    return selected != NULL && selected->lab_stage == stage;
}

/* Each stage runs the selected test if it belongs to the stage, and then does
 * not return. */
static void early(const void *arg)
{
    if (unknown && panic_exits)
        power_exit(PANIC_EXIT); /* nobody waits for a prompt */
    lab_seconds(SECONDS);       /* a kernel may hang on its way to the test */
    if (!is_now(LAB_EARLY))
        return;
    lab_arena_init(arg);
    run_selected();
}

HOOK(HOOK_EARLY, early);

static void pages(const void *arg)
{
    (void)arg;
    if (is_now(LAB_PAGES))
        run_selected();
}

HOOK(HOOK_FRAMES_TEST, pages);

static void all_up(const void *arg)
{
    (void)arg;
    up = true;
    if (is_now(LAB_UP) || is_now(LAB_BARE))
        run_selected();
}

HOOK(HOOK_PROMPT_TEST, all_up);
