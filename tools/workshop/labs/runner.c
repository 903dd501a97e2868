/*
 * Runs the test of a lab that grade= names, and says how it ended.
 *
 *     options ──> set_grade ──> early / pages / all_up (kernel/lib/hook.h)
 *                                       │ the test, the table of leaks
 *                                       v
 *                                  verdict, signed ──> port 0xE9, power_exit
 *
 * The verdict is a record on the debug port, signed with a key that the grader
 * made for this run and this test: other output, wherever printed, earns
 * nothing. While the test runs the key is in the debug registers, which a
 * stray pointer or a dump of memory does not reach. Code in ring 0 can still
 * read it on purpose; docs/labs.md says what follows from that.
 */
#include "tools/workshop/labs/lab.h"
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "drivers/power.h"
#include "tools/workshop/ktest/failures.h"
#include "tools/workshop/labs/lab_impl.h"
#include "tools/workshop/labs/siphash.h"
#include "tools/workshop/labs/watchdog.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/option.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/x86/panic.h"
#include "tools/workshop/ktest/leak.h"
#include "kernel/shell/shell.h"
#include "kernel/x86/paging.h"

#define SECONDS 2 /* that a test may take, unless it asks for more */

static const struct lab_test *selected;
static bool keyed; /* there is a key: the run is graded */
static bool hangs;
static bool up; /* there are tasks and commands */
static unsigned leaks;
static unsigned rows;                  /* of the table of leaks */
static const struct lab_test *running; /* its function, or NULL */
static bool must_panic;

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
    if (selected == NULL)
        debugcon_event("{\"event\":\"lab-unknown\"}");
    return selected != NULL;
}

BOOT_OPTION(grade, "grade=", "grade=TEST",
            "run a test of the labs and end (docs/labs.md)", set_grade);

/* Eight hexadecimal digits; false if one is not. */
static bool take_word(const char *digits, uint32_t *word)
{
    *word = 0;
    for (unsigned i = 0; i < 8; i++) {
        char c = digits[i];

        if (c >= '0' && c <= '9')
            *word = *word << 4 | (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            *word = *word << 4 | (uint32_t)(c - 'a' + 10);
        else
            return false;
    }
    return true;
}

/* The key is in DR0 to DR3: only addresses until DR7 makes them breakpoints
 * (Intel SDM volume 3, chapter 17), and the kernel does not use them. */
static void read_key(uint32_t out[4])
{
    __asm__ volatile("mov %%db0, %0" : "=r"(out[0]));
    __asm__ volatile("mov %%db1, %0" : "=r"(out[1]));
    __asm__ volatile("mov %%db2, %0" : "=r"(out[2]));
    __asm__ volatile("mov %%db3, %0" : "=r"(out[3]));
}

static void write_key(const uint32_t in[4])
{
    __asm__ volatile("mov %0, %%db0" : : "r"(in[0]));
    __asm__ volatile("mov %0, %%db1" : : "r"(in[1]));
    __asm__ volatile("mov %0, %%db2" : : "r"(in[2]));
    __asm__ volatile("mov %0, %%db3" : : "r"(in[3]));
}

/* Writes the key to the debug registers and removes its text. */
static bool set_key(char *digits)
{
    uint32_t word[4];
    size_t length = strlen(digits);
    bool right = length == 32;

    for (unsigned i = 0; i < 4 && right; i++)
        right = take_word(digits + 8 * i, &word[i]);
    memset(digits, '-', length);
    if (right)
        write_key(word);
    memset(word, 0, sizeof(word));
    keyed = right;
    return right;
}

BOOT_OPTION(gradekey, "gradekey=", "gradekey=HEX",
            "32 digits: sign the verdict of grade= with this key", set_key);

/* Removes the key from the boot loader's own line. */
static void wipe_key(const struct multiboot_info *info)
{
    char *key;

    if ((info->info_flags & MULTIBOOT_CMDLINE) == 0)
        return;
    key = strstr((char *)(info->info_cmdline + KERNEL_BASE), "gradekey=");
    if (key == NULL)
        return;
    for (key += strlen("gradekey="); *key != ' ' && *key != '\0'; key++)
        *key = '-';
}

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

static bool run(const struct lab_test *t)
{
    leaks = 0;
    rows = 0;
    must_panic = false;
    if (has_heap(t))
        leak_note(t->lab_stage == LAB_UP);
    running = t;
    ktest_run(t->lab_run, NULL);
    running = NULL;
    if (t->lab_panics != NULL)
        KT_FAIL("there was no panic with \"%s\"", t->lab_panics);
    check_skipped();
    print_leaks(t);
    kprintf("%s %s", t->lab_name, ktest_failures() == 0 ? "passes" : "fails");
    kprintf(leaks == 0 ? "\n" : ", and leaks\n");
    return ktest_failures() == 0;
}

bool labs_try(const struct lab_test *t)
{
    return run(t) && leaks == 0;
}

/* The key leaves the registers only for the moment of signing. */
static uint64_t sign(const char *text)
{
    uint32_t word[4];
    uint64_t mac;

    read_key(word);
    mac = siphash((uint64_t)word[0] << 32 | word[1],
                  (uint64_t)word[2] << 32 | word[3], text, strlen(text));
    memset(word, 0, sizeof(word));
    return mac;
}

static void verdict(bool passed)
{
    const char *result = passed ? "pass" : "fail";
    char text[128];

    snprintf(text, sizeof(text), "%s %s %u", selected->lab_name, result, leaks);
    debugcon_line("", 0); /* ends a line begun before */
    debugcon_event("{\"event\":\"verdict\",\"test\":\"%s\",\"result\":\"%s\","
                   "\"leaks\":%u,\"mac\":\"%016llx\"}",
                   selected->lab_name, result, leaks,
                   (unsigned long long)sign(text));
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
    if (keyed)
        watchdog_start(seconds, hang);
}

/* Prints the waiting tasks. */
static void show_waiters(void)
{
    char ps[] = "ps";
    char ipc[] = "ipc";

    kprintf("the waiting tasks (ps, ipc):\n");
    shell_execute(ps);
    shell_execute(ipc);
}

void lab_must_panic(void)
{
    if (running == NULL || running->lab_panics == NULL)
        panic("lab_must_panic is for a test that says which panic ends it");
    kprintf("the next call must panic: \"... %s ...\"\n", running->lab_panics);
    must_panic = true;
}

/* After a panic or halt: a graded run reports what it can, and ends. */
static void stopped(const void *arg)
{
    (void)arg;
    if (!keyed)
        return;
    watchdog_stop();
    if (hangs && up)
        show_waiters();
    power_exit(1);
}

HOOK(HOOK_STOPPED, stopped);

static void halted(const void *arg)
{
    stopped(arg);
}

HOOK(HOOK_HALTED, halted);

/* ---- stages ------------------------------------------------------------- */

static void __attribute__((noreturn)) end(bool passed)
{
    watchdog_stop();
    if (keyed)
        verdict(passed);
    power_exit(passed ? 0 : 1);
}

static void run_selected(void)
{
    lab_seconds(SECONDS);
    end(run(selected));
}

/* The panic that the running test must end with, ends it here. */
static void panics(const void *arg)
{
    const char *text = arg;

    if (running == NULL || running != selected || !must_panic ||
        strstr(text, running->lab_panics) == NULL)
        return;
    running = NULL;
    kprintf("panic, as required: %s\n", text);
    check_skipped();
    end(ktest_failures() == 0);
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
    wipe_key(arg);
    if (keyed && selected == NULL)
        power_exit(1);    /* nobody waits for a prompt */
    lab_seconds(SECONDS); /* a kernel may hang on its way to the test */
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

HOOK(HOOK_UP, all_up);
