/*
 * usertests: checks every system call from ring 3.
 *
 *     usertests            all cases
 *     usertests NAME …     those of that name or family ("file", "file.lseek")
 *     usertests -x FILE …  likewise, but skips those that FILE names (skip.c)
 *     usertests -l         lists them
 *
 * The result is KTAP on the console and a JSON line per case on /dev/debug.
 */
#include "user/tests/usertests/test.h"
#include "user/lib/err.h"
#include "user/lib/ipc.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/lib/tree.h"

#define STEP_MS 10

static char scratch[PATH_MAX];
static int debug;

/* ---- objects that a case may not leave ---------------------------------- */

/* Caches whose objects programs create. (Inodes stay in memory by design.) */
static const char *const counted[] = {
    "task",        "kstack",     "space",  "region", "page_directory",
    "page_table",  "file",       "pipe",   "port",   "handle_table",
    "pipe_buffer", "ramfs_node", "userfs",
};

struct census {
    long census_inuse[ARRAY_SIZE(counted)];
};

/* The columns of a row of /proc/kmastat: name, size, chunk, objects in use. */
static void count_row(struct census *c, char *row)
{
    char *save;
    const char *name = strtok_r(row, " ", &save);
    const char *size = strtok_r(NULL, " ", &save);
    const char *chunk = strtok_r(NULL, " ", &save);
    const char *inuse = strtok_r(NULL, " ", &save);

    if (name == NULL || size == NULL || chunk == NULL || inuse == NULL)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(counted); i++)
        if (strcmp(name, counted[i]) == 0)
            c->census_inuse[i] = strtol(inuse, NULL, 10);
}

static struct census take_census(void)
{
    struct census c = {{0}};
    FILE *f = fopen("/proc/kmastat", "r");
    char row[160];

    if (f == NULL)
        err(1, "/proc/kmastat");
    while (fgets(row, sizeof(row), f) != NULL)
        count_row(&c, row);
    fclose(f);
    return c;
}

/* Whether no cache has more objects than before; reports them if `report`. */
static bool compare(const struct census *before, bool report)
{
    struct census after = take_census();
    bool good = true;

    for (size_t i = 0; i < ARRAY_SIZE(counted); i++) {
        long more = after.census_inuse[i] - before->census_inuse[i];

        if (more > 0 && report)
            printf("# leaked: %ld of %s\n", more, counted[i]);
        good &= more <= 0;
    }
    return good;
}

/* Orphans are collected by init, perhaps a little later. */
static bool nothing_left(const struct census *before)
{
    for (int i = 0; i < 20; i++) {
        if (compare(before, false))
            return true;
        sleep_ms(STEP_MS);
    }
    return compare(before, true);
}

/* ---- one case ----------------------------------------------------------- */

static void run_child(const struct test *t) __attribute__((noreturn));
static void run_child(const struct test *t)
{
    setpgid(0, 0);
    if (chdir(scratch) < 0)
        err(1, "%s", scratch);
    t->test_run();
    _exit(0);
}

static bool as_expected(const struct test *t, int status)
{
    if (WTERMSIG(status) == t->test_signal && WEXITSTATUS(status) == 0)
        return true;
    if (WTERMSIG(status) != t->test_signal)
        printf("# ended by signal %d instead of %d\n", WTERMSIG(status),
               t->test_signal);
    return false;
}

/* Unmounts the file systems that a failed case left. */
static void unmount_all(void)
{
    char path[PATH_MAX];

    path_join(path, sizeof(path), scratch, "m/d");
    umount(path);
    path_join(path, sizeof(path), scratch, "m");
    umount(path);
}

static bool run_case(const struct test *t)
{
    struct census before = take_census();
    int status;
    bool good;
    pid_t pid;

    if (mkdir(scratch) < 0)
        err(1, "%s", scratch);
    fflush(stdout);
    pid = fork();
    if (pid < 0)
        err(1, "fork");
    if (pid == 0)
        run_child(t);
    setpgid(pid, pid);
    if (waitpid(pid, &status, 0) != pid)
        err(1, "waitpid");
    good = as_expected(t, status);
    kill(-pid, SIGKILL);
    while (wait(NULL) > 0)
        continue;
    unmount_all();
    if (!remove_tree(scratch)) {
        printf("# %s cannot be removed\n", scratch);
        return false;
    }
    return nothing_left(&before) && good;
}

/* ---- reports ------------------------------------------------------------ */

static void PRINTF_LIKE(1, 2) event(const char *fmt, ...)
{
    char text[200];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (debug >= 0)
        write_all(debug, text, strlen(text));
}

static void report(unsigned number, const struct test *t, bool good,
                   const char *skipped)
{
    printf("%sok %u - %s%s%s\n", good ? "" : "not ", number, t->test_name,
           skipped == NULL ? "" : " # SKIP ", skipped == NULL ? "" : skipped);
    fflush(stdout);
    event("{\"event\":\"user-test\",\"name\":\"%s\",\"ok\":%s,"
          "\"skipped\":%s}\n",
          t->test_name, good ? "true" : "false",
          skipped == NULL ? "false" : "true");
}

/* ---- all of them -------------------------------------------------------- */

/* The order in which the families run: basic ones first. */
static const char *const families[] = {
    "task",    "exec",  "memory", "commit", "protect",     "trap",   "pointer",
    "handle",  "pipe",  "file",   "tree",   "device",      "ipc",    "grant",
    "session", "death", "mount",  "liar",   "dead_server", "silent",
};

static bool is_wanted(const struct test *t, char **wanted)
{
    if (*wanted == NULL)
        return true;
    for (; *wanted != NULL; wanted++)
        if (strcmp(*wanted, t->test_family) == 0 ||
            strcmp(*wanted, t->test_name) == 0)
            return true;
    return false;
}

/* Calls fn for each selected case; returns their number. */
static unsigned each(char **wanted, void (*fn)(const struct test *t))
{
    unsigned n = 0;

    for (size_t i = 0; i < ARRAY_SIZE(families); i++)
        for (const struct test *t = __start_tests; t < __stop_tests; t++)
            if (strcmp(t->test_family, families[i]) == 0 &&
                is_wanted(t, wanted)) {
                n++;
                if (fn != NULL)
                    fn(t);
            }
    return n;
}

static unsigned passed, failed, skipped;

static void run_and_report(const struct test *t)
{
    const char *reason = skip_reason(t);
    bool good = reason != NULL || run_case(t);

    *(reason != NULL ? &skipped : good ? &passed : &failed) += 1;
    report(passed + failed + skipped, t, good, reason);
}

static void list(const struct test *t)
{
    puts(t->test_name);
}

/* A name server allocates its heap for its first name, and keeps it. */
static void warm_up(void)
{
    int port = port_create();

    if (name_register("usertests", port) == 0)
        name_remove("usertests");
    close(port);
}

int main(int argc, char **argv)
{
    bool lists = false;
    char **wanted;
    int option;

    while ((option = getopt(argc, argv, "lx:")) != -1) {
        if (option == '?')
            usage("[-l] [-x FILE] [NAME...]");
        if (option == 'x')
            skip_read(optarg);
        lists |= option == 'l';
    }
    if (each((char *[]){NULL}, NULL) !=
        (unsigned)(__stop_tests - __start_tests))
        errx(2, "main.c: families[] has no name for some cases");
    wanted = argv + MIN(optind, argc);
    for (char **w = wanted; *w != NULL; w++)
        if (each((char *[]){*w, NULL}, NULL) == 0)
            errx(2, "%s: no such case; -l lists them", *w);
    if (lists) {
        each(wanted, list);
        return 0;
    }
    warm_up();
    debug = open("/dev/debug", O_WRONLY | O_CLOEXEC);
    mkdir("/tmp");
    snprintf(scratch, sizeof(scratch), "/tmp/usertests.%d", (int)getpid());
    printf("KTAP version 1\n1..%u\n", each(wanted, NULL));
    each(wanted, run_and_report);
    printf("# %u passed, %u failed, %u skipped\n", passed, failed, skipped);
    event("{\"event\":\"user-tests\",\"passed\":%u,\"failed\":%u,"
          "\"skipped\":%u}\n",
          passed, failed, skipped);
    return failed == 0 ? 0 : 1;
}
