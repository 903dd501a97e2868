/*
 * beattest: the table of tests, and their common functions.
 */
#include "docs/labs/08-messages/bin/beattest/beattest.h"
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

static pid_t part_pid;
static int part_handle;

bool lives(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG) == 0;
}

/* ---- parts -------------------------------------------------------------- */

int part_port(void)
{
    int port = port_create();

    if (port < 0 || name_register(PART, port) < 0)
        err(1, PART);
    return port;
}

static void (*part_serve)(void);

static int run_part(void)
{
    part_serve();
    return 0;
}

int part_begin(void (*serve)(void))
{
    part_serve = serve;
    part_pid = child(run_part);
    for (unsigned i = 0; i < 100; i++) {
        part_handle = name_lookup(PART);
        if (part_handle >= 0)
            return part_handle;
        if (!lives(part_pid))
            errx(1, "the part has ended before it began");
        sleep_ms(10);
    }
    errx(1, "the part does not begin");
}

void part_end(void)
{
    kill(part_pid, SIGKILL);
    waitpid(part_pid, NULL, 0);
    close(part_handle);
}

int part_ask(uint32_t label, uint32_t word)
{
    return request(part_handle, label, word, NULL);
}

bool part_waits(int n)
{
    for (unsigned i = 0; i < 50; i++) {
        if (part_ask(PART_COUNT, 0) == n)
            return true;
        sleep_ms(10);
    }
    return false;
}

void receive(int port, bool (*serve)(struct message *m),
             void (*notified)(uint32_t bits))
{
    for (;;) {
        struct message m = {0};
        uint32_t client;

        if (ipc_receive(port, &m) < 0)
            continue;
        client = m.msg_client;
        if (client == 0)
            notified(m.msg_word[0]);
        else if (serve(&m))
            ipc_reply(client, &m);
    }
}

void no_notification(uint32_t bits)
{
    (void)bits;
}

/* ---- which -------------------------------------------------------------- */

static const struct {
    const char *test_name;
    void (*test_run)(void);
} tests[] = {
    {"chip", beat_chip},       {"loop", beat_loop},   {"clients", beat_clients},
    {"refuse", beat_refuse},   {"keep", beat_keep},   {"order", beat_order},
    {"survive", beat_survive}, {"storm", beat_storm}, {"server", chip_server},
};

/* The name server is needed. If this program starts it, it ends with this
 * program. */
static pid_t begin_names(void)
{
    static char *argv[] = {"/sbin/names", NULL};
    int port = name_server(NAME_SERVER_GET, 0);
    pid_t pid;

    if (port >= 0) {
        close(port);
        return 0;
    }
    pid = fork();
    if (pid < 0)
        err(1, "fork");
    if (pid == 0) {
        if (grant_take("names") == 0)
            execv(argv[0], argv);
        err(1, "names (`run -p beattest ...` starts them)");
    }
    while ((port = name_server(NAME_SERVER_GET, 0)) < 0 && lives(pid))
        sleep_ms(10);
    close(port);
    return pid;
}

int main(int argc, char **argv)
{
    pid_t pid;

    if (argc != 2)
        usage("PART");
    pid = begin_names();
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        if (strcmp(argv[1], tests[i].test_name) == 0) {
            tests[i].test_run();
            if (pid > 0 && kill(pid, SIGKILL) == 0)
                waitpid(pid, NULL, 0);
            return check_report("beattest");
        }
    errx(2, "beat has no part %s", argv[1]);
}
