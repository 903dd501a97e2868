/*
 * Messages: every order of call, receive, reply and death, seen from the system
 * calls. Actors (ipc_actor.h) play the client (c, d, e) and the server (s).
 */
#include "kernel/tests/ipc_actor.h"
#include "drivers/pic.h"
#include "kernel/task/handle.h"
#include "kernel/x86/io.h"

static struct actor s, c, d, e;
static uint32_t port;                   /* the server's handle */
static uint32_t port_c, port_d, port_e; /* handles of those who call */

/* A server with a port, and `clients` of c, d and e with handles to it. */
static bool begin(unsigned clients)
{
    struct actor *const actor[] = {&c, &d, &e};
    uint32_t *const handle[] = {&port_c, &port_d, &port_e};
    static const char *const name[] = {"client-c", "client-d", "client-e"};
    bool ok = actor_start(&s, "server");

    port = actor_port(&s);
    for (unsigned i = 0; i < clients && ok; i++) {
        ok = actor_start(actor[i], name[i]);
        *handle[i] = actor_share(&s, port, actor[i], 0);
    }
    return ok;
}

/* The server has received `tag` with its words from a client. */
static void expect_received(const struct actor *client, uint32_t tag)
{
    KT_TRUE(!actor_waits(&s));
    KT_EQ(s.actor_result, 0);
    KT_EQ(s.actor_out[0], client == NULL ? 0 : client->actor_pid);
    KT_EQ(s.actor_out[1], tag);
    if (client == NULL)
        return;
    KT_EQ(s.actor_out[2], client->actor_in[2]);
    KT_EQ(s.actor_out[3], client->actor_in[3]);
    KT_EQ(s.actor_out[4], client->actor_in[4]);
}

/* A client is back with the server's answer. */
static void expect_answered(const struct actor *client, uint32_t tag)
{
    KT_TRUE(!actor_waits(client));
    KT_EQ(client->actor_result, 0);
    KT_EQ(client->actor_out[1], tag);
    KT_EQ(client->actor_out[2], s.actor_in[2]);
    KT_EQ(client->actor_out[3], s.actor_in[3]);
    KT_EQ(client->actor_out[4], s.actor_in[4]);
}

/* A call has ended with this. */
static void expect_back(const struct actor *a, int result)
{
    KT_TRUE(!actor_waits(a));
    KT_EQ(a->actor_result, result);
}

static bool receive(void)
{
    return actor_do(&s, sys_ipc_receive, port, 0, 0);
}

static bool call(struct actor *client, uint32_t handle, uint32_t tag)
{
    return actor_do(client, sys_ipc_call, handle, tag, tag * 100);
}

static int reply(const struct actor *client, uint32_t tag)
{
    return actor_result(&s, sys_ipc_reply, (uint32_t)client->actor_pid, tag,
                        tag * 1000);
}

/* ---- orders of call, receive and reply ---------------------------------- */

KTEST(ipc, receiver_first)
{
    KT_REQUIRE(begin(1));
    KT_TRUE(!receive());
    KT_TRUE(!call(&c, port_c, 7));
    expect_received(&c, 7);
    KT_EQ(reply(&c, 8), 0);
    expect_answered(&c, 8);
    actor_end(&c);
    actor_end(&s);
}

KTEST(ipc, caller_first)
{
    KT_REQUIRE(begin(1));
    KT_TRUE(!call(&c, port_c, 7));
    KT_TRUE(receive());
    expect_received(&c, 7);
    KT_EQ(reply(&c, 8), 0);
    expect_answered(&c, 8);
    actor_end(&s);
    actor_end(&c);
}

KTEST(ipc, reply_receive_answers_and_waits)
{
    KT_REQUIRE(begin(1));
    KT_TRUE(!actor_do(&s, sys_ipc_reply_receive, port, 9, 9));
    for (uint32_t i = 1; i < 4; i++) {
        KT_TRUE(!call(&c, port_c, i));
        expect_received(&c, i);
        KT_TRUE(!actor_do(&s, sys_ipc_reply_receive, port, i + 50, i));
        expect_answered(&c, i + 50);
    }
    actor_end(&c);
    actor_end(&s);
}

KTEST(ipc, reply_receive_takes_the_next_of_the_queue)
{
    KT_REQUIRE(begin(3));
    call(&c, port_c, 1);
    call(&d, port_d, 2);
    call(&e, port_e, 3);
    KT_TRUE(receive());
    expect_received(&c, 1);
    KT_TRUE(actor_do(&s, sys_ipc_reply_receive, port, 10, 10));
    expect_answered(&c, 10);
    expect_received(&d, 2);
    KT_TRUE(actor_do(&s, sys_ipc_reply_receive, port, 20, 20));
    expect_answered(&d, 20);
    expect_received(&e, 3);
    KT_TRUE(!actor_do(&s, sys_ipc_reply_receive, port, 30, 30));
    expect_answered(&e, 30);
    actor_end(&s);
    actor_end(&c);
    actor_end(&d);
    actor_end(&e);
}

KTEST(ipc, answers_in_any_order)
{
    KT_REQUIRE(begin(3));
    call(&c, port_c, 1);
    call(&d, port_d, 2);
    call(&e, port_e, 3);
    KT_TRUE(receive() && receive() && receive());
    expect_received(&e, 3);
    KT_EQ(reply(&d, 12), 0);
    expect_answered(&d, 12);
    KT_EQ(reply(&e, 13), 0);
    expect_answered(&e, 13);
    /* the last received is answered: there is nobody for this answer */
    KT_TRUE(!actor_do(&s, sys_ipc_reply_receive, port, 14, 14));
    KT_TRUE(actor_waits(&c));
    call(&d, port_d, 4);
    expect_received(&d, 4);
    KT_EQ(reply(&c, 15), 0);
    expect_answered(&c, 15);
    actor_end(&s);
    expect_back(&d, -EPIPE);
    actor_end(&c);
    actor_end(&d);
    actor_end(&e);
}

KTEST(ipc, a_reply_needs_a_client_of_its_own)
{
    KT_REQUIRE(begin(2));
    KT_EQ(actor_result(&s, sys_ipc_reply, 0, 0, 0), -ESRCH);
    KT_EQ(actor_result(&s, sys_ipc_reply, 0xffffffff, 0, 0), -ESRCH);
    KT_EQ(reply(&c, 1), -ESRCH); /* has not called */
    call(&c, port_c, 1);
    KT_EQ(reply(&c, 1), -ESRCH); /* has not been received */
    KT_TRUE(receive());
    KT_EQ(actor_result(&d, sys_ipc_reply, (uint32_t)c.actor_pid, 1, 1), -ESRCH);
    KT_EQ(reply(&c, 2), 0);
    KT_EQ(reply(&c, 3), -ESRCH); /* has been answered */
    expect_back(&c, 0);
    KT_EQ(c.actor_out[1], 2);
    actor_end(&d);
    actor_end(&c);
    actor_end(&s);
}

KTEST(ipc, handles_are_checked)
{
    KT_REQUIRE(begin(1));
    KT_EQ(actor_result(&s, sys_port_create, 1, 0, 0), -EINVAL);
    KT_EQ(actor_result(&c, sys_ipc_call, port_c + 1, 0, 0), -EBADF);
    KT_EQ(actor_result(&c, sys_ipc_call, 0xffffffff, 0, 0), -EBADF);
    KT_EQ(actor_result(&c, sys_ipc_call, HANDLES_MAX, 0, 0), -EBADF);
    KT_EQ(actor_result(&c, sys_ipc_receive, port_c, 0, 0), -EBADF);
    KT_EQ(actor_result(&c, sys_ipc_reply_receive, port_c, 0, 0), -EBADF);
    KT_EQ(actor_result(&c, sys_notify, port_c + 1, 1, 0), -EBADF);
    KT_EQ(actor_result(&c, actor_close, port_c, 0, 0), 0);
    KT_EQ(actor_result(&c, sys_ipc_call, port_c, 0, 0), -EBADF);
    actor_end(&c);
    actor_end(&s);
}

KTEST(ipc, a_full_table_takes_no_port)
{
    int made = 0;

    KT_REQUIRE(begin(0));
    while (actor_result(&s, sys_port_create, 0, 0, 0) >= 0)
        made++;
    KT_EQ(s.actor_result, -EMFILE);
    KT_EQ(made, HANDLES_MAX - 1);
    actor_end(&s);
}

/* ---- the client dies ---------------------------------------------------- */

KTEST(ipc, killed_callers_leave_the_queue)
{
    KT_REQUIRE(begin(3));
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
    actor_end(&d);
    actor_end(&s);
}

KTEST(ipc, reply_receive_passes_over_a_killed_client)
{
    KT_REQUIRE(begin(2));
    call(&c, port_c, 1);
    call(&d, port_d, 2);
    KT_TRUE(receive());
    actor_end(&c);
    KT_TRUE(actor_do(&s, sys_ipc_reply_receive, port, 10, 10));
    expect_received(&d, 2);
    KT_TRUE(actor_waits(&d));
    actor_end(&s);
    expect_back(&d, -EPIPE);
    actor_end(&d);
}

KTEST(ipc, who_has_been_killed_does_not_wait)
{
    KT_REQUIRE(begin(2));
    actor_kill(&c);
    KT_TRUE(call(&c, port_c, 1)); /* nobody receives */
    expect_back(&c, -EINTR);
    KT_TRUE(!receive());
    KT_TRUE(call(&c, port_c, 1)); /* somebody does */
    expect_back(&c, -EINTR);
    KT_TRUE(actor_waits(&s));
    call(&d, port_d, 2);
    expect_received(&d, 2);
    actor_kill(&s);
    KT_TRUE(actor_do(&s, sys_ipc_reply_receive, port, 3, 3));
    expect_back(&s, -EINTR);
    expect_answered(&d, 3); /* the answer went out first */
    actor_end(&s);
    actor_end(&c);
    actor_end(&d);
}

/* Killed and woken, but not yet out of its list. */
KTEST(ipc, killed_but_not_yet_gone)
{
    KT_REQUIRE(begin(1));
    call(&c, port_c, 1);
    KT_EQ(task_kill(c.actor_pid, SIGKILL), 0);
    KT_EQ(c.actor_task->task_ipc.ipc_state, IPC_QUEUED);
    KT_EQ(c.actor_task->task_state, TASK_READY);
    actor_settle();
    expect_back(&c, -EINTR);
    actor_end(&s);
    actor_end(&c);
}

/* In that state it is passed over: here by a server that looks at its queue,
 * and that answers. (Who is told first runs first.) */
KTEST(ipc, a_ready_client_is_passed_over)
{
    KT_REQUIRE(begin(3));
    call(&c, port_c, 1);
    call(&d, port_d, 2);
    call(&e, port_e, 3);
    actor_tell(&s, sys_ipc_receive, port, 0, 0, 0);
    KT_EQ(task_kill(c.actor_pid, SIGKILL), 0);
    actor_settle();
    expect_back(&c, -EINTR);
    expect_received(&d, 2);
    actor_tell(&s, sys_ipc_reply, (uint32_t)d.actor_pid, 0, 0, 0);
    KT_EQ(task_kill(d.actor_pid, SIGKILL), 0);
    actor_settle();
    expect_back(&s, -ESRCH);
    expect_back(&d, -EINTR);
    KT_TRUE(receive());
    expect_received(&e, 3);
    actor_tell(&s, sys_ipc_reply_receive, port, 4, 4, 0);
    KT_EQ(task_kill(e.actor_pid, SIGKILL), 0);
    actor_settle();
    expect_back(&e, -EINTR);
    KT_TRUE(actor_waits(&s));
    actor_end(&s);
    actor_end(&c);
    actor_end(&d);
    actor_end(&e);
}

/* By a caller, and by one who notifies. */
KTEST(ipc, a_ready_receiver_is_passed_over)
{
    KT_REQUIRE(begin(2));
    port_d = actor_share(&s, port, &d, HANDLE_RECEIVE);
    KT_TRUE(!receive());
    actor_tell(&c, sys_ipc_call, port_c, 1, 1, 0);
    KT_EQ(task_kill(s.actor_pid, SIGKILL), 0);
    actor_settle();
    expect_back(&s, -EINTR);
    KT_EQ(c.actor_task->task_ipc.ipc_state, IPC_QUEUED);
    KT_TRUE(actor_do(&d, sys_ipc_receive, port_d, 0, 0));
    KT_EQ(d.actor_out[0], c.actor_pid);
    KT_TRUE(!actor_do(&d, sys_ipc_receive, port_d, 0, 0));
    KT_EQ(task_kill(d.actor_pid, SIGKILL), 0);
    KT_EQ(ipc_notify(d.actor_task->task_ipc.ipc_port, 1), 0);
    actor_settle();
    expect_back(&d, -EINTR);
    actor_end(&d);
    expect_back(&c, -EPIPE);
    actor_end(&c);
    actor_end(&s);
}

/* ---- the server dies ---------------------------------------------------- */

KTEST(ipc, a_dying_server_ends_all_calls)
{
    KT_REQUIRE(begin(3));
    call(&c, port_c, 1);
    KT_TRUE(receive());
    call(&d, port_d, 2);
    actor_end(&s);
    expect_back(&c, -EPIPE); /* was received */
    expect_back(&d, -EPIPE); /* was not */
    KT_TRUE(call(&e, port_e, 3));
    expect_back(&e, -EPIPE); /* comes too late */
    KT_EQ(actor_result(&e, sys_notify, port_e, 1, 0), -EPIPE);
    actor_end(&c);
    actor_end(&d);
    actor_end(&e);
}

KTEST(ipc, a_killed_receiver_leaves_the_port)
{
    KT_REQUIRE(begin(1));
    KT_TRUE(!receive());
    actor_kill(&s);
    expect_back(&s, -EINTR);
    KT_TRUE(!call(&c, port_c, 1)); /* waits: the port is alive still */
    actor_end(&s);
    expect_back(&c, -EPIPE);
    actor_end(&c);
}

KTEST(ipc, the_last_receive_handle_is_closed)
{
    KT_REQUIRE(begin(3));
    call(&c, port_c, 1);
    KT_TRUE(receive());
    call(&d, port_d, 2);
    KT_EQ(actor_result(&s, sys_notify, port, 1, 0), 0);
    KT_EQ(actor_result(&s, actor_close, port, 0, 0), 0);
    expect_back(&d, -EPIPE);
    KT_TRUE(actor_waits(&c)); /* has been received: is still answered */
    KT_EQ(reply(&c, 5), 0);
    expect_answered(&c, 5);
    KT_TRUE(call(&e, port_e, 3));
    expect_back(&e, -EPIPE);
    actor_end(&s);
    actor_end(&c);
    actor_end(&d);
    actor_end(&e);
}

/* As after fork: d is a second server of the port. */
KTEST(ipc, two_servers_at_one_port)
{
    KT_REQUIRE(begin(3));
    port_d = actor_share(&s, port, &d, HANDLE_RECEIVE);
    KT_TRUE(!receive());
    KT_TRUE(!actor_do(&d, sys_ipc_receive, port_d, 0, 0));
    KT_TRUE(!call(&c, port_c, 1));
    expect_received(&c, 1);
    KT_TRUE(!call(&e, port_e, 2));
    expect_back(&d, 0);
    KT_EQ(d.actor_out[0], e.actor_pid);
    /* neither answers the other's */
    KT_EQ(reply(&e, 1), -ESRCH);
    actor_end(&s);
    expect_back(&c, -EPIPE);
    KT_TRUE(!call(&c, port_c, 3)); /* waits for d, who lives */
    KT_TRUE(actor_do(&d, sys_ipc_reply_receive, port_d, 4, 4));
    expect_back(&e, 0);
    KT_EQ(d.actor_out[0], c.actor_pid);
    KT_TRUE(!call(&e, port_e, 5));
    KT_EQ(actor_result(&d, actor_close, port_d, 0, 0), 0);
    expect_back(&e, -EPIPE);
    actor_end(&d);
    expect_back(&c, -EPIPE);
    actor_end(&c);
    actor_end(&e);
}

/* ---- notifications ------------------------------------------------------ */

KTEST(ipc, bits_wake_a_receiver)
{
    KT_REQUIRE(begin(1));
    KT_TRUE(!receive());
    KT_EQ(actor_result(&c, sys_notify, port_c, 0, 0), 0);
    KT_TRUE(actor_waits(&s)); /* no bits */
    KT_EQ(actor_result(&c, sys_notify, port_c, 0x80000001, 0), 0);
    expect_received(NULL, 0);
    KT_EQ(s.actor_out[2], 0x80000001);
    KT_TRUE(!receive()); /* they come once */
    actor_end(&s);
    actor_end(&c);
}

KTEST(ipc, bits_add_up_and_come_before_callers)
{
    KT_REQUIRE(begin(2));
    call(&c, port_c, 1);
    KT_EQ(actor_result(&d, sys_notify, port_d, 1, 0), 0);
    KT_EQ(actor_result(&d, sys_notify, port_d, 4, 0), 0);
    KT_TRUE(receive());
    expect_received(NULL, 0);
    KT_EQ(s.actor_out[2], 5);
    KT_TRUE(receive());
    expect_received(&c, 1);
    KT_EQ(actor_result(&d, sys_notify, port_d, 8, 0), 0);
    KT_TRUE(actor_do(&s, sys_ipc_reply_receive, port, 2, 2));
    expect_answered(&c, 2);
    expect_received(NULL, 0);
    KT_EQ(s.actor_out[2], 8);
    KT_TRUE(!receive());
    actor_end(&s);
    actor_end(&c);
    actor_end(&d);
}

KTEST(ipc, after_bits_reply_receive_answers_nobody)
{
    KT_REQUIRE(begin(2));
    call(&c, port_c, 1);
    KT_TRUE(receive());
    KT_EQ(actor_result(&d, sys_notify, port_d, 1, 0), 0);
    KT_TRUE(receive());
    expect_received(NULL, 0);
    KT_TRUE(!actor_do(&s, sys_ipc_reply_receive, port, 2, 2));
    KT_TRUE(actor_waits(&c));
    actor_end(&s);
    expect_back(&c, -EPIPE);
    actor_end(&c);
    actor_end(&d);
}

/* ---- circles ------------------------------------------------------------ */

KTEST(ipc, a_circle_of_one)
{
    KT_REQUIRE(begin(0));
    KT_TRUE(call(&s, port, 1));
    expect_back(&s, -EDEADLK);
    actor_end(&s);
}

KTEST(ipc, a_circle_of_two)
{
    uint32_t to_d;

    KT_REQUIRE(begin(2));
    to_d = actor_share(&d, actor_port(&d), &s, 0);
    call(&d, port_d, 1);
    KT_TRUE(call(&s, to_d, 2)); /* d waits in the queue */
    expect_back(&s, -EDEADLK);
    KT_TRUE(receive());
    expect_received(&d, 1);
    KT_TRUE(call(&s, to_d, 2)); /* d waits for the answer */
    expect_back(&s, -EDEADLK);
    KT_EQ(reply(&d, 3), 0);
    KT_TRUE(!call(&s, to_d, 2)); /* d does not wait */
    actor_end(&d);
    expect_back(&s, -EPIPE);
    actor_end(&s);
    actor_end(&c);
}

KTEST(ipc, a_circle_of_three)
{
    uint32_t d_to_c, s_to_d;

    KT_REQUIRE(begin(2));
    d_to_c = actor_share(&c, actor_port(&c), &d, 0);
    s_to_d = actor_share(&d, actor_port(&d), &s, 0);
    KT_TRUE(!call(&c, port_c, 1));
    KT_TRUE(!call(&d, d_to_c, 2));
    KT_TRUE(call(&s, s_to_d, 3));
    expect_back(&s, -EDEADLK);
    actor_kill(&c); /* does not wait any more: the circle is open */
    KT_TRUE(!call(&s, s_to_d, 3));
    actor_end(&c);
    expect_back(&d, -EPIPE);
    actor_end(&d);
    expect_back(&s, -EPIPE);
    actor_end(&s);
}

/* A killed member does not wait any more, though it has not gone yet. */
KTEST(ipc, a_ready_member_opens_a_circle)
{
    uint32_t to_d;

    KT_REQUIRE(begin(2));
    to_d = actor_share(&d, actor_port(&d), &s, 0);
    call(&d, port_d, 1);
    actor_tell(&s, sys_ipc_call, to_d, 2, 2, 0);
    KT_EQ(task_kill(d.actor_pid, SIGKILL), 0);
    actor_settle();
    expect_back(&d, -EINTR);
    KT_TRUE(actor_waits(&s));
    actor_end(&d);
    expect_back(&s, -EPIPE);
    actor_end(&c);
    actor_end(&s);
}

/* c has taken over the port that s made. */
KTEST(ipc, a_circle_through_who_received_last)
{
    uint32_t to_e;

    KT_REQUIRE(begin(3));
    to_e = actor_share(&e, actor_port(&e), &c, 0);
    port_c = actor_share(&s, port, &c, HANDLE_RECEIVE);
    actor_end(&s);
    KT_TRUE(!call(&d, port_d, 1));
    KT_TRUE(actor_do(&c, sys_ipc_receive, port_c, 0, 0));
    KT_TRUE(!call(&e, port_e, 2)); /* queues */
    KT_TRUE(call(&c, to_e, 3));
    expect_back(&c, -EDEADLK);
    actor_end(&c);
    expect_back(&d, -EPIPE);
    expect_back(&e, -EPIPE);
    actor_end(&d);
    actor_end(&e);
}

/* As after fork: c has all that s has, two ports with the right to receive. s
 * calls one before c is there to serve it, and then c calls the other. */
KTEST(ipc, another_receiver_opens_a_circle)
{
    uint32_t other, other_c;

    KT_REQUIRE(begin(2));
    other = actor_port(&s);
    port_c = actor_share(&s, port, &c, HANDLE_RECEIVE);
    other_c = actor_share(&s, other, &c, HANDLE_RECEIVE);
    KT_TRUE(!call(&s, port, 1));
    KT_TRUE(actor_do(&c, sys_ipc_receive, port_c, 0, 0));
    KT_EQ(c.actor_out[0], s.actor_pid);
    /* all that could receive there would wait for one another */
    KT_TRUE(call(&c, other_c, 2));
    expect_back(&c, -EDEADLK);
    /* but d might */
    port_d = actor_share(&s, other, &d, HANDLE_RECEIVE);
    KT_TRUE(!call(&c, other_c, 2));
    KT_TRUE(actor_do(&d, sys_ipc_receive, port_d, 0, 0));
    actor_end(&d);
    expect_back(&c, -EPIPE);
    actor_end(&c);
    expect_back(&s, -EPIPE);
    actor_end(&s);
}

/* The port's only receiver is not the one that made it. */
KTEST(ipc, a_circle_of_one_after_the_parent_has_gone)
{
    KT_REQUIRE(begin(1));
    port_c = actor_share(&s, port, &c, HANDLE_RECEIVE);
    actor_end(&s);
    KT_TRUE(call(&c, port_c, 1));
    expect_back(&c, -EDEADLK);
    actor_end(&c);
}

/* ---- the name server's port --------------------------------------------- */

KTEST(ipc, names)
{
    uint32_t own;
    struct port *had = names_get(); /* of the system that runs */

    if (had != NULL) {
        object_put(&had->port_object);
        return;
    }
    KT_REQUIRE(begin(2));
    KT_EQ(actor_result(&c, sys_names, NAMES_GET, 0, 0), -ENOENT);
    KT_EQ(actor_result(&s, sys_names, NAMES_SET, port + 1, 0), -EBADF);
    KT_EQ(actor_result(&s, sys_names, 2, port, 0), -EINVAL);
    KT_EQ(actor_result(&s, sys_names, NAMES_SET, port, 0), 0);
    KT_EQ(actor_result(&s, sys_names, NAMES_SET, port, 0), 0);
    KT_GE(actor_result(&c, sys_names, NAMES_GET, 0, 0), 0);
    KT_TRUE(!call(&c, (uint32_t)c.actor_result, 1));
    KT_TRUE(receive());
    KT_EQ(reply(&c, 1), 0);
    own = actor_port(&d);
    KT_EQ(actor_result(&d, sys_names, NAMES_SET, own, 0), -EPERM);
    d.actor_task->task_privileged = true;
    KT_EQ(actor_result(&d, sys_names, NAMES_SET, own, 0), 0);
    d.actor_task->task_privileged = false;
    actor_end(&d);
    KT_EQ(actor_result(&c, sys_names, NAMES_GET, 0, 0), -ENOENT);
    KT_EQ(actor_result(&s, actor_close, port, 0, 0), 0);
    KT_EQ(actor_result(&c, sys_names, NAMES_SET, port_c, 0), -EPIPE);
    actor_end(&c);
    actor_end(&s);
}

/* ---- interrupts --------------------------------------------------------- */

#define FREE_LINE 5 /* a second printer: there is none */

static bool line_masked(void)
{
    return inb(0x21) >> FREE_LINE & 1;
}

/* As if the line had raised it. */
static void raise_line(void)
{
    __asm__ volatile("int %0" : : "i"(PIC_VECTOR + FREE_LINE) : "memory");
}

KTEST(ipc, an_interrupt_is_a_notification)
{
    KT_REQUIRE(begin(1));
    KT_EQ(actor_result(&s, sys_irq_bind, port, FREE_LINE, 3), -EPERM);
    KT_EQ(actor_result(&s, sys_irq_ack, FREE_LINE, 0, 0), -EPERM);
    s.actor_task->task_privileged = c.actor_task->task_privileged = true;
    KT_EQ(actor_result(&c, sys_irq_bind, port_c, FREE_LINE, 3), -EBADF);
    for (uint32_t taken = 0; taken < 3; taken++)
        KT_EQ(actor_result(&s, sys_irq_bind, port, taken, 3), -EBUSY);
    KT_EQ(actor_result(&s, sys_irq_bind, port, PIC_LINES, 3), -EINVAL);
    KT_EQ(actor_result(&s, sys_irq_bind, port, FREE_LINE, 32), -EINVAL);
    KT_EQ(actor_result(&s, sys_irq_ack, FREE_LINE, 0, 0), -EINVAL);
    KT_EQ(actor_result(&s, sys_irq_bind, port, FREE_LINE, 3), 0);
    KT_EQ(actor_result(&s, sys_irq_bind, port, FREE_LINE, 4), -EBUSY);
    KT_TRUE(!line_masked());
    KT_TRUE(!receive());
    raise_line();
    KT_TRUE(line_masked());
    actor_settle();
    expect_received(NULL, 0);
    KT_EQ(s.actor_out[2], 1u << 3);
    KT_EQ(actor_result(&s, sys_irq_ack, FREE_LINE, 0, 0), 0);
    KT_TRUE(!line_masked());
    actor_end(&s); /* and the line is free again */
    KT_TRUE(line_masked());
    KT_EQ(actor_result(&c, sys_irq_bind, actor_port(&c), FREE_LINE, 31), 0);
    actor_end(&c);
}

/* ---- looking ------------------------------------------------------------ */

KTEST(ipc, what_the_shell_sees)
{
    struct port_stat stat;
    struct ipc_edge edge[3];

    KT_REQUIRE(begin(2));
    call(&c, port_c, 1);
    KT_TRUE(receive());
    call(&d, port_d, 2);
    KT_EQ(actor_result(&s, sys_notify, port, 6, 0), 0);
    KT_EQ(port_stats(edge[0].edge_port, &stat, 0), 0);
    KT_EQ(ipc_edges(edge, 1), 1);
    KT_REQUIRE(ipc_edges(edge, 3) >= 2);
    KT_EQ(edge[0].edge_task, c.actor_pid);
    KT_EQ(edge[0].edge_server, s.actor_pid);
    KT_EQ(edge[0].edge_state, IPC_ANSWER);
    KT_EQ(edge[1].edge_task, d.actor_pid);
    KT_EQ(edge[1].edge_server, s.actor_pid);
    KT_EQ(edge[1].edge_state, IPC_QUEUED);
    KT_REQUIRE(port_stats(edge[0].edge_port - 1, &stat, 1) == 1);
    KT_EQ(stat.stat_number, edge[1].edge_port);
    KT_EQ(stat.stat_refs, 3);
    KT_EQ(stat.stat_holders, 1);
    KT_EQ(stat.stat_server, s.actor_pid);
    KT_EQ(stat.stat_queued, 1);
    KT_EQ(stat.stat_waiting, 0);
    KT_EQ(stat.stat_calls, 1);
    KT_EQ(stat.stat_bits, 6);
    actor_end(&s);
    actor_end(&c);
    actor_end(&d);
}

/* ---- the verifier ------------------------------------------------------- */

static bool verify_finds(const char *text)
{
    const char *where;
    const char *wrong = ipc_verify(&where);
    const char *p = wrong;

    while (p != NULL && *text != 0 && *p == *text)
        p++, text++;
    return p != NULL && *text == 0;
}

KTEST(ipc, the_verifier_finds_what_is_broken)
{
    struct port *p;

    KT_REQUIRE(begin(1));
    call(&c, port_c, 1);
    p = c.actor_task->task_ipc.ipc_port;
    c.actor_task->task_ipc.ipc_state = IPC_RECEIVING;
    KT_TRUE(verify_finds("a task is in a list, but not in the state"));
    c.actor_task->task_ipc.ipc_state = IPC_NONE;
    KT_TRUE(verify_finds("a task is in a list, but not in the state"));
    c.actor_task->task_ipc.ipc_state = IPC_QUEUED;
    c.actor_task->task_ipc.ipc_port = NULL;
    KT_TRUE(verify_finds("a task is in the list of another port"));
    c.actor_task->task_ipc.ipc_port = p;
    p->port_holders = 0;
    KT_TRUE(verify_finds("a dead port is still in use"));
    p->port_holders = 4;
    KT_TRUE(verify_finds("a port has fewer references than receivers"));
    p->port_holders = 1;
    s.actor_task->task_ipc.ipc_last = c.actor_task;
    KT_TRUE(verify_finds("the caller received last waits for no answer"));
    s.actor_task->task_ipc.ipc_last = NULL;
    c.actor_task->task_interruptible = false;
    KT_TRUE(verify_finds("a task that waits for a message cannot be killed"));
    c.actor_task->task_interruptible = true;
    list_remove(&c.actor_task->task_ipc.ipc_link);
    KT_TRUE(verify_finds("a task is not in the list that its state tells"));
    list_insert_before(&p->port_callers, &c.actor_task->task_ipc.ipc_link);
    KT_TRUE(ipc_verify(&(const char *){NULL}) == NULL);
    actor_end(&c);
    actor_end(&s);
}
