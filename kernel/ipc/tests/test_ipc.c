/*
 * Messages: every order of call, receive, reply and death, seen from the system
 * calls.
 *
 * Tests: kernel/ipc/message.c, kernel/ipc/ipc_verify.c
 */
#include "kernel/ipc/tests/ipc_cast.h"
#include "kernel/task/sched_impl.h"

/* ---- orders of call, receive and reply ---------------------------------- */

KTEST(ipc, receiver_first)
{
    begin(1);
    KT_TRUE(!receive());
    KT_TRUE(!call(&c, port_c, 7));
    expect_received(&c, 7);
    KT_EQ(reply(&c, 8), 0);
    expect_reply(&c, 8);
}

KTEST(ipc, caller_first)
{
    begin(1);
    KT_TRUE(!call(&c, port_c, 7));
    KT_TRUE(receive());
    expect_received(&c, 7);
    KT_EQ(reply(&c, 8), 0);
    expect_reply(&c, 8);
}

KTEST(ipc, reply_receive_replies_and_waits)
{
    begin(1);
    KT_TRUE(!actor_do(&s, sys_ipc_reply_receive, port_s, 9, 9));
    for (uint32_t i = 1; i < 4; i++) {
        KT_TRUE(!call(&c, port_c, i));
        expect_received(&c, i);
        KT_TRUE(!actor_do(&s, sys_ipc_reply_receive, port_s, i + 50, i));
        expect_reply(&c, i + 50);
    }
}

KTEST(ipc, reply_receive_takes_the_next_of_the_queue)
{
    begin(3);
    call(&c, port_c, 1);
    call(&d, port_d, 2);
    call(&e, port_e, 3);
    KT_TRUE(receive());
    expect_received(&c, 1);
    KT_TRUE(actor_do(&s, sys_ipc_reply_receive, port_s, 10, 10));
    expect_reply(&c, 10);
    expect_received(&d, 2);
    KT_TRUE(actor_do(&s, sys_ipc_reply_receive, port_s, 20, 20));
    expect_reply(&d, 20);
    expect_received(&e, 3);
    KT_TRUE(!actor_do(&s, sys_ipc_reply_receive, port_s, 30, 30));
    expect_reply(&e, 30);
}

KTEST(ipc, replies_in_any_order)
{
    begin(3);
    call(&c, port_c, 1);
    call(&d, port_d, 2);
    call(&e, port_e, 3);
    KT_TRUE(receive() && receive() && receive());
    expect_received(&e, 3);
    KT_EQ(reply(&d, 12), 0);
    expect_reply(&d, 12);
    KT_EQ(reply(&e, 13), 0);
    expect_reply(&e, 13);
    /* the client received last has its reply: this one has no client */
    KT_TRUE(!actor_do(&s, sys_ipc_reply_receive, port_s, 14, 14));
    KT_TRUE(actor_waits(&c));
    call(&d, port_d, 4);
    expect_received(&d, 4);
    KT_EQ(reply(&c, 15), 0);
    expect_reply(&c, 15);
    actor_end(&s);
    expect_back(&d, -EPIPE);
}

KTEST(ipc, a_reply_needs_a_client_of_its_own)
{
    begin(2);
    KT_EQ(actor_result(&s, sys_ipc_reply, 0, 0, 0), -ESRCH);
    KT_EQ(actor_result(&s, sys_ipc_reply, 0xffffffff, 0, 0), -ESRCH);
    KT_EQ(reply(&c, 1), -ESRCH); /* has not called */
    call(&c, port_c, 1);
    KT_EQ(reply(&c, 1), -ESRCH); /* has not been received */
    KT_TRUE(receive());
    KT_EQ(actor_result(&d, sys_ipc_reply, c.actor_client, 1, 1), -ESRCH);
    KT_EQ(reply(&c, 2), 0);
    KT_EQ(reply(&c, 3), -ESRCH); /* has its reply */
    expect_back(&c, 0);
    KT_EQ(c.actor_out[1], 2);
}

KTEST(ipc, handles_are_checked)
{
    begin(1);
    KT_EQ(actor_result(&s, sys_port_create, 1, 0, 0), -EINVAL);
    KT_EQ(actor_result(&c, sys_ipc_call, port_c + 1, 0, 0), -EBADF);
    KT_EQ(actor_result(&c, sys_ipc_call, 0xffffffff, 0, 0), -EBADF);
    KT_EQ(actor_result(&c, sys_ipc_call, HANDLES_MAX, 0, 0), -EBADF);
    KT_EQ(actor_result(&c, sys_ipc_receive, port_c, 0, 0), -EBADF);
    KT_EQ(actor_result(&c, sys_ipc_reply_receive, port_c, 0, 0), -EBADF);
    KT_EQ(actor_result(&c, sys_notify, port_c + 1, 1, 0), -EBADF);
    KT_EQ(actor_result(&c, actor_close, port_c, 0, 0), 0);
    KT_EQ(actor_result(&c, sys_ipc_call, port_c, 0, 0), -EBADF);
}

KTEST(ipc, a_full_table_takes_no_port)
{
    int made = 0;

    begin(0);
    while (actor_result(&s, sys_port_create, 0, 0, 0) >= 0)
        made++;
    KT_EQ(s.actor_result, -EMFILE);
    KT_EQ(made, HANDLES_MAX - 1);
}

/* ---- turns -------------------------------------------------------------- */

#define ROUNDS_MAX 400000 /* several slices of time */

static volatile bool stop;

static int32_t serve_until_stopped(uint32_t a, uint32_t b, uint32_t tag)
{
    (void)b;
    while (!stop)
        sys_ipc_reply_receive(a, tag, 0);
    return 0;
}

static int32_t call_until_stopped(uint32_t a, uint32_t b, uint32_t tag)
{
    int32_t rounds = 0;

    (void)b;
    while (!stop && rounds < ROUNDS_MAX && sys_ipc_call(a, tag, 0) == 0)
        rounds++;
    return rounds;
}

/* The two switch to each other directly, without the run queue; still the
 * others (here the test itself) have their turns. */
KTEST(ipc, two_that_talk_let_others_run)
{
    begin(1);
    stop = false;
    actor_tell(&s, serve_until_stopped, port_s, 0, 0, 0);
    actor_tell(&c, call_until_stopped, port_c, 0, 0, 0);
    sched_yield();
    stop = true;
    actor_settle();
    actor_end(&s); /* c may wait for a reply */
    KT_TRUE(!actor_waits(&c));
    KT_GE(c.actor_result, 1);
    KT_LE(c.actor_result, ROUNDS_MAX - 1);
}

/* ---- the client dies ---------------------------------------------------- */

KTEST(ipc, killed_callers_leave_the_queue)
{
    begin(3);
    call(&c, port_c, 1);
    call(&d, port_d, 2);
    call(&e, port_e, 3);
    actor_kill(&d);
    expect_back(&d, -EINTR);
    KT_TRUE(receive());
    expect_received(&c, 1);
    actor_kill(&c);
    expect_back(&c, -EINTR);
    KT_EQ(reply(&c, 1), -ESRCH);
    actor_end(&c);
    KT_TRUE(receive());
    expect_received(&e, 3);
    actor_end(&e);
    KT_TRUE(!receive());
}

static void set_last_pid(uint32_t pid)
{
    spin_lock(&sched_lock);
    pid_last = pid;
    spin_unlock(&sched_lock);
}

/* A new client c, with the pid of the old one, in the next round of pids. */
static void start_again(uint32_t pid)
{
    uint32_t before = pid_last;

    set_last_pid(pid_limit - 1);
    actor_start(&c, "client-c", PAGE_SIZE);
    actor_end(&c);
    set_last_pid(pid - 1);
    actor_start(&c, "client-c", PAGE_SIZE);
    set_last_pid(before);
}

KTEST(ipc, a_task_with_the_pid_of_a_killed_client_is_another)
{
    struct actor old;

    begin(1);
    call(&c, port_c, 1);
    KT_TRUE(receive());
    expect_received(&c, 1);
    old = c;
    actor_end(&c);
    start_again((uint32_t)old.actor_pid);
    KT_EQ(c.actor_pid, old.actor_pid);
    port_c = actor_share(&s, port_s, &c, 0);
    call(&c, port_c, 2);
    KT_TRUE(receive());
    expect_received(&c, 2);
    KT_EQ(reply(&old, 1), -ESRCH);
    KT_TRUE(actor_waits(&c));
    KT_EQ(reply(&c, 2), 0);
    expect_reply(&c, 2);
}

KTEST(ipc, reply_receive_passes_over_a_killed_client)
{
    begin(2);
    call(&c, port_c, 1);
    call(&d, port_d, 2);
    KT_TRUE(receive());
    actor_end(&c);
    KT_TRUE(actor_do(&s, sys_ipc_reply_receive, port_s, 10, 10));
    expect_received(&d, 2);
    KT_TRUE(actor_waits(&d));
    actor_end(&s);
    expect_back(&d, -EPIPE);
}

KTEST(ipc, a_killed_task_does_not_wait)
{
    begin(2);
    actor_kill(&c);
    KT_TRUE(call(&c, port_c, 1)); /* no receiver */
    expect_back(&c, -EINTR);
    KT_TRUE(!receive());
    KT_TRUE(call(&c, port_c, 1)); /* a receiver waits */
    expect_back(&c, -EINTR);
    KT_TRUE(actor_waits(&s));
    call(&d, port_d, 2);
    expect_received(&d, 2);
    actor_kill(&s);
    KT_TRUE(actor_do(&s, sys_ipc_reply_receive, port_s, 3, 3));
    expect_back(&s, -EINTR);
    expect_reply(&d, 3); /* the reply was sent first */
}

/* Killed and woken, but still in its list. */
KTEST(ipc, killed_but_still_alive)
{
    begin(1);
    call(&c, port_c, 1);
    KT_EQ(task_kill(NULL, c.actor_pid, SIGKILL), 0);
    KT_EQ(c.actor_task->task_ipc.ipc_state, IPC_QUEUED);
    KT_EQ(c.actor_task->task_state, TASK_READY);
    actor_settle();
    expect_back(&c, -EINTR);
}

/* A READY client is passed over: here by a server that tests its queue, and by
 * one that replies. (Actors run in the order in which they are started.) */
KTEST(ipc, a_ready_client_is_passed_over)
{
    begin(3);
    call(&c, port_c, 1);
    call(&d, port_d, 2);
    call(&e, port_e, 3);
    actor_tell(&s, sys_ipc_receive, port_s, 0, 0, 0);
    KT_EQ(task_kill(NULL, c.actor_pid, SIGKILL), 0);
    actor_settle();
    expect_back(&c, -EINTR);
    expect_received(&d, 2);
    actor_tell(&s, sys_ipc_reply, d.actor_client, 0, 0, 0);
    KT_EQ(task_kill(NULL, d.actor_pid, SIGKILL), 0);
    actor_settle();
    expect_back(&s, -ESRCH);
    expect_back(&d, -EINTR);
    KT_TRUE(receive());
    expect_received(&e, 3);
    actor_tell(&s, sys_ipc_reply_receive, port_s, 4, 4, 0);
    KT_EQ(task_kill(NULL, e.actor_pid, SIGKILL), 0);
    actor_settle();
    expect_back(&e, -EINTR);
    KT_TRUE(actor_waits(&s));
}

/* By a caller, and by a notification. */
KTEST(ipc, a_ready_receiver_is_passed_over)
{
    begin(2);
    port_d = actor_share(&s, port_s, &d, HANDLE_RECEIVE);
    KT_TRUE(!receive());
    actor_tell(&c, sys_ipc_call, port_c, 1, 1, 0);
    KT_EQ(task_kill(NULL, s.actor_pid, SIGKILL), 0);
    actor_settle();
    expect_back(&s, -EINTR);
    KT_EQ(c.actor_task->task_ipc.ipc_state, IPC_QUEUED);
    KT_TRUE(actor_do(&d, sys_ipc_receive, port_d, 0, 0));
    KT_EQ(d.actor_out[0], c.actor_client);
    KT_TRUE(!actor_do(&d, sys_ipc_receive, port_d, 0, 0));
    KT_EQ(task_kill(NULL, d.actor_pid, SIGKILL), 0);
    KT_EQ(ipc_notify(d.actor_task->task_ipc.ipc_port, 1), 0);
    actor_settle();
    expect_back(&d, -EINTR);
    actor_end(&d);
    expect_back(&c, -EPIPE);
}

/* ---- the server dies ---------------------------------------------------- */

KTEST(ipc, a_dying_server_ends_all_calls)
{
    begin(3);
    call(&c, port_c, 1);
    KT_TRUE(receive());
    call(&d, port_d, 2);
    actor_end(&s);
    expect_back(&c, -EPIPE); /* was received */
    expect_back(&d, -EPIPE); /* was not */
    KT_TRUE(call(&e, port_e, 3));
    expect_back(&e, -EPIPE); /* comes too late */
    KT_EQ(actor_result(&e, sys_notify, port_e, 1, 0), -EPIPE);
}

KTEST(ipc, a_killed_receiver_leaves_the_port)
{
    begin(1);
    KT_TRUE(!receive());
    actor_kill(&s);
    expect_back(&s, -EINTR);
    KT_TRUE(!call(&c, port_c, 1)); /* waits: the port is alive still */
    actor_end(&s);
    expect_back(&c, -EPIPE);
}

KTEST(ipc, the_last_receive_handle_is_closed)
{
    begin(3);
    call(&c, port_c, 1);
    KT_TRUE(receive());
    call(&d, port_d, 2);
    KT_EQ(actor_result(&s, sys_notify, port_s, 1, 0), 0);
    KT_EQ(actor_result(&s, actor_close, port_s, 0, 0), 0);
    expect_back(&d, -EPIPE);
    KT_TRUE(actor_waits(&c)); /* has been received: still gets a reply */
    KT_EQ(reply(&c, 5), 0);
    expect_reply(&c, 5);
    KT_TRUE(call(&e, port_e, 3));
    expect_back(&e, -EPIPE);
}

/* As after fork: d is a second server of the port. */
KTEST(ipc, two_servers_at_one_port)
{
    begin(3);
    port_d = actor_share(&s, port_s, &d, HANDLE_RECEIVE);
    KT_TRUE(!receive());
    KT_TRUE(!actor_do(&d, sys_ipc_receive, port_d, 0, 0));
    KT_TRUE(!call(&c, port_c, 1));
    expect_received(&c, 1);
    KT_TRUE(!call(&e, port_e, 2));
    expect_back(&d, 0);
    KT_EQ(d.actor_out[0], e.actor_client);
    /* neither replies to the other's client */
    KT_EQ(reply(&e, 1), -ESRCH);
    actor_end(&s);
    expect_back(&c, -EPIPE);
    KT_TRUE(!call(&c, port_c, 3)); /* waits for d, which lives */
    KT_TRUE(actor_do(&d, sys_ipc_reply_receive, port_d, 4, 4));
    expect_back(&e, 0);
    KT_EQ(d.actor_out[0], c.actor_client);
    KT_TRUE(!call(&e, port_e, 5));
    KT_EQ(actor_result(&d, actor_close, port_d, 0, 0), 0);
    expect_back(&e, -EPIPE);
    actor_end(&d);
    expect_back(&c, -EPIPE);
}
