/*
 * The host test program: every KTEST of mm/ as a cmocka unit test, and random
 * traces against the shadow model.
 *
 *     mmtest                    all cases, TAP on standard output
 *     mmtest SUITE[.CASE] …     these, in this order
 *     mmtest CASE:STEPS …       these, each with a budget of so many steps
 *     mmtest -s …               the same, and how many steps each case took
 *     mmtest -f …               the same, up to the first case that fails
 *     mmtest -l                 list the cases
 *     mmtest -n SUITE.CASE      one case in this process, for a debugger
 *     mmtest -t [SEED [OPS]]    a random trace; the seed is printed
 *     mmtest -m [SEED [OPS]]    one while debugging modes come and go
 *     mmtest -x [A[+B[@K[,J]]]] schedules of two operations
 *     mmtest -d [A[+B]]         the same, and the second stops as well
 *     mmtest -r SEED [N]        the schedules of N seeds
 *     mmtest -r SEED.NUMBER     one of them, with all its steps
 *
 * Each case runs in a process and on a machine of its own, so that one that
 * crashes, hangs or spoils memory ends alone. It hangs if it takes more steps
 * than its budget has (tools/test/budget.h). After it the same checks stand
 * as in the kernel: nothing leaked, every invariant holds, no lock is held.
 */
#define _GNU_SOURCE /* strverscmp */

#include "tools/workshop/ktest/ktest.h"
#include "mm/buddy.h"
#include "mm/debug/debug.h"
#include "mm/kmem_impl.h"
#include "mm/inspect/kmem_stat.h"
#include "mm/segkmem.h"
#include "mm/tests/host/host.h"
#include "tools/test/budget.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define REPORT_MAX 4096
/* Budgets: 20 times what the longest case takes, the average operation of a
 * trace, and of one while modes come and go. */
#define CASE_STEPS     13000000000
#define TRACE_OP_STEPS 33000
#define MODES_OP_STEPS 170000

#ifdef CONFIG_COVERAGE
void __gcov_dump(void);
#endif

unsigned host_failures;

void ktest_fail(const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    if (host_failures++ == 20)
        printf("and more\n");
    if (host_failures > 20)
        return;
    printf("%s:%d: ", file, line);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}

static jmp_buf case_end;

void ktest_stop(const char *file, int line, const char *what)
{
    ktest_fail(file, line, "required: %s", what);
    longjmp(case_end, 1);
}

/* A stopped case ends with its process. */
void ktest_undo(void (*fn)(void *arg), void *arg)
{
    (void)fn;
    (void)arg;
}

/* No case is skipped: the arena has enough for each. */
bool ktest_enough(size_t bytes)
{
    KT_GE(buddy_free_pages() * PAGE_SIZE, bytes);
    return true;
}

/* ---- one case ----------------------------------------------------------- */

struct held {
    size_t pages;
    size_t others; /* not mm/'s, and not free either */
    size_t caches;
    size_t inuse;
};

static struct held held_now(void)
{
    struct held h = {0};
    struct segkmem_stat seg;

    kmem_reap(KMEM_REAP_ALL);
    segkmem_stat(&seg);
    h.pages = seg.stat_pages;
    h.others =
        page_count - seg.stat_pages - kmem_log_pages() - buddy_free_pages();
    for (struct kmem_cache *cp = kmem_cache_first(); cp != NULL;
         cp = kmem_cache_next(cp)) {
        struct kmem_cache_stat stat;

        kmem_cache_stat(cp, &stat);
        h.caches++;
        h.inuse += stat.stat_inuse;
    }
    return h;
}

static void check_after(const struct held *before)
{
    struct held after;

    host_check_unlocked("is still held after the case");
    host_verify();
    KT_EQ(kmem_transfers, 0);
    if (host_failures != 0)
        return;
    after = held_now();
    KT_EQ(after.caches, before->caches);
    KT_EQ(after.inuse, before->inuse);
    KT_EQ(after.pages, before->pages);
    KT_EQ(after.others, before->others);
}

void host_before_init(size_t frames, void (*fn)(void))
{
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        host_start_pages(frames);
        list_init(&kmem_caches);
        kmem_state = KMEM_DOWN;
        fn();
        fflush(stdout);
        budget_exit(host_failures == 0 ? 0 : 1);
    }
    KT_EQ(budget_wait(pid), 0);
}

/* A case, and its budget. */
struct chosen {
    const struct ktest *chosen_case;
    long long chosen_steps;
};

static bool shows_steps, ends_at_failure;

/* Runs the case on a fresh machine. True if it passed. */
static bool run_here(const struct ktest *t)
{
    struct held before;

    host_start_pages(HOST_FRAMES);
    kmem_init();
    host_magazines(false);
    before = held_now();
    if (setjmp(case_end) == 0)
        t->ktest_run();
    check_after(&before);
    return host_failures == 0;
}

/* cmocka catches these signals and goes on with the next case, which only the
 * parent may. */
static void let_it_crash(void)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};

    for (size_t i = 0; i < ARRAY_SIZE(crashes); i++)
        signal(crashes[i], SIG_DFL);
}

static void run_child(const struct chosen *c, int out)
{
    struct budget before;
    bool passed;

    let_it_crash();
    dup2(out, STDOUT_FILENO);
    before = budget_begin("the case", c->chosen_steps);
    passed = run_here(c->chosen_case);
    budget_end(before);
    fflush(stdout);
#ifdef CONFIG_COVERAGE
    __gcov_dump();
#endif
    budget_exit(passed ? 0 : 1);
}

/* The output of the child, its end omitted if it is too long. */
static void read_report(int in, char *report)
{
    char rest[256];
    size_t n = 0;
    ssize_t got;

    while ((got = read(in, report + n, REPORT_MAX - 1 - n)) > 0)
        n += (size_t)got;
    report[n] = '\0';
    while (read(in, rest, sizeof(rest)) > 0)
        ;
}

static void run_case(void **state)
{
    const struct chosen *c = *state;
    long long before = budget_left;
    char report[REPORT_MAX];
    int ends[2];
    int status;
    pid_t pid;

    fflush(stdout);
    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(ends[0]);
        run_child(c, ends[1]);
    }
    close(ends[1]);
    read_report(ends[0], report);
    close(ends[0]);
    status = budget_wait(pid);
    if (shows_steps)
        printf("# %s.%s: %lld steps\n", c->chosen_case->ktest_suite,
               c->chosen_case->ktest_name, before - budget_left);
    if (status != 0 && ends_at_failure)
        exit(1);
    if (WIFSIGNALED(status))
        fail_msg("%sended by signal %d", report, WTERMSIG(status));
    else if (status != 0)
        fail_msg("%s", report);
}

/* ---- which cases -------------------------------------------------------- */

static bool named(const struct ktest *t, const char *what)
{
    size_t n = strlen(t->ktest_suite);

    return strncmp(what, t->ktest_suite, n) == 0 &&
           (what[n] == '\0' ||
            (what[n] == '.' && strcmp(what + n + 1, t->ktest_name) == 0));
}

/* The budget in CASE:STEPS, which is cut off. */
static long long budget_of(char *what)
{
    char *colon = what == NULL ? NULL : strchr(what, ':');

    if (colon == NULL)
        return CASE_STEPS;
    *colon = '\0';
    return strtoll(colon + 1, NULL, 10);
}

static int compare(const void *a, const void *b)
{
    const struct CMUnitTest *x = a;
    const struct CMUnitTest *y = b;

    return strverscmp(x->name, y->name);
}

/* Adds the cases of a suite, or one case, or all (NULL), in order of their
 * names. Returns how many. */
static size_t select_cases(struct CMUnitTest *tests, char *what)
{
    long long steps = budget_of(what);
    size_t n = 0;

    for (const struct ktest *t = __start_ktests; t < __stop_ktests; t++) {
        struct chosen *c;
        char *name;

        if (what != NULL && !named(t, what))
            continue;
        name = malloc(strlen(t->ktest_suite) + strlen(t->ktest_name) + 2);
        sprintf(name, "%s.%s", t->ktest_suite, t->ktest_name);
        c = malloc(sizeof(*c));
        *c = (struct chosen){t, steps};
        tests[n++] = (struct CMUnitTest){
            .name = name, .test_func = run_case, .initial_state = c};
    }
    qsort(tests, n, sizeof(*tests), compare);
    return n;
}

/* The cases of these names, or all if there are none; NULL ends them. */
static int run_cases(char **names)
{
    size_t max = (size_t)(__stop_ktests - __start_ktests);
    size_t count = 1, n = 0;
    struct CMUnitTest *tests;

    while (names[0] != NULL && names[count] != NULL)
        count++;
    tests = calloc(max * count, sizeof(*tests));
    for (size_t i = 0; i < count; i++)
        n += select_cases(tests + n, names[i]);
    if (n == 0) {
        fprintf(stderr, "mmtest: no such suite or case; -l lists them\n");
        return 2;
    }
    setenv("CMOCKA_MESSAGE_OUTPUT", "TAP", 0);
    n = (size_t)_cmocka_run_group_tests("mm", tests, n, NULL, NULL);
    return n == 0 ? 0 : 1;
}

static int run_alone(const char *what)
{
    for (const struct ktest *t = __start_ktests; t < __stop_ktests; t++)
        if (named(t, what))
            return run_here(t) ? 0 : 1;
    fprintf(stderr, "mmtest: no case %s\n", what);
    return 2;
}

static int run_trace(int argc, char **argv)
{
    uint64_t seed = (uint64_t)time(NULL);
    uint64_t ops = 1000000;
    bool modes = argv[1][1] == 'm';

    if (argc > 2)
        seed = strtoull(argv[2], NULL, 0);
    if (argc > 3)
        ops = strtoull(argv[3], NULL, 0);
    budget_begin("the trace",
                 (long long)ops * (modes ? MODES_OP_STEPS : TRACE_OP_STEPS));
    host_start_pages(HOST_FRAMES);
    kmem_init();
    return modes ? host_trace_modes(seed, ops) : host_trace(seed, ops);
}

/* -x, -d, -r: mm/tests/explore/. */
static int run_schedules(int argc, char **argv)
{
    host_start_pages(HOST_FRAMES);
    kmem_init();
    if (argv[1][1] == 'r')
        return explore_seeds(argv[2], argc > 3 ? argv[3] : "1");
    return explore_pairs(argv[2], argv[1][1] == 'd');
}

int main(int argc, char **argv)
{
    budget_share();
    if (argc == 2 && strcmp(argv[1], "-l") == 0) {
        for (const struct ktest *t = __start_ktests; t < __stop_ktests; t++)
            printf("%s.%s\n", t->ktest_suite, t->ktest_name);
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "-n") == 0)
        return run_alone(argv[2]);
    if (argc >= 2 && (strcmp(argv[1], "-t") == 0 || strcmp(argv[1], "-m") == 0))
        return run_trace(argc, argv);
    if (argc >= 2 && (strcmp(argv[1], "-x") == 0 || strcmp(argv[1], "-d") == 0))
        return run_schedules(argc, argv);
    if (argc >= 3 && strcmp(argv[1], "-r") == 0)
        return run_schedules(argc, argv);
    for (argv++; *argv != NULL; argv++)
        if (strcmp(*argv, "-s") == 0)
            shows_steps = true;
        else if (strcmp(*argv, "-f") == 0)
            ends_at_failure = true;
        else
            break;
    if (*argv != NULL && **argv == '-') {
        fprintf(stderr, "usage: mmtest [-l | -n CASE | -t [SEED [OPS]] | "
                        "-m [SEED [OPS]] | -x [PAIR] | -d [PAIR] | "
                        "-r SEED [N] | "
                        "[-s] [-f] SUITE[.CASE][:STEPS] …]\n");
        return 2;
    }
    return run_cases(argv);
}
