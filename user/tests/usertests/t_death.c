/*
 * Death of either side of a call, in each of its states: no task stays blocked,
 * and a server survives the death of a client.
 */
#include "user/tests/usertests/test.h"
#include "user/lib/ipc.h"
#include "user/lib/string.h"

static int port;

static void expect_epipe(int unused)
{
    struct message m = {.msg_tag = 1};

    (void)unused;
    FAILS(ipc_call(port, &m), EPIPE);
}

static void sleep_long(int unused)
{
    (void)unused;
    sleep_ms(1000000);
}

/* Receives one call and does not reply. */
static void receive_only(int at)
{
    struct message m = {0};

    EQUAL(ipc_receive(at, &m), 0);
    sleep_ms(1000000);
}

/* ---- the server ends ---------------------------------------------------- */

/* Before a client has called. */
TEST(death, server_before)
{
    pid_t server = spawn_server(sleep_long, &port);

    expect_killed(server);
    expect_exit(spawn(expect_epipe, 0), 0);
    FAILS(notify(port, 1), EPIPE);
}

/* While a call waits to be received. */
TEST(death, server_queued)
{
    pid_t server = spawn_server(sleep_long, &port);
    pid_t client = spawn(expect_epipe, 0);

    until_waits_for(client, "message");
    expect_killed(server);
    expect_exit(client, 0);
}

/* After it has received a call, before it replies. */
TEST(death, server_before_reply)
{
    pid_t server = spawn_server(receive_only, &port);
    pid_t client = spawn(expect_epipe, 0);

    until_waits_for(client, "message");
    until_waits_for(server, "sleep");
    expect_killed(server);
    expect_exit(client, 0);
}

static void receive_and_exit(int at)
{
    struct message m = {0};

    EQUAL(ipc_receive(at, &m), 0);
}

/* By exit, with two more calls in the queue. */
TEST(death, server_exits)
{
    pid_t server = spawn_server(receive_and_exit, &port);
    pid_t clients[3];

    for (int i = 0; i < 3; i++)
        clients[i] = spawn(expect_epipe, 0);
    for (int i = 0; i < 3; i++)
        expect_exit(clients[i], 0);
    expect_exit(server, 0);
}

static void receive_and_execute(int at)
{
    char *argv[] = {"sleep", "60", NULL};
    struct message m = {0};

    EQUAL(ipc_receive(at, &m), 0);
    execvp("sleep", argv);
    _exit(127);
}

/* The program that exec starts cannot reply to the call. */
TEST(death, server_executes)
{
    pid_t server = spawn_server(receive_and_execute, &port);

    expect_exit(spawn(expect_epipe, 0), 0);
    expect_killed(server);
}

static void receive_and_close(int at)
{
    struct message m = {0};

    EQUAL(ipc_receive(at, &m), 0);
    EQUAL(close(at), 0);
    m.msg_word[0] = 6;
    EQUAL(ipc_reply(m.msg_client, &m), 0);
}

static void expect_six(int unused)
{
    struct message m = {.msg_tag = 1};

    (void)unused;
    EQUAL(ipc_call(port, &m), 0);
    EQUAL(m.msg_word[0], 6);
}

/* It closes the port, but still replies to the call that it has received. */
TEST(death, port_closed)
{
    pid_t server = spawn_server(receive_and_close, &port);

    expect_exit(spawn(expect_six, 0), 0);
    expect_exit(spawn(expect_epipe, 0), 0);
    expect_exit(server, 0);
}

/* One of two receivers of a port ends; the other continues to serve. */
static void serve_one(int unused)
{
    struct message m = {0};

    (void)unused;
    EQUAL(ipc_receive(port, &m), 0);
    m.msg_word[0] = 6;
    EQUAL(ipc_reply(m.msg_client, &m), 0);
}

TEST(death, one_of_two)
{
    pid_t first, second;

    port = port_create();
    first = spawn(sleep_long, 0);
    second = spawn(serve_one, 0);
    until_waits_for(second, "message");
    expect_killed(first);
    expect_exit(spawn(expect_six, 0), 0);
    expect_exit(second, 0);
}

/* The server is killed while the kernel copies many bytes to or from it. */
static void serve_bytes(int at)
{
    struct ipc_buffer b = {.ipc_receive = message_bytes,
                           .ipc_receive_max = sizeof(message_bytes),
                           .ipc_send = message_bytes,
                           .ipc_send_size = sizeof(message_bytes)};
    struct message m = {.msg_buffer = &b};

    EQUAL(ipc_receive(at, &m), 0);
    for (;;) {
        m.msg_tag = IPC_DATA;
        EQUAL(ipc_reply_receive(at, &m), 0);
    }
}

static void call_with_bytes(int unused)
{
    struct ipc_buffer b = {.ipc_receive = message_bytes,
                           .ipc_receive_max = sizeof(message_bytes),
                           .ipc_send = message_bytes,
                           .ipc_send_size = sizeof(message_bytes)};

    (void)unused;
    for (;;) {
        struct message m = {.msg_tag = IPC_DATA, .msg_buffer = &b};

        if (ipc_call(port, &m) < 0) {
            EQUAL(errno, EPIPE);
            return;
        }
        EQUAL(b.ipc_received, sizeof(message_bytes));
    }
}

TEST(death, while_copying)
{
    for (int i = 0; i < 4; i++) {
        pid_t server = spawn_server(serve_bytes, &port);
        pid_t client = spawn(call_with_bytes, 0);

        sleep_ms(10);
        if (i % 2 == 0) {
            expect_killed(server);
            expect_exit(client, 0);
        } else {
            expect_killed(client);
            expect_killed(server);
        }
        EQUAL(close(port), 0);
    }
}

/* ---- the client ends ---------------------------------------------------- */

static void call_once(int unused)
{
    struct message m = {.msg_tag = 1, .msg_word = {1}};

    (void)unused;
    EQUAL(ipc_call(port, &m), 0);
    EQUAL(m.msg_word[0], 2);
}

static void reply_to_one(uint32_t with)
{
    struct message m = {0};

    EQUAL(ipc_receive(port, &m), 0);
    m.msg_word[0] += with;
    EQUAL(ipc_reply(m.msg_client, &m), 0);
}

/* While its call is queued: the next call is received instead. */
TEST(death, client_queued)
{
    pid_t first, second;

    port = port_create();
    first = spawn(call_once, 0);
    until_waits_for(first, "message");
    second = spawn(call_once, 0);
    expect_killed(first);
    reply_to_one(1);
    expect_exit(second, 0);
}

/* After its call was received: the reply has no client. */
TEST(death, client_received)
{
    struct message m = {0};
    pid_t client;

    port = port_create();
    client = spawn(call_once, 0);
    EQUAL(ipc_receive(port, &m), 0);
    expect_killed(client);
    FAILS(ipc_reply(m.msg_client, &m), ESRCH);
    /* reply_receive ignores that, and receives. */
    client = spawn(call_once, 0);
    EQUAL(ipc_reply_receive(port, &m), 0);
    m.msg_word[0]++;
    EQUAL(ipc_reply(m.msg_client, &m), 0);
    expect_exit(client, 0);
}

/* ---- the receiver ------------------------------------------------------- */

/* Killed while it waits for a call. */
TEST(death, receiving)
{
    pid_t server = spawn_server(receive_only, &port);

    until_waits_for(server, "message");
    expect_killed(server);
    expect_exit(spawn(expect_epipe, 0), 0);
}

/* A handle in a message is closed if the receiver ends before it gets it. */
TEST(death, handle_is_closed)
{
    int ends[2];
    char c;
    pid_t client, server;
    struct ipc_buffer b = {0};
    struct message m = {.msg_tag = IPC_HANDLE, .msg_buffer = &b};

    make_pipe(ends);
    server = spawn_server(sleep_long, &port);
    client = fork();
    CHECK(client >= 0);
    if (client == 0) {
        b.ipc_send_handle = ends[1];
        FAILS(ipc_call(port, &m), EPIPE);
        _exit(0);
    }
    EQUAL(close(ends[1]), 0);
    until_waits_for(client, "message");
    expect_killed(server);
    expect_exit(client, 0);
    EQUAL(read(ends[0], &c, 1), 0);
}
