/*
 * init: the first program of a session, started by `sh` of the kernel shell. It
 * starts the servers, keeps them running, and starts a program on the console.
 *
 *     init                     /bin/sh
 *     init PROGRAM [ARG …]     the same with another program
 *
 * The servers are those of /etc/servers that start at boot, and those named by
 * the kernel option start=, passed as START in the environment. A server that
 * dies is restarted (server.c). Tasks whose parent has exited become children
 * of init, which waits for all of them. When the program ends, init kills what
 * is left of the session and exits with the program's status.
 */
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/servers/init/server.h"

#define MANIFEST "/etc/servers"

static char *environment[] = {"PATH=/bin:/sbin", "HOME=/home", NULL};

static struct server *servers;

/* ---- starting ----------------------------------------------------------- */

/* Starts the program in its own group, which gets the console. */
static pid_t start_program(char *argv[])
{
    pid_t pid = fork();

    if (pid < 0)
        err(1, "fork");
    if (pid > 0)
        return pid;
    setpgid(0, 0);
    tcsetpgrp(STDIN_FILENO, getpid());
    execvp(argv[0], argv);
    err(errno == ENOENT ? 127 : 126, "%s", argv[0]);
}

/* Marks the servers that START names, separated by commas, as wanted. */
static void want_named(const char *names)
{
    char *copy = names == NULL ? NULL : strdup(names);

    if (copy == NULL)
        return;
    for (char *rest = copy, *w; (w = strtok_r(rest, ",", &rest)) != NULL;)
        server_want(servers, w);
    free(copy);
}

static void start_servers(void)
{
    servers = servers_read(MANIFEST);
    for (struct server *s = servers; s != NULL; s = s->server_next)
        if (!s->server_stanza.server_demand)
            server_want(servers, s->server_stanza.server_name);
    want_named(getenv("START"));
    servers_start(servers, true);
}

/* ---- the session -------------------------------------------------------- */

/* Waits for the next child to end, but not longer than until the next server is
 * due. */
static pid_t next_end(int *status)
{
    for (;;) {
        uint32_t due = servers_due(servers);
        pid_t pid = waitpid(-1, status, due == UINT32_MAX ? 0 : WNOHANG);

        if (pid != 0)
            return pid;
        sleep_ms(MIN(due, 10u));
        servers_start(servers, false);
    }
}

/* Runs the session until the program ends; returns its status. */
static int run_session(pid_t program)
{
    int status;

    for (;;) {
        pid_t pid = next_end(&status);

        if (pid < 0 || pid == program)
            return status;
        if (server_ended(servers, pid, status))
            servers_start(servers, false);
    }
}

/* ---- ending ------------------------------------------------------------- */

/* Kills the children listed in /proc/tasks; servers only if `all`. Returns how
 * many, -1: the list cannot be read. */
static int kill_children(bool all)
{
    FILE *f = fopen("/proc/tasks", "r");
    char row[128];
    int n = 0;

    if (f == NULL)
        return -1;
    while (fgets(row, sizeof(row), f) != NULL) {
        char *rest;
        pid_t pid = (pid_t)strtol(row, &rest, 10);

        if (strtol(rest, NULL, 10) != getpid() ||
            (!all && server_of(servers, pid) != NULL))
            continue;
        kill(pid, SIGKILL);
        n++;
    }
    fclose(f);
    return n;
}

/* Kills children until there are none, or only servers. Children of a killed
 * child become init's own, hence the loop. */
static void end_children(bool all)
{
    int status;
    int n;

    while ((n = kill_children(all)) != 0) {
        pid_t pid;

        if (n < 0) {
            warn("/proc/tasks");
            return;
        }
        pid = wait(&status);
        server_ended(servers, pid, status);
    }
}

/* File servers write their cached data. */
static void unmount_all(void)
{
    for (struct server *s = servers; s != NULL; s = s->server_next)
        if (s->server_pid != 0 && s->server_stanza.server_mounts[0] != '\0' &&
            server_is_ready(s) && umount(s->server_stanza.server_mounts) < 0)
            warn("%s", s->server_stanza.server_mounts);
}

static void end_session(void)
{
    end_children(false);
    unmount_all();
    for (struct server *s = servers; s != NULL; s = s->server_next)
        s->server_pid = 0; /* ordinary children from here on */
    end_children(true);
}

int main(int argc, char **argv)
{
    char *shell[] = {"/bin/sh", NULL};
    int status;

    if (*environ == NULL)
        environ = environment;
    start_servers();
    status = run_session(start_program(argc > 1 ? argv + 1 : shell));
    end_session();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
