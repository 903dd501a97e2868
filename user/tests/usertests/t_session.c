/*
 * Sessions: a program may signal, and join the groups of, its own session
 * alone; the servers, init and the kernel's tasks are outside. The cases need
 * an init with privilege (`run -p init usertests`).
 */
#include "user/tests/usertests/liar.h"
#include "user/tests/usertests/test.h"
#include "user/lib/ipc.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

struct row {
    pid_t row_pid, row_group;
    char row_session[12];
    char row_name[32];
};

#define WORDS_MAX 11

/* The words of a row of /proc/tasks; returns how many. */
static size_t split(char *text, char *words[WORDS_MAX])
{
    size_t n = 0;

    for (char *w; (w = strtok_r(text, " \n", &text)) != NULL; n++) {
        CHECK(n < WORDS_MAX);
        words[n] = w;
    }
    return n;
}

/* Reads a row that has as many words as the header: several processors have a
 * column more. */
static void parse(char *text, size_t columns, struct row *row)
{
    char *words[WORDS_MAX];

    EQUAL(split(text, words), columns);
    row->row_pid = (pid_t)strtol(words[0], NULL, 10);
    row->row_group = (pid_t)strtol(words[2], NULL, 10);
    strlcpy(row->row_session, words[3], sizeof(row->row_session));
    strlcpy(row->row_name, words[columns - 1], sizeof(row->row_name));
}

/* The task of that pid, or of that name if it is 0. */
static bool find(pid_t pid, const char *name, struct row *row)
{
    FILE *f = fopen("/proc/tasks", "r");
    char *header[WORDS_MAX];
    bool found = false;
    size_t columns;
    char text[160];

    CHECK(f != NULL);
    CHECK(fgets(text, sizeof(text), f) != NULL);
    columns = split(text, header);
    while (!found && fgets(text, sizeof(text), f) != NULL) {
        parse(text, columns, row);
        found =
            pid != 0 ? row->row_pid == pid : strcmp(row->row_name, name) == 0;
    }
    fclose(f);
    return found;
}

static struct row named(const char *name)
{
    struct row row;

    CHECK(find(0, name, &row));
    return row;
}

static struct row numbered(pid_t pid)
{
    struct row row;

    CHECK(find(pid, NULL, &row));
    return row;
}

static const char *const others[] = {"names", "init"};

/* ---- authority ---------------------------------------------------------- */

TEST(session, kill)
{
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        struct row other = named(others[i]);

        EQUAL(strcmp(other.row_session, "0"), 0);
        FAILS(kill(other.row_pid, 0), EPERM);
        FAILS(kill(other.row_pid, SIGKILL), EPERM);
        FAILS(kill(-other.row_group, 0), EPERM);
        FAILS(kill(-other.row_group, SIGTERM), EPERM);
    }
}

/* A group of the session, and new ones, can be joined; no other. */
TEST(session, groups)
{
    pid_t mate = numbered(getppid()).row_group;

    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        FAILS(setpgid(0, named(others[i]).row_group), EPERM);
        FAILS(tcsetpgrp(STDIN_FILENO, named(others[i]).row_group), EPERM);
    }
    for (pid_t kernels = 1; kernels <= 3; kernels++) {
        FAILS(setpgid(0, kernels), EPERM);
        FAILS(tcsetpgrp(STDIN_FILENO, kernels), EPERM);
    }
    EQUAL(setpgid(0, mate), 0);
    EQUAL(setpgid(0, 0), 0);
    EQUAL(tcsetpgrp(STDIN_FILENO, getpid()), 0);
    EQUAL(tcsetpgrp(STDIN_FILENO, mate), 0);
}

/* A child that has not been waited for is in its group no longer than that. */
TEST(session, own_child)
{
    pid_t child = fork();

    if (child == 0)
        sleep_ms(100000);
    EQUAL(kill(child, SIGTERM), 0);
    expect_signal(child, SIGTERM);
}

/* ---- messages ------------------------------------------------------------ */

static void call_twice(int port)
{
    struct ipc_buffer b = {.ipc_send = "x", .ipc_send_size = 1};
    struct message m = {.msg_buffer = &b};

    EQUAL(ipc_call(port, &m), 0);
    m.msg_tag = IPC_DATA;
    EQUAL(ipc_call(port, &m), 0);
    EQUAL(b.ipc_session, 0);
}

/* A receiver gets the session of each caller, whether it waits before the call
 * or not, and 0 with a notification. */
TEST(session, of_callers)
{
    char text[1];
    struct ipc_buffer b = {.ipc_receive = text, .ipc_receive_max = 1};
    struct message m = {.msg_buffer = &b};
    uint32_t own = (uint32_t)strtol(numbered(getpid()).row_session, NULL, 10);
    int port = port_create();
    pid_t child = spawn(call_twice, port);

    CHECK(own != 0);
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            until_waits_for(child, "message");
        b.ipc_session = 0xdead;
        EQUAL(ipc_receive(port, &m), 0);
        EQUAL(b.ipc_session, own);
        m.msg_tag = 0;
        EQUAL(ipc_reply(m.msg_client, &m), 0);
    }
    expect_exit(child, 0);
    EQUAL(notify(port, 1), 0);
    EQUAL(ipc_receive(port, &m), 0);
    EQUAL(b.ipc_session, 0);
}

/* ---- sessions are not multiplied ---------------------------------------- */

static void start_sleep(int depth)
{
    char *const argv[] = {"sleep", "100", NULL};

    if (depth > 0) {
        spawn(start_sleep, depth - 1);
        wait(NULL);
        return;
    }
    execv("/bin/sleep", argv);
    _exit(127);
}

/* The pid of a task of that name, as soon as there is one. */
static pid_t await(const char *name)
{
    struct row row;

    for (int i = 0; i < 1000; i++, yield())
        if (find(0, name, &row))
            return row.row_pid;
    return 0;
}

/* fork and exec keep the session, whatever they start. */
TEST(session, inherited)
{
    const char *own = numbered(getpid()).row_session;
    char session[12];
    pid_t child, last;

    strlcpy(session, own, sizeof(session));
    CHECK(strcmp(session, "0") != 0 && strcmp(session, "-") != 0);
    EQUAL(strcmp(numbered(getppid()).row_session, session), 0);
    child = spawn(start_sleep, 3);
    last = await("sleep");
    CHECK(last != 0);
    EQUAL(strcmp(numbered(last).row_session, session), 0);
    EQUAL(strcmp(numbered(child).row_session, session), 0);
    EQUAL(kill(last, SIGKILL), 0);
    expect_exit(child, 0);
}

/* The same with a server's program and init, without the grant. */
TEST(session, of_a_server)
{
    static const char *const paths[] = {"/sbin/names", "/sbin/init"};

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        char *const argv[] = {(char *)paths[i], "/bin/true", NULL};
        char own[12];
        pid_t child;

        strlcpy(own, numbered(getpid()).row_session, sizeof(own));
        child = fork();
        if (child == 0) {
            close(STDERR_FILENO);
            execv(paths[i], argv);
        }
        EQUAL(strcmp(numbered(child).row_session, own), 0);
        EQUAL(kill(child, 0), 0);
        sleep_ms(20);
        EQUAL(strcmp(numbered(child).row_session, own), 0);
        EQUAL(kill(child, SIGKILL), 0);
        waitpid(child, NULL, 0);
    }
}

/* ---- mounts ------------------------------------------------------------- */

/* A mount of a session hides no file, in RAM or of a server. */
TEST(session, mount)
{
    pid_t server = liar_begin();

    FAILS(mount(liar_port, "/bin"), ENOTEMPTY);
    EQUAL(mkdir("d"), 0);
    make_file("d/.hidden", "");
    FAILS(mount(liar_port, "d"), ENOTEMPTY);
    EQUAL(unlink("d/.hidden"), 0);
    EQUAL(mount(liar_port, "d"), 0);
    EQUAL(umount("d"), 0);
    FAILS(mount(liar_port, "m/d/s"), ENOTEMPTY);
    liar_end(server);
}
