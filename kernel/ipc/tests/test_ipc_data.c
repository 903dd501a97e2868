/*
 * Messages with bytes and handles: sizes, addresses, tables, and which side
 * gets which error.
 *
 * Tests: kernel/ipc/transfer.c
 */
#include "drivers/pit.h"
#include "kernel/object/handle.h"
#include "kernel/ipc/tests/ipc_actor.h"

#define KERNEL_ADDRESS 0xC0100000u
#define AREA           (IPC_DATA_MAX + 2 * PAGE_SIZE) /* at any offset */

static struct actor s, c;
static uint32_t port, port_c; /* the server's port; the client's handle to it */

static void begin(void)
{
    actor_start(&s, "server", AREA);
    port = actor_port(&s);
    actor_start(&c, "client", AREA);
    port_c = actor_share(&s, port, &c, 0);
}

/* Bytes at `at` that depend on the place and on `seed`. */
static unsigned char pattern(uint32_t i, unsigned seed)
{
    return (unsigned char)(i * 7 + i / 251 + seed);
}

static void fill(const struct actor *a, uint32_t n, unsigned seed)
{
    for (uint32_t i = 0; i < n; i++)
        *(unsigned char *)actor_memory(a, ACTOR_SEND + i) = pattern(i, seed);
}

/* Whether n bytes of the pattern came, and nothing after them. */
static bool came(const struct actor *a, uint32_t n, unsigned seed)
{
    for (uint32_t i = 0; i < n; i++)
        if (*(unsigned char *)actor_memory(a, ACTOR_RECEIVE + i) !=
            pattern(i, seed))
            return false;
    return *(unsigned char *)actor_memory(a, ACTOR_RECEIVE + n) == 0;
}

static const struct ipc_buffer *buffer_of(const struct actor *a)
{
    return actor_memory(a, ACTOR_BUFFER);
}

static bool receive(void)
{
    return actor_do_buffer(&s, sys_ipc_receive, port, 0, 0, ACTOR_BUFFER);
}

static bool call(uint32_t tag)
{
    return actor_do_buffer(&c, sys_ipc_call, port_c, tag, 5, ACTOR_BUFFER);
}

static int reply(uint32_t tag)
{
    KT_TRUE(actor_do_buffer(&s, sys_ipc_reply, c.actor_client, tag, 6,
                            ACTOR_BUFFER));
    return s.actor_result;
}

static void expect_back(const struct actor *a, int result)
{
    KT_TRUE(!actor_waits(a));
    KT_EQ(a->actor_result, result);
}

/* ---- bytes -------------------------------------------------------------- */

/* n bytes there and n back. */
static void round_trip(uint32_t n, bool receiver_first)
{
    actor_buffer(&c, n, n, 0);
    actor_buffer(&s, n, n, 0);
    fill(&c, n, 1);
    fill(&s, n, 2);
    if (receiver_first)
        KT_TRUE(!receive());
    KT_TRUE(!call(9 | IPC_DATA));
    if (!receiver_first)
        KT_TRUE(receive());
    expect_back(&s, 0);
    KT_EQ(s.actor_out[0], c.actor_client);
    KT_EQ(s.actor_out[1], 9 | IPC_DATA);
    KT_EQ(s.actor_out[4], 7);
    KT_EQ(buffer_of(&s)->ipc_received, n);
    KT_EQ(buffer_of(&s)->ipc_received_handle, -1);
    KT_TRUE(came(&s, n, 1));
    KT_EQ(reply(3 | IPC_DATA), 0);
    expect_back(&c, 0);
    KT_EQ(c.actor_out[1], 3 | IPC_DATA);
    KT_EQ(buffer_of(&c)->ipc_received, n);
    KT_TRUE(came(&c, n, 2));
}

KTEST(ipc_data, there_and_back)
{
    static const uint32_t sizes[] = {
        0, 1, 3, PAGE_SIZE - 1, PAGE_SIZE, PAGE_SIZE + 1, IPC_DATA_MAX};

    begin();
    for (unsigned i = 0; i < 2 * ARRAY_SIZE(sizes); i++)
        round_trip(sizes[i / 2], i % 2 != 0);
}

KTEST(ipc_data, any_alignment)
{
    struct ipc_buffer *b;

    begin();
    b = actor_buffer(&c, 3 * PAGE_SIZE, 0, 0);
    b->ipc_send = (const void *)(ACTOR_SEND + 1);
    b = actor_buffer(&s, 0, 3 * PAGE_SIZE, 0);
    b->ipc_receive = (void *)(ACTOR_RECEIVE + PAGE_SIZE - 1);
    fill(&c, 3 * PAGE_SIZE + 1, 4);
    KT_TRUE(!call(IPC_DATA));
    KT_TRUE(receive());
    for (uint32_t i = 0; i < 3 * PAGE_SIZE; i++)
        KT_EQ(*(unsigned char *)actor_memory(&s,
                                             ACTOR_RECEIVE + PAGE_SIZE - 1 + i),
              pattern(i + 1, 4));
}

KTEST(ipc_data, nothing_comes_without_the_flag)
{
    begin();
    actor_buffer(&c, 10, 10, (int)port_c);
    actor_buffer(&s, 10, 10, (int)port);
    fill(&c, 10, 1);
    KT_TRUE(!call(1));
    KT_TRUE(receive());
    KT_EQ(buffer_of(&s)->ipc_received, 0);
    KT_EQ(buffer_of(&s)->ipc_received_handle, -1);
    KT_TRUE(came(&s, 0, 0));
    KT_EQ(reply(2), 0);
    expect_back(&c, 0);
    KT_EQ(buffer_of(&c)->ipc_received, 0);
    KT_EQ(buffer_of(&c)->ipc_received_handle, -1);
}

KTEST(ipc_data, reply_receive_with_bytes)
{
    begin();
    actor_buffer(&c, 100, 100, 0);
    actor_buffer(&s, 50, 100, 0);
    fill(&c, 100, 1);
    fill(&s, 50, 2);
    /* no client to reply to: the message is not checked */
    KT_TRUE(!actor_do_buffer(&s, sys_ipc_reply_receive, port, IPC_DATA, 0,
                             ACTOR_BUFFER));
    KT_TRUE(!call(IPC_DATA));
    expect_back(&s, 0);
    KT_TRUE(came(&s, 100, 1));
    KT_TRUE(!actor_do_buffer(&s, sys_ipc_reply_receive, port, IPC_DATA, 0,
                             ACTOR_BUFFER));
    expect_back(&c, 0);
    KT_TRUE(came(&c, 50, 2));
    KT_TRUE(!call(IPC_DATA));
    expect_back(&s, 0);
    KT_EQ(buffer_of(&s)->ipc_received, 100);
}

/* ---- sizes that do not fit ---------------------------------------------- */

KTEST(ipc_data, more_than_may_be_sent)
{
    begin();
    actor_buffer(&c, IPC_DATA_MAX + 1, 0, 0);
    KT_TRUE(call(IPC_DATA));
    expect_back(&c, -EMSGSIZE);
    actor_buffer(&c, 0xffffffff, 0, 0);
    KT_TRUE(call(IPC_DATA));
    expect_back(&c, -EMSGSIZE);
}

KTEST(ipc_data, more_than_the_server_has_room_for)
{
    begin();
    actor_buffer(&c, 11, 0, 0);
    actor_buffer(&s, 0, 10, 0);
    fill(&c, 11, 1);
    KT_TRUE(!receive());
    KT_TRUE(call(IPC_DATA));
    expect_back(&c, -EMSGSIZE);
    KT_TRUE(actor_waits(&s)); /* is not concerned */
    KT_TRUE(came(&s, 0, 0));
    actor_kill(&s);
}

KTEST(ipc_data, a_server_without_a_buffer)
{
    begin();
    actor_buffer(&c, 0, 0, (int)port_c);
    KT_TRUE(!actor_do(&s, sys_ipc_receive, port, 0, 0));
    KT_TRUE(call(IPC_HANDLE));
    expect_back(&c, -EMSGSIZE);
    KT_TRUE(!call(IPC_DATA)); /* no bytes fit */
    expect_back(&s, 0);
    KT_EQ(s.actor_out[0], c.actor_client);
}

KTEST(ipc_data, a_reply_that_is_too_long)
{
    begin();
    actor_buffer(&c, 0, 10, 0);
    actor_buffer(&s, 11, 0, 0);
    KT_TRUE(!call(1) && receive());
    KT_EQ(reply(IPC_DATA), -EMSGSIZE);
    expect_back(&c, -EMSGSIZE);
    KT_EQ(buffer_of(&c)->ipc_received, 0);
    KT_TRUE(!call(1) && receive());
    KT_TRUE(actor_do_buffer(&s, sys_ipc_reply_receive, port, IPC_DATA, 0,
                            ACTOR_BUFFER));
    expect_back(&s, -EMSGSIZE);
    expect_back(&c, -EMSGSIZE);
    KT_EQ(reply(IPC_DATA), -ESRCH); /* has its reply */
}

/* ---- bad addresses ------------------------------------------------------ */

KTEST(ipc_data, bad_addresses_of_the_caller)
{
    static const uint32_t buffers[] = {
        ACTOR_HOLE, KERNEL_ADDRESS, 0xffffffff, 4,
        ACTOR_BUFFER + PAGE_SIZE - sizeof(struct ipc_buffer) + 1};
    struct ipc_buffer *b;

    begin();
    actor_buffer(&s, 0, PAGE_SIZE, 0);
    KT_TRUE(!receive());
    for (unsigned i = 0; i < ARRAY_SIZE(buffers); i++) {
        KT_TRUE(
            actor_do_buffer(&c, sys_ipc_call, port_c, IPC_DATA, 0, buffers[i]));
        expect_back(&c, -EFAULT);
    }
    KT_EQ(actor_result(&c, sys_ipc_call, port_c, IPC_DATA, 0), -EFAULT);
    b = actor_buffer(&c, 10, 0, 0);
    b->ipc_send = (const void *)ACTOR_HOLE;
    KT_TRUE(call(IPC_DATA));
    expect_back(&c, -EFAULT);
    b->ipc_send = (const void *)KERNEL_ADDRESS;
    KT_TRUE(call(IPC_DATA));
    expect_back(&c, -EFAULT);
    b->ipc_send_size = 2 * PAGE_SIZE; /* its end is missing */
    b->ipc_send = (const void *)(ACTOR_SEND + AREA - PAGE_SIZE);
    actor_buffer(&s, 0, 2 * PAGE_SIZE, 0);
    KT_TRUE(call(IPC_DATA));
    KT_TRUE(c.actor_result == -EFAULT || c.actor_result == -EMSGSIZE);
    b->ipc_send_size = 1;
    b->ipc_send = (const void *)ACTOR_SEND;
    b->ipc_receive = (void *)(KERNEL_ADDRESS - 1);
    b->ipc_receive_max = 2;
    KT_TRUE(call(IPC_DATA));
    expect_back(&c, -EFAULT);
    KT_TRUE(actor_waits(&s)); /* none of this was its fault */
    actor_kill(&s);
}

/* The caller sees no error: it waits until the server has good addresses. */
KTEST(ipc_data, bad_addresses_of_the_receiver)
{
    struct ipc_buffer *b;

    begin();
    actor_buffer(&c, 10, 0, 0);
    fill(&c, 10, 1);
    KT_TRUE(!call(IPC_DATA));
    KT_TRUE(actor_do_buffer(&s, sys_ipc_receive, port, 0, 0, ACTOR_HOLE));
    expect_back(&s, -EFAULT);
    b = actor_buffer(&s, 0, 10, 0);
    b->ipc_receive = (void *)KERNEL_ADDRESS;
    KT_TRUE(receive());
    expect_back(&s, -EFAULT);
    b->ipc_receive = (void *)ACTOR_HOLE;
    KT_TRUE(receive());
    expect_back(&s, -EFAULT);
    KT_EQ(c.actor_task->task_ipc.ipc_state, IPC_QUEUED);
    KT_EQ(reply(0), -ESRCH);
    actor_buffer(&s, 0, 10, 0);
    KT_TRUE(receive());
    expect_back(&s, 0);
    KT_TRUE(came(&s, 10, 1));
}

/* A waiting second server gets the message that the first could not take. */
KTEST(ipc_data, a_message_goes_on_to_the_next_receiver)
{
    static struct actor other;
    struct ipc_buffer *b;
    uint32_t port_other;

    begin();
    actor_start(&other, "other", AREA);
    port_other = actor_share(&s, port, &other, HANDLE_RECEIVE);
    actor_buffer(&c, 10, 0, 0);
    fill(&c, 10, 1);
    b = actor_buffer(&s, 0, 10, 0);
    b->ipc_receive = (void *)ACTOR_HOLE;
    actor_buffer(&other, 0, 10, 0);
    KT_TRUE(!receive());
    KT_TRUE(!actor_do_buffer(&other, sys_ipc_receive, port_other, 0, 0,
                             ACTOR_BUFFER));
    KT_TRUE(!call(IPC_DATA));
    expect_back(&s, -EFAULT);
    expect_back(&other, 0);
    KT_TRUE(came(&other, 10, 1));
    actor_end(&other);
    expect_back(&c, -EPIPE);
}

KTEST(ipc_data, bad_addresses_of_a_reply)
{
    struct ipc_buffer *b;

    begin();
    actor_buffer(&c, 0, 10, 0);
    KT_TRUE(!call(1));
    KT_TRUE(actor_do(&s, sys_ipc_receive, port, 0, 0));
    KT_TRUE(
        actor_do_buffer(&s, sys_ipc_reply, c.actor_client, 0, 0, ACTOR_HOLE));
    expect_back(&s, -EFAULT);
    expect_back(&c, -EFAULT);
    for (unsigned i = 0; i < 2; i++) {
        b = actor_buffer(&s, 10, 0, 0);
        b->ipc_send = (const void *)(i == 0 ? ACTOR_HOLE : KERNEL_ADDRESS);
        KT_TRUE(!call(1) && receive());
        KT_EQ(reply(IPC_DATA), -EFAULT);
        expect_back(&c, -EFAULT);
    }
    actor_buffer(&s, 10, 0, 0);
    b = actor_buffer(&c, 0, 10, 0);
    b->ipc_receive = (void *)ACTOR_HOLE;
    KT_TRUE(!call(1) && receive());
    KT_EQ(reply(IPC_DATA), -EFAULT);
    expect_back(&c, -EFAULT);
    KT_TRUE(!call(1) && receive()); /* with reply_receive: no buffer at all */
    KT_TRUE(actor_do(&s, sys_ipc_reply_receive, port, IPC_DATA, 0));
    expect_back(&s, -EFAULT);
    expect_back(&c, -EFAULT);
    KT_TRUE(!actor_do(&s, sys_ipc_reply_receive, port, IPC_DATA, 0));
    KT_TRUE(!call(1)); /* without a client it just receives */
    expect_back(&s, 0);
}

/* ---- handles ------------------------------------------------------------ */

static unsigned used(const struct actor *a)
{
    return a->actor_task->task_handles->table_used;
}

KTEST(ipc_data, a_handle_there_and_back)
{
    uint32_t own, passed;

    begin();
    own = actor_port(&c);
    actor_buffer(&c, 0, 0, (int)own);
    actor_buffer(&s, 0, 0, 0);
    KT_TRUE(!call(1 | IPC_HANDLE) && receive());
    expect_back(&s, 0);
    passed = (uint32_t)buffer_of(&s)->ipc_received_handle;
    KT_EQ(used(&s), 2);
    KT_EQ(used(&c), 2); /* keeps its own */
    KT_EQ(actor_result(&s, sys_ipc_receive, passed, 0, 0), -EBADF);
    KT_EQ(actor_result(&s, sys_notify, passed, 2, 0), 0);
    actor_buffer(&s, 0, 0, (int)passed);
    KT_EQ(reply(2 | IPC_HANDLE), 0);
    KT_EQ(buffer_of(&s)->ipc_received_handle, 0xdead); /* of a receive only */
    expect_back(&c, 0);
    KT_EQ(used(&c), 3);
    KT_TRUE(actor_do(&c, sys_ipc_receive, own, 0, 0));
    KT_EQ(c.actor_out[2], 2);
    KT_EQ(actor_result(&c, actor_close, own, 0, 0), 0);
    KT_EQ(actor_result(&s, sys_notify, passed, 2, 0), -EPIPE);
}

KTEST(ipc_data, a_handle_that_is_none)
{
    static const int bad[] = {-1, 2, HANDLES_MAX, 0x7fffffff};

    begin();
    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        actor_buffer(&c, 0, 0, bad[i]);
        KT_TRUE(call(IPC_HANDLE));
        expect_back(&c, -EBADF);
    }
    actor_buffer(&c, 0, 0, 0);
    actor_buffer(&s, 0, 0, 99);
    KT_TRUE(!call(1) && receive());
    KT_EQ(reply(IPC_HANDLE), -EBADF);
    expect_back(&c, -EBADF);
}

static void fill_table(struct actor *a)
{
    while (actor_result(a, sys_port_create, 0, 0, 0) >= 0)
        ;
    KT_EQ(a->actor_result, -EMFILE);
}

KTEST(ipc_data, a_full_table_takes_no_handle)
{
    begin();
    actor_buffer(&c, 10, 10, (int)port_c);
    actor_buffer(&s, 10, 10, (int)port);
    fill(&c, 10, 1);
    fill_table(&s);
    KT_TRUE(!receive());
    KT_TRUE(call(IPC_HANDLE | IPC_DATA));
    expect_back(&c, -EMFILE);
    KT_TRUE(came(&s, 0, 0)); /* none of the bytes */
    KT_TRUE(!call(1));
    expect_back(&s, 0);
}

KTEST(ipc_data, a_full_table_takes_no_handle_of_a_reply)
{
    begin();
    actor_buffer(&c, 0, 10, 0);
    actor_buffer(&s, 10, 0, (int)port);
    fill(&s, 10, 1);
    fill_table(&c);
    KT_TRUE(!call(1) && receive());
    KT_EQ(reply(IPC_HANDLE | IPC_DATA), -EMFILE);
    expect_back(&c, -EMFILE);
    KT_TRUE(came(&c, 0, 0));
    KT_EQ(actor_result(&c, actor_close, HANDLES_MAX - 1, 0, 0), 0);
    KT_TRUE(!call(1) && receive());
    KT_EQ(reply(IPC_HANDLE | IPC_DATA), 0);
    KT_EQ(buffer_of(&c)->ipc_received_handle, HANDLES_MAX - 1);
}

/* ---- death in the middle ------------------------------------------------ */

/* A hundred ticks of the clock, most of which fall into a transfer. */
#define ROUNDS_MAX 50000

static volatile bool hit; /* the client was killed while it was pinned */
static bool at_rest;      /* task_find_at_rest returned it then */
static timer_tick_t tick; /* what the clock does otherwise */

static void kill_if_pinned(void)
{
    if (c.actor_task->task_ipc.ipc_state == IPC_TRANSFER) {
        hit = task_kill(NULL, c.actor_pid, SIGKILL) == 0;
        spin_lock(&sched_lock);
        at_rest = task_find_at_rest(c.actor_pid) != NULL;
        spin_unlock(&sched_lock);
    }
    if (tick != NULL)
        tick();
}

/* The clock's interrupt kills the client as soon as it finds it pinned: the
 * transfer is completed, and then the client dies. */
static void kill_in_transfer(bool in_reply)
{
    uint32_t there = in_reply ? 0 : IPC_DATA;
    uint32_t back = in_reply ? IPC_DATA : 0;

    actor_buffer(&c, IPC_DATA_MAX, IPC_DATA_MAX, 0);
    actor_buffer(&s, IPC_DATA_MAX, IPC_DATA_MAX, 0);
    hit = false;
    tick = timer_set_tick(kill_if_pinned);
    for (unsigned i = 0; i < ROUNDS_MAX && !hit; i++) {
        call(there);
        receive();
        if (!hit)
            reply(back);
    }
    timer_set_tick(tick);
    KT_TRUE(hit && !at_rest);
    expect_back(&s, 0);
    expect_back(&c, in_reply ? 0 : -EINTR);
    KT_EQ(actor_result(&s, sys_ipc_reply, c.actor_client, 0, 0), -ESRCH);
}

KTEST(ipc_data, killed_while_its_bytes_are_read)
{
    KT_NEEDS_TICKS_ANYWHERE();
    begin();
    kill_in_transfer(false);
}

KTEST(ipc_data, killed_while_its_reply_is_written)
{
    KT_NEEDS_TICKS_ANYWHERE();
    begin();
    kill_in_transfer(true);
}
