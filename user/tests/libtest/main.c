/*
 * libtest [PART]: tests of the C library and of the small programs. PART is the
 * beginning of the names to run.
 */
#include "user/tests/libtest/libtest.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

static const char *wanted = "";
static unsigned number;
static unsigned failures;
static bool failed;

void test_failed(const char *file, int line, const char *what)
{
    printf("# %s:%d: %s\n", file, line, what);
    failed = true;
}

static void run(const struct test *t)
{
    failed = false;
    t->test_run();
    failures += failed;
    printf("%s %u - %s\n", failed ? "not ok" : "ok", ++number, t->test_name);
    fflush(stdout);
}

/* Runs, or only counts, the selected cases. */
static unsigned for_each(void (*f)(const struct test *t))
{
    unsigned n = 0;

    for (const struct test *t = __start_tests; t < __stop_tests; t++) {
        if (strncmp(t->test_name, wanted, strlen(wanted)) != 0)
            continue;
        n++;
        if (f != NULL)
            f(t);
    }
    return n;
}

int test_in_child(void (*f)(void))
{
    int status = -1;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        f();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

int test_output(void (*f)(const void *arg), const void *arg, char *text,
                size_t size)
{
    size_t used = 0;
    int status = -1;
    int ends[2];
    ssize_t n;

    CHECK(pipe(ends) == 0);
    fflush(stdout);
    if (fork() == 0) {
        close(ends[0]);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[1]);
        f(arg);
        exit(0);
    }
    close(ends[1]);
    while ((n = read(ends[0], text + used, size - 1 - used)) > 0)
        used += (size_t)n;
    text[used] = 0;
    close(ends[0]);
    CHECK(wait(&status) > 0);
    return status;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        wanted = argv[1];
    printf("KTAP version 1\n1..%u\n", for_each(NULL));
    fflush(stdout);
    for_each(run);
    printf("# %u passed, %u failed\n", number - failures, failures);
    return failures != 0 || number == 0;
}
