/*
 * Start and exit of a program: arguments, environment, options.
 *
 * Tests: user/lib/process.c, user/lib/start.c, user/lib/getopt.c
 * Tests: user/lib/err.c, user/lib/atexit.c, user/lib/dirent.c
 */
#include "user/lib/dirent.h"
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/tests/libtest/libtest.h"

static void call(const void *f)
{
    (*(void (*const *)(void))f)();
}

/* The output of a child, as a string. */
static const char *output_of(void (*f)(void))
{
    static char text[200];

    test_output(call, &f, text, sizeof(text));
    return text;
}

static void say_first(void)
{
    fputs("first ", stdout);
}

static void say_second(void)
{
    fputs("second ", stdout);
}

static void end_with_functions(void)
{
    atexit(say_second);
    atexit(say_first);
    fputs("main ", stdout);
}

TEST(process, ending)
{
    CHECK(strcmp(output_of(end_with_functions), "main first second ") == 0);
}

static void too_many_functions(void)
{
    for (int i = 0; i < 8; i++)
        if (atexit(say_first) != 0)
            fputs("early ", stdout);
    if (atexit(say_second) != -1)
        fputs("late ", stdout);
}

TEST(process, many_functions)
{
    CHECK(strcmp(output_of(too_many_functions),
                 "first first first first first first first first ") == 0);
}

static void run_echo(void)
{
    char *words[] = {"echo", "two", "a word", "", "end", NULL};

    execvp("echo", words);
}

static void run_echo_by_path(void)
{
    char *words[] = {"echo", "-n", "x", NULL};

    environ = (char *[]){"A=b", "PATH=/nowhere:/bin", NULL};
    execvp("echo", words);
}

TEST(process, running)
{
    char *words[] = {"nothing", NULL};

    CHECK(strcmp(output_of(run_echo), "two a word  end\n") == 0);
    CHECK(strcmp(output_of(run_echo_by_path), "x") == 0);
    errno = 0;
    CHECK(execvp("no-such-program", words) == -1 && errno == ENOENT);
    errno = 0;
    CHECK(execvp("", words) == -1 && errno == ENOENT);
    errno = 0;
    CHECK(execv("/etc/motd", words) == -1);
    CHECK(errno == ENOEXEC || errno == EACCES);
}

TEST(process, environment)
{
    char **saved = environ;

    environ = (char *[]){"AB=1", "A=2", "EMPTY=", NULL};
    CHECK(strcmp(getenv("A"), "2") == 0 && strcmp(getenv("AB"), "1") == 0);
    CHECK(strcmp(getenv("EMPTY"), "") == 0 && getenv("B") == NULL);
    environ = NULL;
    CHECK(getenv("A") == NULL);
    environ = saved;
}

TEST(process, options)
{
    char *words[] = {"x", "-ab", "-nval", "-n", "5", "--", "-c", NULL};

    optind = 1;
    CHECK(getopt(7, words, "abn:") == 'a' && getopt(7, words, "abn:") == 'b');
    CHECK(getopt(7, words, "abn:") == 'n' && strcmp(optarg, "val") == 0);
    CHECK(getopt(7, words, "abn:") == 'n' && strcmp(optarg, "5") == 0);
    CHECK(getopt(7, words, "abn:") == -1 && optind == 6);
}

static void one_wrong_option(void)
{
    char *words[] = {"x", "-q", "-n", NULL};

    optind = 1;
    _exit(getopt(3, words, "n:") == '?' && getopt(3, words, "n:") == '?');
}

TEST(process, wrong_options)
{
    CHECK(WEXITSTATUS(test_in_child(one_wrong_option)) == 1);
}

static void bad_usage(void)
{
    usage("[NOTHING]");
}

static void ends_with_error(void)
{
    err(3, "%s", "text");
}

TEST(process, messages)
{
    CHECK(WEXITSTATUS(test_in_child(bad_usage)) == 2);
    CHECK(WEXITSTATUS(test_in_child(ends_with_error)) == 3);
    CHECK(WTERMSIG(test_in_child(abort)) == SIGILL);
    CHECK(strcmp(program_name, "libtest") == 0);
}

/* The process that writes a message does not keep the read end of a pipe. */
TEST(process, handles_of_a_message)
{
    static char bytes[PIPE_SIZE];
    int error = dup(STDERR_FILENO);
    int full[2];
    int ends[2];

    CHECK(pipe(full) == 0 && pipe(ends) == 0);
    CHECK(write(full[1], bytes, sizeof(bytes)) == sizeof(bytes));
    dup2(full[1], STDERR_FILENO);
    tellx("text");
    dup2(error, STDERR_FILENO);
    close(ends[0]);
    errno = 0;
    CHECK(write(ends[1], "x", 1) == -1 && errno == EPIPE);
    close(ends[1]);
    close(full[0]);
    close(full[1]);
    close(error);
}

TEST(process, directories)
{
    DIR *d = opendir("/");
    struct dirent *e;
    unsigned found = 0;

    CHECK(d != NULL);
    while ((e = readdir(d)) != NULL) {
        CHECK(strlen(e->d_name) == e->d_namlen);
        found += strcmp(e->d_name, "tmp") == 0;
    }
    CHECK(found == 1);
    CHECK(closedir(d) == 0);
    errno = 0;
    CHECK(opendir("/nowhere") == NULL && errno == ENOENT);
    errno = 0;
    CHECK(opendir("/bin/echo") == NULL && errno == ENOTDIR);
}

/* The clock goes from 2^31 - 1 to 0. */
TEST(process, clock_wraps)
{
    CHECK(uptime_diff(10, 4) == 6);
    CHECK(uptime_diff(4, 10) == -6);
    CHECK(uptime_diff(5, 0x7ffffffe) == 7);
    CHECK(uptime_diff(0x7ffffffe, 5) == -7);
    CHECK(uptime_diff(0x80000005, 0x7ffffffe) == 7); /* a sum not reduced */
    CHECK(uptime_diff(0x7ffffffe, 0x80000005) == -7);
}
