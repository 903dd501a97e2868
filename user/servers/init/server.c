/*
 * Starting and restarting servers.
 *
 * A server that dies is restarted at once; clients that wait for its name find
 * the new one. A server that keeps dying soon after its start is restarted
 * after longer and longer pauses, and in the end not at all: a driver with a
 * broken device must not use the processor for ever.
 */
#include "user/servers/init/server.h"
#include "user/lib/err.h"
#include "user/lib/mounts.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

#define YOUNG_MS     1000 /* a death before this counts as early */
#define AT_ONCE      4    /* early deaths in a row without a pause */
#define PAUSE_MS     10u  /* the first pause; each is twice the last */
#define PAUSE_MAX    2000u
#define YOUNG_DEATHS 24 /* early deaths in a row after which it restarts */

static const char *name_of(const struct server *s)
{
    return s->server_stanza.server_name;
}

/* Calls fn for each server that `s` needs until one returns false; returns
 * whether none did. */
static bool
each_need(struct server *all, const struct server *s, unsigned depth,
          bool (*fn)(struct server *all, const char *need, unsigned depth))
{
    char needs[MANIFEST_NEEDS_MAX + 1];
    char *rest = needs;
    char *need;

    strlcpy(needs, s->server_stanza.server_needs, sizeof(needs));
    while ((need = strtok_r(rest, " ", &rest)) != NULL)
        if (!fn(all, need, depth))
            return false;
    return true;
}

/* ---- readiness ---------------------------------------------------------- */

/* Whether /proc/mounts has this path. */
static bool is_mounted(const char *path)
{
    FILE *f = fopen("/proc/mounts", "r");
    bool found = false;
    char on[PATH_MAX];

    if (f == NULL)
        return false;
    while (!found && mounts_next(f, on))
        found = strcmp(on, path) == 0;
    fclose(f);
    return found;
}

static bool has_name(const char *name)
{
    int port = name_lookup(name);

    if (port >= 0)
        close(port);
    return port >= 0;
}

static bool names_replies(void)
{
    int port = name_server(NAME_SERVER_GET, 0);

    if (port >= 0)
        close(port);
    return port >= 0;
}

bool server_is_ready(const struct server *s)
{
    if (strcmp(name_of(s), "names") == 0)
        return names_replies();
    if (s->server_stanza.server_mounts[0] != '\0')
        return is_mounted(s->server_stanza.server_mounts);
    return has_name(name_of(s));
}

/* ---- wanted servers ----------------------------------------------------- */

static bool want(struct server *all, const char *name, unsigned depth)
{
    struct server *s = server_find(all, name);

    if (s == NULL) {
        warnx("there is no server %s", name);
        return false;
    }
    if (s->server_wanted)
        return true;
    if (depth > 16) {
        warnx("%s needs itself", name);
        return false;
    }
    if (!each_need(all, s, depth + 1, want))
        return false;
    s->server_wanted = true;
    s->server_due_ms = uptime_ms();
    return true;
}

bool server_want(struct server *all, const char *name)
{
    return want(all, name, 0);
}

/* ---- starting ----------------------------------------------------------- */

static void run(const struct server *s) __attribute__((noreturn));
static void run(const struct server *s)
{
    setpgid(0, 0);
    if (grant_take(name_of(s)) < 0 && errno != EPERM) {
        if (errno != EBUSY)
            err(1, "cannot take the grant of %s", name_of(s));
        tellx("%s was started before this session, which uses it; to restart "
              "it, end this session, and at slate>: `servers`, `kill PID`",
              name_of(s));
        exit(0);
    }
    execv(s->server_argv[0], s->server_argv);
    err(errno == ENOENT ? 127 : 126, "%s", s->server_argv[0]);
}

static void start(struct server *s)
{
    pid_t pid = fork();

    if (pid == 0)
        run(s);
    s->server_began_ms = uptime_ms();
    if (pid < 0) {
        s->server_due_ms = s->server_began_ms + PAUSE_MS;
        return;
    }
    s->server_pid = pid;
    s->server_starts++;
}

static bool need_is_ready(struct server *all, const char *name, unsigned depth)
{
    const struct server *need = server_find(all, name);

    (void)depth;
    return need != NULL && !(need->server_wanted && need->server_pid == 0) &&
           server_is_ready(need);
}

/* Waits until a server is ready, or has ended. */
static void wait_until_ready(struct server *all, const struct server *s)
{
    uint32_t began = uptime_ms();
    pid_t pid = s->server_pid;
    int status;

    while (s->server_pid == pid && !server_is_ready(s)) {
        pid_t ended = waitpid(-1, &status, WNOHANG);

        if (ended > 0)
            server_ended(all, ended, status);
        else if (uptime_diff(uptime_ms(), began) < SERVER_PATIENCE_MS)
            sleep_ms(1);
        else {
            warnx("%s is not ready after %d s", name_of(s),
                  SERVER_PATIENCE_MS / 1000);
            return;
        }
    }
}

static bool is_due(const struct server *s)
{
    return s->server_wanted && s->server_pid == 0 &&
           uptime_diff(s->server_due_ms, uptime_ms()) <= 0;
}

void servers_start(struct server *all, bool wait)
{
    for (struct server *s = all; s != NULL; s = s->server_next) {
        if (!is_due(s) || !each_need(all, s, 0, need_is_ready))
            continue;
        start(s);
        if (wait && s->server_pid != 0)
            wait_until_ready(all, s);
    }
}

uint32_t servers_due(const struct server *all)
{
    uint32_t soonest = UINT32_MAX;
    uint32_t now = uptime_ms();

    for (const struct server *s = all; s != NULL; s = s->server_next) {
        int32_t left = uptime_diff(s->server_due_ms, now);

        if (s->server_wanted && s->server_pid == 0)
            soonest = MIN(soonest, left > 0 ? (uint32_t)left : PAUSE_MS);
    }
    return soonest;
}

/* ---- restarting --------------------------------------------------------- */

/* How long to wait before a restart; UINT32_MAX: for ever. */
static uint32_t pause_of(struct server *s)
{
    if (uptime_diff(uptime_ms(), s->server_began_ms) >= YOUNG_MS)
        s->server_young = 0;
    else
        s->server_young++;
    if (s->server_young <= AT_ONCE)
        return 0;
    if (s->server_young > YOUNG_DEATHS)
        return UINT32_MAX;
    return MIN(PAUSE_MS << MIN(s->server_young - AT_ONCE - 1, 16u), PAUSE_MAX);
}

/* Prints one line for users and one for tools. Neither waits for the console:
 * servers must be restarted while a user has it. */
static void report(const struct server *s, int status, const char *next)
{
    FILE *debug = fopen("/dev/debug", "w");

    if (WIFEXITED(status))
        tellx("%s ended with status %d; %s", name_of(s), WEXITSTATUS(status),
              next);
    else
        tellx("%s was killed (%d); %s", name_of(s), WTERMSIG(status), next);
    if (debug == NULL)
        return;
    fprintf(debug,
            "{\"event\":\"server-ended\",\"name\":\"%s\",\"status\":%d,"
            "\"starts\":%u}\n",
            name_of(s), status, s->server_starts);
    fclose(debug);
}

static bool is_other_need(struct server *all, const char *need, unsigned depth)
{
    (void)all;
    (void)depth;
    return strcmp(need, "names") != 0;
}

/* The name server has died with all its names: servers that need it are
 * restarted, and register their names again. */
static void end_dependents(struct server *all)
{
    for (struct server *s = all; s != NULL; s = s->server_next)
        if (s->server_pid != 0 && !each_need(all, s, 0, is_other_need))
            kill(s->server_pid, SIGKILL);
}

const struct server *server_of(const struct server *all, pid_t pid)
{
    while (all != NULL && all->server_pid != pid)
        all = all->server_next;
    return all;
}

bool server_ended(struct server *all, pid_t pid, int status)
{
    struct server *s = (struct server *)server_of(all, pid);
    uint32_t pause;

    if (s == NULL)
        return false;
    s->server_pid = 0;
    if (status == 0 || s->server_stanza.server_once ||
        (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_ABSENT)) {
        s->server_wanted = false;
        if (status != 0)
            report(s, status, "not restarted");
        return true;
    }
    if (strcmp(name_of(s), "names") == 0)
        end_dependents(all);
    pause = pause_of(s);
    s->server_wanted = pause != UINT32_MAX;
    s->server_due_ms = uptime_ms() + pause;
    report(s, status,
           s->server_wanted ? "restarted"
                            : "not restarted, because it dies too often");
    return true;
}
