/*
 * kenbus: concurrent scripts, after the SPEC SDET benchmark and the one of this
 * name in the paper's sections 5.2 and 5.3: each of several users runs a script
 * of everyday commands in a directory under /tmp, with a shell that starts a
 * program for almost every line.
 *
 *     kenbus [-u USERS] [-i ITERATIONS]
 *
 * A script's last line compares its results with the expected ones, so wrong
 * results are noticed. All files are removed.
 */
#include "user/lib/err.h"
#include "user/lib/number.h"
#include "user/lib/scratch.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

static const char script[] =
    "mkdir work || exit 1\n"
    "cd work\n"
    "echo pipe > words; echo inode >> words; echo task >> words\n"
    "echo port >> words; echo space >> words; echo pipe >> words\n"
    "cat words words > twice\n"
    "sort < words > sorted\n"
    "grep -c p words > count\n"
    "head -n 2 sorted | cat > first\n"
    "ls > names; ls / > /dev/null; find . > /dev/null\n"
    "mkdir sub && mv twice sub/moved && ln sub/moved again\n"
    "cat sub/moved | sort | grep -c port >> count\n"
    "echo $HOME \"$HOME\" > home; stat words > /dev/null\n"
    "sleep 0; true && cat count first > result\n"
    "rm sub/moved again words sorted count first names home\n"
    "rm -r sub\n"
    "cat result > ../result; rm result; cd ..\n"
    "rm -r work\n";

/* The expected contents of `result`. */
static const char expected[] = "4\n2\ninode\npipe\n";

static char home[PATH_MAX]; /* the directory of all users */
static uint32_t users = 4;
static uint32_t iterations = 2;

/* ---- a user ------------------------------------------------------------- */

static void write_file(const char *name, const char *text)
{
    int handle = open(name, O_WRONLY | O_CREAT | O_TRUNC);

    if (handle < 0 || write_all(handle, text, strlen(text)) < 0)
        err(1, "%s", name);
    close(handle);
}

static void enter_directory(unsigned user)
{
    char name[16];

    snprintf(name, sizeof(name), "user%u", user);
    if (chdir(home) < 0 || mkdir(name) < 0 || chdir(name) < 0)
        err(1, "%s/%s", home, name);
}

/* Runs the script once; false: the shell failed. */
static bool run_script(void)
{
    char *argv[] = {"sh", "script", NULL};
    int status;
    pid_t pid = fork();

    if (pid < 0)
        err(1, "fork");
    if (pid == 0) {
        execv("/bin/sh", argv);
        err(1, "/bin/sh");
    }
    return waitpid(pid, &status, 0) == pid && status == 0;
}

static bool result_is_right(void)
{
    char text[sizeof(expected)];
    int handle = open("result", O_RDONLY);
    ssize_t n;

    if (handle < 0)
        return false;
    n = read(handle, text, sizeof(text));
    close(handle);
    return n == (ssize_t)sizeof(expected) - 1 &&
           memcmp(text, expected, (size_t)n) == 0;
}

static void run_user(unsigned user) __attribute__((noreturn));
static void run_user(unsigned user)
{
    uint32_t good = 0;

    enter_directory(user);
    write_file("script", script);
    for (uint32_t i = 0; i < iterations; i++) {
        good += run_script() && result_is_right();
        unlink("result");
    }
    unlink("script");
    _exit(good == iterations ? 0 : 1);
}

/* ---- all users ---------------------------------------------------------- */

static void start_users(void)
{
    for (uint32_t i = 0; i < users; i++) {
        pid_t pid = fork();

        if (pid < 0) {
            warn("fork");
            return;
        }
        if (pid == 0)
            run_user(i);
    }
}

/* Runs in a directory that is removed afterwards. */
static int run_users(void)
{
    uint32_t start = uptime_ms();
    uint32_t good = 0;
    int status;

    if (getcwd(home, sizeof(home)) < 0)
        err(1, "directory");
    start_users();
    while (wait(&status) > 0)
        good += status == 0;
    printf("kenbus: %u of %u users did %u scripts each without a mistake in "
           "%u ms\n",
           (unsigned)good, (unsigned)users, (unsigned)iterations,
           (unsigned)uptime_diff(uptime_ms(), start));
    return good == users ? 0 : 1;
}

int main(int argc, char **argv)
{
    int option;

    while ((option = getopt(argc, argv, "u:i:")) != -1) {
        if (option == 'u')
            users = number_between(optarg, 1, 1000);
        else if (option == 'i')
            iterations = number_between(optarg, 1, 100000);
        else
            usage("[-u USERS] [-i ITERATIONS]");
    }
    return scratch_run(run_users);
}
