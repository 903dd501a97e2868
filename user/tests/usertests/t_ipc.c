/*
 * Messages: contents and errors. Another family (t_death.c) tests the death of
 * either side.
 */
#include "user/tests/usertests/test.h"
#include "user/lib/ipc.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

enum request {
    ADD = 1, /* word 0 + word 1 */
    BACK,    /* the bytes and the handle */
    STOP,
};

/* Replies to requests until STOP. */
static void serve(int port)
{
    struct ipc_buffer b = {.ipc_send = message_bytes,
                           .ipc_receive = message_bytes,
                           .ipc_receive_max = sizeof(message_bytes)};
    struct message m = {.msg_buffer = &b};
    uint32_t label;

    EQUAL(ipc_receive(port, &m), 0);
    do {
        label = IPC_LABEL(m.msg_tag);
        b.ipc_send_size = b.ipc_received;
        b.ipc_send_handle = b.ipc_received_handle;
        if (label == ADD)
            m.msg_word[0] += m.msg_word[1];
        EQUAL(ipc_reply(m.msg_client, &m), 0);
        if (b.ipc_received_handle >= 0)
            EQUAL(close(b.ipc_received_handle), 0);
        m.msg_tag = 0;
        if (label != STOP)
            EQUAL(ipc_receive(port, &m), 0);
    } while (label != STOP);
}

/* A server in a child; *port gets a handle to call it. */
static pid_t start_server(int *port)
{
    *port = port_create();
    CHECK(*port >= 0);
    return spawn(serve, *port);
}

static void stop_server(int port, pid_t server)
{
    struct message m = {.msg_tag = STOP};

    EQUAL(ipc_call(port, &m), 0);
    expect_exit(server, 0);
}

/* ---- words, bytes, handles ---------------------------------------------- */

TEST(ipc, words)
{
    int port;
    pid_t server = start_server(&port);

    for (uint32_t i = 0; i < 100; i++) {
        struct message m = {.msg_tag = ADD, .msg_word = {i, 2 * i, ~i}};

        EQUAL(ipc_call(port, &m), 0);
        EQUAL(m.msg_tag, ADD);
        EQUAL(m.msg_word[0], 3 * i);
        EQUAL(m.msg_word[1], 2 * i);
        EQUAL(m.msg_word[2], ~i);
    }
    stop_server(port, server);
}

TEST(ipc, bytes)
{
    uint8_t *out = malloc(IPC_DATA_MAX);
    uint8_t *in = malloc(IPC_DATA_MAX);
    static const uint32_t sizes[] = {0, 1, 3, 4, 100, 4095, 4096, 4097, 65536};
    int port;
    pid_t server = start_server(&port);

    CHECK(out != NULL && in != NULL);
    for (uint32_t i = 0; i < IPC_DATA_MAX; i++)
        out[i] = (uint8_t)(i * 13 + (i >> 8));
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct ipc_buffer b = {.ipc_send = out,
                               .ipc_send_size = sizes[i],
                               .ipc_receive = in,
                               .ipc_receive_max = IPC_DATA_MAX};
        struct message m = {.msg_tag = BACK | IPC_DATA, .msg_buffer = &b};

        memset(in, 0xee, IPC_DATA_MAX);
        EQUAL(ipc_call(port, &m), 0);
        EQUAL(b.ipc_received, sizes[i]);
        EQUAL(b.ipc_received_handle, -1);
        EQUAL(memcmp(in, out, sizes[i]), 0);
        if (sizes[i] < IPC_DATA_MAX)
            EQUAL(in[sizes[i]], 0xee);
    }
    stop_server(port, server);
}

TEST(ipc, handle)
{
    int ends[2];
    char c;
    int port;
    pid_t server = start_server(&port);
    struct ipc_buffer b = {0};
    struct message m = {.msg_tag = BACK | IPC_HANDLE, .msg_buffer = &b};

    make_pipe(ends);
    b.ipc_send_handle = ends[1];
    EQUAL(ipc_call(port, &m), 0);
    CHECK(b.ipc_received_handle > ends[1]);
    EQUAL(close(ends[1]), 0);
    EQUAL(write(b.ipc_received_handle, "h", 1), 1);
    EQUAL(read(ends[0], &c, 1), 1);
    EQUAL(close(b.ipc_received_handle), 0);
    EQUAL(read(ends[0], &c, 1), 0); /* the server has closed all of them */
    stop_server(port, server);
}

/* A port may be passed, but not the right to receive there. */
TEST(ipc, handle_of_port)
{
    int port;
    pid_t server = start_server(&port);
    struct ipc_buffer b = {.ipc_send_handle = port};
    struct message m = {.msg_tag = BACK | IPC_HANDLE, .msg_buffer = &b};
    struct message sum = {.msg_tag = ADD, .msg_word = {1, 2}};

    EQUAL(ipc_call(port, &m), 0);
    EQUAL(ipc_call(b.ipc_received_handle, &sum), 0);
    EQUAL(sum.msg_word[0], 3);
    FAILS(ipc_receive(b.ipc_received_handle, &m), EBADF);
    FAILS(ipc_reply_receive(b.ipc_received_handle, &m), EBADF);
    stop_server(port, server);
}

/* ---- messages that do not fit ------------------------------------------- */

static void serve_small(int port)
{
    char text[4];
    struct ipc_buffer b = {.ipc_receive = text, .ipc_receive_max = 4};
    struct message m = {.msg_buffer = &b};

    EQUAL(ipc_receive(port, &m), 0);
    EQUAL(b.ipc_received, 4);
    b.ipc_send = message_bytes;
    b.ipc_send_size = 100;
    m.msg_tag = IPC_DATA;
    FAILS(ipc_reply(m.msg_client, &m), EMSGSIZE);
    m.msg_buffer = NULL;
    EQUAL(ipc_receive(port, &m), 0);
    m.msg_tag = 0;
    EQUAL(ipc_reply(m.msg_client, &m), 0);
}

/* A call too long for the receiver: only the caller gets the error. A reply too
 * long for the caller: both get it. */
TEST(ipc, too_long)
{
    int port = port_create();
    pid_t server = spawn(serve_small, port);
    struct ipc_buffer b = {.ipc_send = message_bytes, .ipc_send_size = 5};
    struct message m = {.msg_tag = IPC_DATA, .msg_buffer = &b};

    FAILS(ipc_call(port, &m), EMSGSIZE);
    b.ipc_send_size = 4;
    m = (struct message){.msg_tag = IPC_DATA, .msg_buffer = &b};
    FAILS(ipc_call(port, &m), EMSGSIZE);
    m = (struct message){.msg_tag = IPC_DATA, .msg_buffer = &b};
    FAILS(ipc_call(port, &m), EMSGSIZE); /* it has no buffer at all */
    m = (struct message){.msg_tag = 1};
    EQUAL(ipc_call(port, &m), 0);
    expect_exit(server, 0);
}

static void serve_full(int port)
{
    struct ipc_buffer b = {0};
    struct message m = {.msg_buffer = &b};

    while (dup(0) >= 0)
        continue;
    EQUAL(ipc_receive(port, &m), 0);
    EQUAL(b.ipc_received_handle, -1);
    m.msg_tag = 0;
    EQUAL(ipc_reply(m.msg_client, &m), 0);
}

/* No room for the handle. */
TEST(ipc, no_room_for_handle)
{
    int port = port_create();
    pid_t server = spawn(serve_full, port);
    struct ipc_buffer b = {.ipc_send_handle = 0};
    struct message m = {.msg_tag = IPC_HANDLE, .msg_buffer = &b};

    FAILS(ipc_call(port, &m), EMFILE);
    m = (struct message){.msg_tag = 1};
    EQUAL(ipc_call(port, &m), 0);
    expect_exit(server, 0);
}

/* ---- replies ------------------------------------------------------------ */

TEST(ipc, reply_errors)
{
    struct message m = {0};

    FAILS(ipc_reply(0, &m), ESRCH);
    FAILS(ipc_reply(1, &m), ESRCH);
    FAILS(ipc_reply((uint32_t)getpid(), &m), ESRCH);
    FAILS(ipc_reply(0x7fffffff, &m), ESRCH);
    FAILS(ipc_reply(UINT32_MAX, &m), ESRCH);
}

static void call_with(int arg)
{
    struct message m = {.msg_tag = 1, .msg_word = {(uint32_t)arg & 0xff}};

    EQUAL(ipc_call(arg >> 8, &m), 0);
    _exit((int)m.msg_word[0]);
}

/* Three calls are received; the replies are sent in another order. */
TEST(ipc, out_of_order)
{
    int port = port_create();
    struct message m[3] = {{0}};
    pid_t children[3];

    for (int i = 0; i < 3; i++)
        children[i] = spawn(call_with, port << 8 | i);
    for (int i = 0; i < 3; i++)
        EQUAL(ipc_receive(port, &m[i]), 0);
    for (int i = 2; i >= 0; i--) {
        m[i].msg_word[0] += 10;
        EQUAL(ipc_reply(m[i].msg_client, &m[i]), 0);
        FAILS(ipc_reply(m[i].msg_client, &m[i]), ESRCH);
    }
    for (int i = 0; i < 3; i++)
        expect_exit(children[i], i + 10);
}

/* reply_receive replies to the last client and receives the next call. Either
 * may be the first. */
TEST(ipc, reply_and_receive)
{
    int port = port_create();
    struct message m = {0};
    pid_t a = spawn(call_with, port << 8 | 1);
    pid_t b = spawn(call_with, port << 8 | 2);
    uint32_t first;

    EQUAL(ipc_receive(port, &m), 0);
    first = m.msg_word[0];
    m.msg_word[0] += 4;
    EQUAL(ipc_reply_receive(port, &m), 0);
    EQUAL(m.msg_word[0], 3 - first);
    m.msg_word[0] += 4;
    EQUAL(ipc_reply(m.msg_client, &m), 0);
    expect_exit(a, 5);
    expect_exit(b, 6);
}

/* ---- deadlocks ---------------------------------------------------------- */

/* Gets a handle by its first message; for the second it calls that handle, and
 * replies with the result. */
static void call_onward(int port)
{
    struct ipc_buffer b = {0};
    struct message m = {.msg_buffer = &b};
    struct message next = {.msg_tag = 1};
    int to;

    EQUAL(ipc_receive(port, &m), 0);
    to = b.ipc_received_handle;
    m.msg_tag = 0;
    EQUAL(ipc_reply_receive(port, &m), 0);
    m.msg_word[0] =
        ipc_call(to, &next) == 0 ? next.msg_word[0] : (uint32_t)errno;
    m.msg_tag = 0;
    EQUAL(ipc_reply(m.msg_client, &m), 0);
}

/* One calls two, two calls three; three's call to one, which waits, is
 * refused. */
TEST(ipc, circle)
{
    pid_t servers[3];
    int ports[3];
    struct message m = {.msg_tag = 1};

    for (int i = 0; i < 3; i++)
        servers[i] = spawn_server(call_onward, &ports[i]);
    for (int i = 0; i < 3; i++) {
        struct ipc_buffer b = {.ipc_send_handle = ports[(i + 1) % 3]};
        struct message handle = {.msg_tag = IPC_HANDLE, .msg_buffer = &b};

        EQUAL(ipc_call(ports[i], &handle), 0);
    }
    EQUAL(ipc_call(ports[0], &m), 0);
    EQUAL(m.msg_word[0], EDEADLK);
    for (int i = 0; i < 3; i++)
        expect_exit(servers[i], 0);
}

static void receive_and_reply(int port)
{
    struct message m = {0};

    EQUAL(ipc_receive(port, &m), 0);
    EQUAL(ipc_reply(m.msg_client, &m), 0);
}

/* Only the caller itself receives there. */
TEST(ipc, call_self)
{
    int port = port_create();
    struct message m = {.msg_tag = 1};
    pid_t child;

    FAILS(ipc_call(port, &m), EDEADLK);
    child = spawn(receive_and_reply, port);
    until_waits_for(child, "message");
    EQUAL(ipc_call(port, &m), 0);
    expect_exit(child, 0);
}

/* ---- notifications ------------------------------------------------------ */

TEST(ipc, notify)
{
    int port = port_create();
    struct message m = {.msg_client = 9};

    EQUAL(notify(port, 1), 0);
    EQUAL(notify(port, 4), 0);
    EQUAL(notify(port, 4), 0);
    EQUAL(notify(port, 0), 0);
    EQUAL(ipc_receive(port, &m), 0);
    EQUAL(m.msg_client, 0);
    EQUAL(m.msg_word[0], 5);
    EQUAL(notify(port, 0x80000000), 0);
    EQUAL(ipc_receive(port, &m), 0);
    EQUAL(m.msg_word[0], 0x80000000);
}

static void receive_bits(int port)
{
    struct message m = {.msg_client = 9};

    EQUAL(ipc_receive(port, &m), 0);
    EQUAL(m.msg_client, 0);
    EQUAL(m.msg_word[0], 3);
}

TEST(ipc, notify_wakes)
{
    int port = port_create();
    pid_t child = spawn(receive_bits, port);

    until_waits_for(child, "message");
    EQUAL(notify(port, 3), 0);
    expect_exit(child, 0);
}

/* ---- alarms ------------------------------------------------------------- */

TEST(ipc, alarm)
{
    int port = port_create();
    int file = open("/etc/motd", O_RDONLY);
    uint32_t before = uptime_ms();
    struct message m = {.msg_client = 9};

    FAILS(alarm(port, 10, 32), EINVAL);
    FAILS(alarm(file, 10, 1), EBADF);
    FAILS(alarm(99, 10, 1), EBADF);
    EQUAL(alarm(port, 0, 1), 0);
    EQUAL(alarm(port, 60, 5), 0);
    EQUAL(alarm(port, 30, 31), 0);
    EQUAL(ipc_receive(port, &m), 0);
    EQUAL(m.msg_client, 0);
    EQUAL(m.msg_word[0], 0x80000000);
    CHECK(uptime_ms() - before >= 30 && uptime_ms() - before < 60);
    EQUAL(alarm(port, 0xffffffff, 1), 0);
    EQUAL(alarm(port, 10, 0), 0);
    EQUAL(alarm(port, 0, 0), 0);
    sleep_ms(30);
    EQUAL(notify(port, 4), 0);
    EQUAL(ipc_receive(port, &m), 0);
    EQUAL(m.msg_word[0], 4);
    EQUAL(alarm(port, 10, 0), 0); /* of a port that is destroyed */
}

static void call_alarm(int port)
{
    FAILS(alarm(port, 10, 1), EBADF);
}

/* Only a task with the right to receive may set it. */
TEST(ipc, alarm_needs_right)
{
    int port;
    pid_t server = spawn_server(receive_and_reply, &port);
    struct message m = {.msg_tag = 1};

    call_alarm(port);
    EQUAL(ipc_call(port, &m), 0);
    expect_exit(server, 0);
}

/* ---- rights and names --------------------------------------------------- */

TEST(ipc, privileged)
{
    int port = port_create();

    FAILS(name_server(7, port), EINVAL);
    FAILS(name_server(-1, port), EINVAL);
    /* Not even if there is no name server. */
    FAILS(name_server(NAME_SERVER_SET, port), EPERM);
    EQUAL(syscall_raw(SYS_port_create, (uint32_t[6]){1}), -EINVAL);
}

TEST(ipc, names)
{
    char list[512];
    int port = port_create();
    pid_t child = spawn(receive_and_reply, port);
    struct message m = {.msg_tag = 1, .msg_word = {77}};
    int found;

    FAILS(name_lookup("usertests"), ENOENT);
    EQUAL(name_register("usertests", port), 0);
    FAILS(name_register("usertests", port), EEXIST);
    FAILS(name_register("", port), EINVAL);
    FAILS(name_register("a name of more than 31 characters", port),
          ENAMETOOLONG);
    found = name_lookup("usertests");
    CHECK(found >= 0 && found != port);
    EQUAL(ipc_call(found, &m), 0);
    EQUAL(m.msg_word[0], 77);
    expect_exit(child, 0);
    CHECK(name_list(list, sizeof(list)) >= 10);
    EQUAL(name_remove("usertests"), 0);
    FAILS(name_remove("usertests"), ENOENT);
    FAILS(name_lookup("usertests"), ENOENT);
}

/* The name of a dead port can be registered again. */
TEST(ipc, names_of_dead_ports)
{
    int first = port_create();
    int second;

    EQUAL(name_register("usertests", first), 0);
    EQUAL(close(first), 0);
    FAILS(name_lookup("usertests"), ENOENT);
    first = port_create();
    EQUAL(name_register("usertests", first), 0);
    EQUAL(close(first), 0);
    second = port_create();
    EQUAL(name_register("usertests", second), 0);
    EQUAL(name_remove("usertests"), 0);
}
