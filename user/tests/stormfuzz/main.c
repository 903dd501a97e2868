/*
 * stormfuzz: file servers that are silent, lie or die, while other tasks use
 * and mount them and are killed.
 *
 *     stormfuzz [-s SEED] [-n ROUNDS] [-v]
 *
 * The parent never uses a path on a server. In each round it kills tasks at
 * random moments and starts others in their places; at last it kills all, in
 * random order. Each must end soon, whatever it waits for. Then it must be
 * possible to unmount everything. A round depends only on the seed and its
 * number.
 */
#include "user/tests/stormfuzz/stormfuzz.h"
#include "user/tests/syscallfuzz/fuzzer.h"
#include "user/lib/dirent.h"
#include "user/lib/err.h"
#include "user/lib/ipc.h"
#include "user/lib/mounts.h"
#include "user/lib/scratch.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/lib/tree.h"

#define TASKS    9u /* the first SERVERS of them are servers */
#define KILLS    10u
#define PAUSE_MS 12u
#define LIMIT_MS 2000u  /* for a task's end */
#define CLEAN_MS 60000u /* calls wait 5 s for a dead server's successor */
#define STEP_MS  5u

#define MOUNTS_MAX 32
#define FAILED     255 /* exit code of the task that unmounts */

int ports[SERVERS];
char top[PATH_MAX];

static struct fuzz_options options = {.fuzz_count = 100};

static pid_t tasks[TASKS];
static uint32_t now; /* the number of the round */

struct totals {
    uint32_t total_tasks;
    uint32_t total_exits;  /* servers that ended before they were killed */
    uint32_t total_mounts; /* left at the end of a round */
};

static struct totals totals;

/* ---- tasks -------------------------------------------------------------- */

/* A child that continues the round's sequence by one of its own. */
static pid_t fork_task(void)
{
    unsigned own = (unsigned)rand();
    pid_t pid = fork();

    if (pid < 0)
        err(1, "fork");
    if (pid == 0)
        srand(own);
    totals.total_tasks += pid != 0;
    return pid;
}

/* The new server sends its port. */
static void receive_port(unsigned i)
{
    struct ipc_buffer b = {0};
    struct message m = {.msg_buffer = &b};

    if (ipc_receive(CARRIER, &m) < 0 || !(m.msg_tag & IPC_HANDLE))
        errx(1, "a server sends no port");
    m.msg_tag = 0;
    ipc_reply(m.msg_client, &m);
    ports[i] = b.ipc_received_handle;
}

static void start(unsigned i)
{
    tasks[i] = fork_task();
    if (tasks[i] == 0 && i < SERVERS)
        server_run();
    if (tasks[i] == 0)
        client_run();
    if (i < SERVERS)
        receive_port(i);
}

/* The row of a task in /proc/tasks: what it waits for. */
static void show_task(pid_t pid)
{
    FILE *f = fopen("/proc/tasks", "r");
    char row[128];

    while (f != NULL && fgets(row, sizeof(row), f) != NULL)
        if (strtol(row, NULL, 10) == pid)
            printf("%s", row);
}

/* Waits for the end of a task that should end within `ms`. Returns its
 * status. */
static int expect_end(pid_t pid, uint32_t ms, const char *which)
{
    uint32_t began = uptime_ms();
    int status;

    while (waitpid(pid, &status, WNOHANG) != pid) {
        if (uptime_diff(uptime_ms(), began) > (int32_t)ms) {
            show_task(pid);
            printf("stormfuzz: seed %u, round %u: %s, task %d, does not end\n",
                   (unsigned)options.fuzz_seed, (unsigned)now, which, (int)pid);
            exit(1);
        }
        sleep_ms(STEP_MS);
    }
    return status;
}

static void stop(unsigned i)
{
    int status;

    kill(tasks[i], SIGKILL);
    status =
        expect_end(tasks[i], LIMIT_MS, i < SERVERS ? "a server" : "a client");
    totals.total_exits += WIFEXITED(status);
    if (i < SERVERS)
        close(ports[i]);
}

/* ---- what a round leaves ------------------------------------------------ */

static char mounts[MOUNTS_MAX][PATH_MAX];

/* The mounts in the round's directory, as /proc/mounts lists them. */
static int list_mounts(void)
{
    FILE *f = fopen("/proc/mounts", "r");
    int n = 0;

    if (f == NULL)
        err(FAILED, "/proc/mounts");
    while (n < MOUNTS_MAX && mounts_next(f, mounts[n]))
        n += strncmp(mounts[n], top, strlen(top)) == 0;
    fclose(f);
    return n;
}

/* Unmounts what is on a directory of `path` or of those in it. It has room for
 * PATH_MAX bytes. */
static void unmount_tree(char *path)
{
    size_t length = strlen(path);
    DIR *d = umount(path) == 0 ? NULL : opendir(path);
    const struct dirent *e;

    while (d != NULL && (e = readdir(d)) != NULL) {
        if (e->d_type != FILE_DIRECTORY || e->d_name[0] == '.')
            continue;
        snprintf(path + length, PATH_MAX - length, "/%s", e->d_name);
        unmount_tree(path);
        path[length] = 0;
    }
    if (d != NULL)
        closedir(d);
}

/* One pass: a mount that has another in it is still in use. Returns how many
 * are left. */
static int unmount_some(int n)
{
    char path[PATH_MAX];
    int left;

    for (int i = n - 1; i >= 0; i--)
        umount(mounts[i]);
    left = list_mounts();
    if (left < n)
        return left;
    /* The directory of a mount has been renamed since it was mounted. */
    strlcpy(path, top, sizeof(path));
    unmount_tree(path);
    return list_mounts();
}

static void clean(void) __attribute__((noreturn));
static void clean(void)
{
    int all = list_mounts();

    for (int n = all, left; n > 0; n = left) {
        left = unmount_some(n);
        if (left >= n)
            errx(FAILED, "seed %u, round %u: %s stays mounted",
                 (unsigned)options.fuzz_seed, (unsigned)now, mounts[0]);
    }
    if (!remove_tree(top))
        errx(FAILED, "seed %u, round %u: %s cannot be removed",
             (unsigned)options.fuzz_seed, (unsigned)now, top);
    _exit(all);
}

static void expect_clean(void)
{
    pid_t pid = fork_task();
    int status;

    if (pid == 0)
        clean();
    status = expect_end(pid, CLEAN_MS, "the task that unmounts");
    if (!WIFEXITED(status) || WEXITSTATUS(status) == FAILED)
        errx(1, "seed %u, round %u: something stays",
             (unsigned)options.fuzz_seed, (unsigned)now);
    totals.total_mounts += (uint32_t)WEXITSTATUS(status);
}

/* ---- rounds ------------------------------------------------------------- */

static void make_directories(void)
{
    char path[PATH_MAX];

    if (mkdir(top) < 0)
        err(1, "%s", top);
    for (int i = 0; i < SERVERS; i++) {
        snprintf(path, sizeof(path), "%s/m%d", top, i);
        if (mkdir(path) < 0)
            err(1, "%s", path);
    }
}

/* Kills all, in random order. */
static void stop_all(void)
{
    unsigned order[TASKS];

    for (unsigned i = 0; i < TASKS; i++) {
        unsigned j = below(i + 1);

        order[i] = order[j];
        order[j] = i;
    }
    for (unsigned i = 0; i < TASKS; i++)
        stop(order[i]);
}

static void storm(void)
{
    struct totals before = totals;

    srand(options.fuzz_seed * 1000003u + now);
    make_directories();
    for (unsigned i = 0; i < TASKS; i++)
        start(i);
    for (unsigned n = 0; n < KILLS; n++) {
        unsigned i = below(TASKS);

        sleep_ms(below(PAUSE_MS));
        stop(i);
        start(i);
    }
    stop_all();
    expect_clean();
    if (options.fuzz_verbose)
        printf("round %u: %u servers exited, %u mounts left\n", (unsigned)now,
               (unsigned)(totals.total_exits - before.total_exits),
               (unsigned)(totals.total_mounts - before.total_mounts));
    fflush(stdout);
}

/* Runs in a directory that will be removed. */
static int run_rounds(void)
{
    int carrier = port_create();

    if (getcwd(top, sizeof(top)) < 0 || dup2(carrier, CARRIER) < 0 ||
        close(carrier) < 0)
        err(1, "beginning");
    strlcat(top, "/round", sizeof(top));
    for (now = 1; now <= options.fuzz_count; now++)
        storm();
    printf("stormfuzz: seed %u, %u rounds: %u tasks, %u servers exited, "
           "%u mounts left\n",
           (unsigned)options.fuzz_seed, (unsigned)options.fuzz_count,
           (unsigned)totals.total_tasks, (unsigned)totals.total_exits,
           (unsigned)totals.total_mounts);
    return 0;
}

int main(int argc, char **argv)
{
    fuzz_begin(argc, argv, "ROUNDS", &options);
    return scratch_run(run_rounds);
}
