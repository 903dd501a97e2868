/*
 * Choosing and running cases of the kernel's tests, and their failed
 * expectations: each is a line that KTAP takes for a comment, and an event.
 */
#include "tools/workshop/ktest/failures.h"
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/shell.h"
#include "kernel/vm/commit.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/panic.h"

#define EVENT_TEXT 300 /* always fits an event, escaped */
#define UNDO_MAX   16

static unsigned failures;
static char skipped[80];
static bool (*excused)(void);
static void *case_end[5];
static struct {
    void (*undo)(void *arg);
    void *undo_arg;
    bool undo_always; /* else only if the case is stopped */
} undos[UNDO_MAX];
static unsigned undo_count;

/* ---- the cases ---------------------------------------------------------- */

bool ktest_selected(const struct ktest *t, const char *what)
{
    size_t len = strlen(t->ktest_suite);

    if (!what)
        return true;
    if (strncmp(what, t->ktest_suite, len) != 0)
        return false;
    return what[len] == 0 ||
           (what[len] == '.' && strcmp(what + len + 1, t->ktest_name) == 0);
}

static unsigned count(const char *what)
{
    unsigned n = 0;

    for (const struct ktest *t = __start_ktests; t < __stop_ktests; t++)
        n += ktest_selected(t, what);
    return n;
}

bool ktest_exists(const char *what)
{
    if (count(what) == 0)
        shell_error("no suite or case \"%.32s\"; `test -l` lists them", what);
    return count(what) != 0;
}

int ktest_each(const char *what,
               bool (*run)(const struct ktest *t, unsigned number, void *arg),
               void *arg)
{
    unsigned n = 0;
    unsigned passed = 0;

    kprintf("KTAP version 1\n1..%u\n", count(what));
    for (const struct ktest *t = __start_ktests; t < __stop_ktests; t++) {
        if (!ktest_selected(t, what))
            continue;
        if (shell_interrupted()) {
            kprintf("Bail out! interrupted after %u cases\n", n);
            break;
        }
        passed += run(t, ++n, arg);
    }
    kprintf("# %u passed, %u failed\n", passed, n - passed);
    debugcon_event("{\"event\":\"tests\",\"passed\":%u,\"failed\":%u}", passed,
                   n - passed);
    return passed == n ? 0 : 1;
}

/* ---- running ------------------------------------------------------------ */

static void add_undo(void (*fn)(void *arg), void *arg, bool always)
{
    for (unsigned i = 0; i < undo_count; i++)
        if (undos[i].undo == fn && undos[i].undo_arg == arg)
            return;
    if (undo_count == UNDO_MAX)
        panic("a test case has more than %u things to undo", UNDO_MAX);
    undos[undo_count].undo = fn;
    undos[undo_count].undo_arg = arg;
    undos[undo_count++].undo_always = always;
}

void ktest_undo(void (*fn)(void *arg), void *arg)
{
    add_undo(fn, arg, false);
}

void ktest_finally(void (*fn)(void *arg), void *arg)
{
    add_undo(fn, arg, true);
}

static void call_undos(bool stopped)
{
    while (undo_count != 0) {
        undo_count--;
        if (stopped || undos[undo_count].undo_always)
            undos[undo_count].undo(undos[undo_count].undo_arg);
    }
}

void ktest_excuse(bool (*when)(void))
{
    excused = when;
}

void ktest_run(void (*run)(void), void (*undo)(void *arg))
{
    failures = 0;
    skipped[0] = '\0';
    undo_count = 0;
    if (undo != NULL)
        ktest_undo(undo, NULL);
    if (__builtin_setjmp(case_end) == 0) {
        run();
        call_undos(false);
    }
}

/* What the case has to undo may use its variables, so its frames are still
 * there. */
void ktest_end(void)
{
    call_undos(true);
    __builtin_longjmp(case_end, 1);
}

void ktest_stop(const char *file, int line, const char *what)
{
    ktest_fail(file, line, "required: %s", what);
    ktest_end();
}

void ktest_leak(const char *line)
{
    KT_FAIL("leak: %s", line);
}

/* ---- what became of it -------------------------------------------------- */

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

#define ROUNDS 1000 /* of a loop */

static __attribute__((noinline)) uint64_t time_of_loop(void)
{
    uint64_t start = rdtsc();

    for (volatile int i = 0; i < ROUNDS; i++)
        continue;
    return rdtsc() - start;
}

/* If a tick is an instruction, a loop always takes the same. In v86 it may take
 * none: counter and clock stand still within a block of code. */
bool ktest_ticks_are_exact(void)
{
    uint32_t flags = irq_save();
    uint64_t first = time_of_loop();
    bool same = first >= ROUNDS;

    for (int i = 0; i < 3; i++)
        same &= time_of_loop() == first;
    irq_restore(flags);
    return same;
}

bool ktest_ticks_come_anywhere(void)
{
    return time_of_loop() >= ROUNDS;
}

void ktest_skip(const char *why)
{
    strlcpy(skipped, why, sizeof(skipped));
}

void ktest_sound(const char *file, int line, ktest_verifier *verify)
{
    const char *where = "";
    const char *wrong = verify(&where);

    if (wrong != NULL)
        ktest_fail(file, line, "%s: %s", where, wrong);
}

void ktest_unsound(const char *file, int line, ktest_verifier *verify,
                   const char *text)
{
    const char *where = "";
    const char *wrong = verify(&where);

    if (wrong == NULL || strstr(wrong, text) == NULL)
        ktest_fail(file, line, "verify says '%s', not '%s'",
                   wrong == NULL ? "" : wrong, text);
}

void ktest_fail(const char *file, int line, const char *fmt, ...)
{
    char text[EVENT_TEXT];
    char escaped[EVENT_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (excused != NULL && excused()) {
        snprintf(skipped, sizeof(skipped), "no memory: %s", text);
        return;
    }
    failures++;
    kprintf("# %s:%d: %s\n", file, line, text);
    debugcon_escape(text, escaped, sizeof(escaped));
    debugcon_event("{\"event\":\"expectation\",\"file\":\"%s\",\"line\":%d,"
                   "\"text\":\"%s\"}",
                   file, line, escaped);
}
