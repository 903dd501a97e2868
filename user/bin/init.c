/*
 * init: the first program of a session, started by the kernel shell's `sh`.
 *
 *     init                     a name server, then /bin/sh on the console
 *     init PROGRAM [ARG …]     the same with another program
 *
 * Whoever loses its parent becomes a child of init, so init waits for all of
 * them. When the program has ended it ends those that are left, so that
 * nothing of the session remains, and then itself, with the program's status.
 */
#include "user/lib/err.h"
#include "user/lib/ipc.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

static char *environment[] = {"PATH=/bin:/sbin", "HOME=/home", NULL};

/* ---- starting ----------------------------------------------------------- */

/* Runs a program in a group of its own, on demand the console's; as the server
 * of that name, or as none (NULL). Without privilege init can make no server,
 * and the program runs as any other. */
static pid_t start(char *argv[], const char *server, bool console)
{
    pid_t pid = fork();

    if (pid < 0)
        err(1, "fork");
    if (pid > 0)
        return pid;
    setpgid(0, 0);
    if (become(server) < 0 && errno != EPERM)
        warn("%s", server);
    if (console)
        tcsetpgrp(STDIN_FILENO, getpid());
    execvp(argv[0], argv);
    err(errno == ENOENT ? 127 : 126, "%s", argv[0]);
}

/* Whether the kernel knows of a name server that lives. */
static bool names_answer(void)
{
    int port = names(NAMES_GET, 0);

    if (port >= 0)
        close(port);
    return port >= 0;
}

/* Programs may ask for names as soon as they run, so the server comes first. */
static void start_names(void)
{
    char *argv[] = {"/sbin/names", NULL};
    pid_t pid;

    if (names_answer())
        return;
    pid = start(argv, "names", false);
    while (!names_answer()) {
        if (waitpid(pid, NULL, WNOHANG) == pid) {
            warnx("no name server");
            return;
        }
        yield();
    }
}

/* ---- ending ------------------------------------------------------------- */

/* Kills the children that /proc/tasks lists. false: it cannot be read. */
static bool kill_children(void)
{
    FILE *f = fopen("/proc/tasks", "r");
    char row[128];

    if (f == NULL)
        return false;
    while (fgets(row, sizeof(row), f) != NULL) {
        char *rest;
        pid_t pid = (pid_t)strtol(row, &rest, 10);

        if (strtol(rest, NULL, 10) == getpid())
            kill(pid, SIGKILL);
    }
    fclose(f);
    return true;
}

/* Those of a child that is killed become init's own, hence the repetition. */
static void end_session(void)
{
    do {
        if (!kill_children()) {
            warn("/proc/tasks");
            return;
        }
    } while (wait(NULL) > 0);
}

int main(int argc, char **argv)
{
    char *shell[] = {"/bin/sh", NULL};
    pid_t program;
    pid_t pid;
    int status;

    if (*environ == NULL)
        environ = environment;
    start_names();
    program = start(argc > 1 ? argv + 1 : shell, NULL, true);
    do {
        pid = wait(&status);
    } while (pid > 0 && pid != program);
    end_session();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
