/*
 * Functions shared by many cases.
 */
#include "user/tests/usertests/test.h"
#include "user/lib/ipc.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

char message_bytes[IPC_DATA_MAX];

void test_fail(const char *file, int line, const char *what, int32_t got)
{
    char text[200];
    int n = snprintf(text, sizeof(text) - 1, "# %s:%d: %s: got %d", file, line,
                     what, (int)got);

    n = MIN(n, (int)sizeof(text) - 2);
    text[n] = '\n';
    write_all(STDOUT_FILENO, text, (size_t)n + 1);
    _exit(1);
}

pid_t spawn(void (*fn)(int arg), int arg)
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        fn(arg);
        _exit(0);
    }
    return pid;
}

void expect_exit(pid_t pid, int code)
{
    int status = -1;

    EQUAL(waitpid(pid, &status, 0), pid);
    EQUAL(WTERMSIG(status), 0);
    EQUAL(WEXITSTATUS(status), code);
}

void expect_signal(pid_t pid, int signal)
{
    int status = -1;

    EQUAL(waitpid(pid, &status, 0), pid);
    EQUAL(WTERMSIG(status), signal);
}

void expect_killed(pid_t pid)
{
    EQUAL(kill(pid, SIGKILL), 0);
    expect_signal(pid, SIGKILL);
}

/* Whether /proc/tasks lists `pid` as blocked, for this reason. */
static bool waits_for(pid_t pid, const char *reason)
{
    FILE *f = fopen("/proc/tasks", "r");
    bool waits = false;
    char row[128], word[20];

    CHECK(f != NULL);
    snprintf(word, sizeof(word), " %s ", reason);
    while (fgets(row, sizeof(row), f) != NULL)
        if (strtol(row, NULL, 10) == pid)
            waits =
                strstr(row, " blocked ") != NULL && strstr(row, word) != NULL;
    fclose(f);
    return waits;
}

void until_waits_for(pid_t pid, const char *reason)
{
    while (!waits_for(pid, reason))
        yield();
}

void make_file(const char *path, const char *text)
{
    int h = open(path, O_WRONLY | O_CREAT | O_TRUNC);

    CHECK(h >= 0);
    EQUAL(write(h, text, strlen(text)), strlen(text));
    EQUAL(close(h), 0);
}

bool has_text(const char *path, const char *text)
{
    char buf[256];
    int h = open(path, O_RDONLY);
    ssize_t n;

    CHECK(h >= 0);
    n = read(h, buf, sizeof(buf));
    EQUAL(close(h), 0);
    return n == (ssize_t)strlen(text) && memcmp(buf, text, (size_t)n) == 0;
}

struct stat stat_of(const char *path)
{
    struct stat st = {0};

    EQUAL(stat(path, &st), 0);
    return st;
}

void make_pipe(int ends[2])
{
    EQUAL(pipe(ends), 0);
    CHECK(ends[0] >= 0 && ends[1] >= 0 && ends[0] != ends[1]);
}

/* ---- servers ------------------------------------------------------------ */

/* Sends a port to `carrier`, as a handle that cannot receive. */
static void pass_port(int carrier, int port)
{
    struct ipc_buffer b = {.ipc_send_handle = port};
    struct message m = {.msg_tag = IPC_HANDLE, .msg_buffer = &b};

    EQUAL(ipc_call(carrier, &m), 0);
    _exit(0);
}

pid_t spawn_server(void (*fn)(int port), int *port)
{
    int carrier = port_create();
    int own = port_create();
    struct ipc_buffer b = {0};
    struct message m = {.msg_buffer = &b};
    pid_t server, bearer;

    CHECK(carrier >= 0 && own >= 0);
    server = spawn(fn, own);
    bearer = fork();
    CHECK(bearer >= 0);
    if (bearer == 0)
        pass_port(carrier, own);
    EQUAL(ipc_receive(carrier, &m), 0);
    m.msg_tag = 0;
    EQUAL(ipc_reply(m.msg_client, &m), 0);
    expect_exit(bearer, 0);
    EQUAL(close(carrier), 0);
    EQUAL(close(own), 0);
    *port = b.ipc_received_handle;
    return server;
}

int use_stack(size_t bytes)
{
    volatile char block[1024];

    block[0] = 1;
    if (bytes > sizeof(block))
        block[0] = (char)use_stack(bytes - sizeof(block));
    return block[0];
}
