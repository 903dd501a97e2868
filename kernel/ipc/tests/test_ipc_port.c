/*
 * Ports beyond messages: notifications, circles of callers, the name server's
 * port, interrupts, and snapshots for the shell.
 *
 * Tests: kernel/ipc/port.c, kernel/ipc/irq.c, kernel/ipc/deadlock.c
 */
#include "drivers/pic.h"
#include "kernel/fs/path.h"
#include "kernel/object/grant.h"
#include "kernel/ipc/tests/ipc_cast.h"
#include "kernel/x86/trap.h"
#include "kernel/x86/io.h"

/* ---- notifications ------------------------------------------------------ */

KTEST(ipc, bits_wake_a_receiver)
{
    begin(1);
    KT_TRUE(!receive());
    KT_EQ(actor_result(&c, sys_notify, port_c, 0, 0), 0);
    KT_TRUE(actor_waits(&s)); /* no bits */
    KT_EQ(actor_result(&c, sys_notify, port_c, 0x80000001, 0), 0);
    expect_received(NULL, 0);
    KT_EQ(s.actor_out[2], 0x80000001);
    KT_TRUE(!receive()); /* they come once */
}

KTEST(ipc, bits_add_up_and_come_before_callers)
{
    begin(2);
    call(&c, port_c, 1);
    KT_EQ(actor_result(&d, sys_notify, port_d, 1, 0), 0);
    KT_EQ(actor_result(&d, sys_notify, port_d, 4, 0), 0);
    KT_TRUE(receive());
    expect_received(NULL, 0);
    KT_EQ(s.actor_out[2], 5);
    KT_TRUE(receive());
    expect_received(&c, 1);
    KT_EQ(actor_result(&d, sys_notify, port_d, 8, 0), 0);
    KT_TRUE(actor_do(&s, sys_ipc_reply_receive, port_s, 2, 2));
    expect_reply(&c, 2);
    expect_received(NULL, 0);
    KT_EQ(s.actor_out[2], 8);
    KT_TRUE(!receive());
}

KTEST(ipc, reply_receive_after_bits_replies_to_no_client)
{
    begin(2);
    call(&c, port_c, 1);
    KT_TRUE(receive());
    KT_EQ(actor_result(&d, sys_notify, port_d, 1, 0), 0);
    KT_TRUE(receive());
    expect_received(NULL, 0);
    KT_TRUE(!actor_do(&s, sys_ipc_reply_receive, port_s, 2, 2));
    KT_TRUE(actor_waits(&c));
    actor_end(&s);
    expect_back(&c, -EPIPE);
}

/* ---- circles ------------------------------------------------------------ */

KTEST(ipc, a_circle_of_one)
{
    begin(0);
    KT_TRUE(call(&s, port_s, 1));
    expect_back(&s, -EDEADLK);
}

KTEST(ipc, a_circle_of_two)
{
    uint32_t to_d;

    begin(2);
    to_d = actor_share(&d, actor_port(&d), &s, 0);
    /* a duplicate that is closed changes nothing */
    KT_EQ(actor_result(&s, actor_close,
                       actor_share(&s, port_s, &s, HANDLE_RECEIVE), 0, 0),
          0);
    call(&d, port_d, 1);
    KT_TRUE(call(&s, to_d, 2)); /* d waits in the queue */
    expect_back(&s, -EDEADLK);
    KT_TRUE(receive());
    expect_received(&d, 1);
    KT_TRUE(call(&s, to_d, 2)); /* d waits for the reply */
    expect_back(&s, -EDEADLK);
    KT_EQ(reply(&d, 3), 0);
    KT_TRUE(!call(&s, to_d, 2)); /* d does not wait */
    actor_end(&d);
    expect_back(&s, -EPIPE);
}

KTEST(ipc, a_circle_of_three)
{
    uint32_t d_to_c, s_to_d;

    begin(2);
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
}

/* A killed member does not wait any more, though it still exists. */
KTEST(ipc, a_ready_member_opens_a_circle)
{
    uint32_t to_d;

    begin(2);
    to_d = actor_share(&d, actor_port(&d), &s, 0);
    call(&d, port_d, 1);
    actor_tell(&s, sys_ipc_call, to_d, 2, 2, 0);
    KT_EQ(task_kill(NULL, d.actor_pid, SIGKILL), 0);
    actor_settle();
    expect_back(&d, -EINTR);
    KT_TRUE(actor_waits(&s));
    actor_end(&d);
    expect_back(&s, -EPIPE);
}

static pid_t server_of_c;

static void look_at_c(void)
{
    struct ipc_edge edge;

    server_of_c = -1;
    if (ipc_edges(&edge, 1) == 1 && edge.edge_task == c.actor_pid)
        server_of_c = edge.edge_server;
}

/* A killed caller may already run, on another processor. */
KTEST(ipc, a_running_member_opens_a_circle)
{
    begin(1);
    KT_TRUE(!call(&c, port_c, 1));
    look_at_c();
    KT_EQ(server_of_c, s.actor_pid);
    actor_run_elsewhere(&c, look_at_c);
    KT_EQ(server_of_c, 0);
    actor_end(&s);
    expect_back(&c, -EPIPE);
}

/* c has taken over the port that s made. */
KTEST(ipc, a_circle_through_the_last_receiver)
{
    uint32_t to_e;

    begin(3);
    to_e = actor_share(&e, actor_port(&e), &c, 0);
    port_c = actor_share(&s, port_s, &c, HANDLE_RECEIVE);
    actor_end(&s);
    KT_TRUE(!call(&d, port_d, 1));
    KT_TRUE(actor_do(&c, sys_ipc_receive, port_c, 0, 0));
    KT_TRUE(!call(&e, port_e, 2)); /* queues */
    KT_TRUE(call(&c, to_e, 3));
    expect_back(&c, -EDEADLK);
    actor_end(&c);
    expect_back(&d, -EPIPE);
    expect_back(&e, -EPIPE);
}

/* As after fork: c has all that s has, two ports with the right to receive. s
 * calls one before c is there to serve it, and then c calls the other. */
KTEST(ipc, another_receiver_opens_a_circle)
{
    uint32_t other, other_c;

    begin(2);
    other = actor_port(&s);
    port_c = actor_share(&s, port_s, &c, HANDLE_RECEIVE);
    other_c = actor_share(&s, other, &c, HANDLE_RECEIVE);
    KT_TRUE(!call(&s, port_s, 1));
    KT_TRUE(actor_do(&c, sys_ipc_receive, port_c, 0, 0));
    KT_EQ(c.actor_out[0], s.actor_client);
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
}

/* The port's only receiver is not the one that made it. */
KTEST(ipc, a_circle_of_one_after_the_parent_ended)
{
    begin(1);
    port_c = actor_share(&s, port_s, &c, HANDLE_RECEIVE);
    actor_end(&s);
    KT_TRUE(call(&c, port_c, 1));
    expect_back(&c, -EDEADLK);
}

/* ---- the name server's port --------------------------------------------- */

KTEST(ipc, names)
{
    uint32_t own;
    struct port *had = name_server_get(); /* of the system that runs */

    if (had != NULL) {
        object_put(&had->port_object);
        return;
    }
    begin(2);
    KT_EQ(actor_result(&c, sys_name_server, NAME_SERVER_GET, 0, 0), -ENOENT);
    KT_EQ(actor_result(&s, sys_name_server, NAME_SERVER_SET, port_s + 1, 0),
          -EBADF);
    KT_EQ(actor_result(&s, sys_name_server, 2, port_s, 0), -EINVAL);
    KT_EQ(actor_result(&s, sys_name_server, NAME_SERVER_SET, port_s, 0),
          -EPERM);
    s.actor_task->task_privileged = true;
    KT_EQ(actor_result(&s, sys_name_server, NAME_SERVER_SET, port_s, 0), 0);
    KT_EQ(actor_result(&s, sys_name_server, NAME_SERVER_SET, port_s, 0), 0);
    KT_GE(actor_result(&c, sys_name_server, NAME_SERVER_GET, 0, 0), 0);
    KT_TRUE(!call(&c, (uint32_t)c.actor_result, 1));
    KT_TRUE(receive());
    KT_EQ(reply(&c, 1), 0);
    own = actor_port(&d);
    KT_EQ(actor_result(&d, sys_name_server, NAME_SERVER_SET, own, 0), -EPERM);
    d.actor_task->task_privileged = true;
    KT_EQ(actor_result(&d, sys_name_server, NAME_SERVER_SET, own, 0), 0);
    d.actor_task->task_privileged = false;
    actor_end(&d);
    KT_EQ(actor_result(&c, sys_name_server, NAME_SERVER_GET, 0, 0), -ENOENT);
    KT_EQ(actor_result(&s, actor_close, port_s, 0, 0), 0);
    c.actor_task->task_privileged = true;
    KT_EQ(actor_result(&c, sys_name_server, NAME_SERVER_SET, port_c, 0),
          -EPIPE);
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

/* A server's grant of all lines, in force. */
static struct grant *grant_lines(const struct actor *a)
{
    static const struct manifest_server rights = {.server_name = "lines",
                                                  .server_irqs = 0xffff};
    struct grant *g = actor_grant(&rights, path_root());

    KT_EQ(grant_take(g, a->actor_task), 0);
    KT_TRUE(grant_exec(a->actor_task, path_root()));
    return g;
}

KTEST(ipc, an_interrupt_is_a_notification)
{
    struct grant *g, *h;

    begin(1);
    KT_EQ(actor_result(&s, sys_irq_bind, port_s, FREE_LINE, 3), -EPERM);
    KT_EQ(actor_result(&s, sys_irq_ack, FREE_LINE, 0, 0), -EPERM);
    s.actor_task->task_privileged = true;
    KT_EQ(actor_result(&s, sys_irq_bind, port_s, FREE_LINE, 3), -EPERM);
    s.actor_task->task_privileged = false;
    g = grant_lines(&s);
    h = grant_lines(&c);
    KT_EQ(actor_result(&c, sys_irq_bind, port_c, FREE_LINE, 3), -EBADF);
    for (uint32_t taken = 0; taken < 3; taken++)
        KT_EQ(actor_result(&s, sys_irq_bind, port_s, taken, 3), -EBUSY);
    KT_EQ(actor_result(&s, sys_irq_bind, port_s, PIC_LINES, 3), -EINVAL);
    KT_EQ(actor_result(&s, sys_irq_bind, port_s, FREE_LINE, 32), -EINVAL);
    KT_EQ(actor_result(&s, sys_irq_ack, FREE_LINE, 0, 0), -EINVAL);
    KT_EQ(actor_result(&s, sys_irq_bind, port_s, FREE_LINE, 3), 0);
    KT_EQ(actor_result(&s, sys_irq_bind, port_s, FREE_LINE, 4), -EBUSY);
    KT_TRUE(!line_masked());
    KT_TRUE(!receive());
    raise_line();
    KT_TRUE(line_masked());
    actor_settle();
    expect_received(NULL, 0);
    KT_EQ(s.actor_out[2], 1u << 3);
    KT_EQ(actor_result(&c, sys_irq_ack, FREE_LINE, 0, 0), -EINVAL);
    KT_TRUE(line_masked()); /* not c's, though it has the line, too */
    KT_EQ(actor_result(&s, sys_irq_ack, FREE_LINE, 0, 0), 0);
    KT_TRUE(!line_masked());
    take_back(&s, g); /* and the line is free again */
    KT_TRUE(line_masked());
    KT_EQ(actor_result(&c, sys_irq_bind, actor_port(&c), FREE_LINE, 31), 0);
    KT_TRUE(!line_masked());
    ipc_irq_drop(c.actor_task);
    KT_TRUE(line_masked());
    take_back(&c, h);
}

/* The interrupt is on its way to the port, on another processor, when the port
 * dies. */
KTEST(ipc, an_interrupt_comes_after_its_port_died)
{
    struct trapframe tf = {.vector = PIC_VECTOR + FREE_LINE};
    void (*handler)(struct trapframe *);
    struct grant *g;

    begin(0);
    g = grant_lines(&s);
    KT_EQ(actor_result(&s, sys_irq_bind, port_s, FREE_LINE, 3), 0);
    handler = (void (*)(struct trapframe *))irq_handler(FREE_LINE);
    take_back(&s, g);
    KT_EQ(irq_handler(FREE_LINE), 0);
    handler(&tf);
    KT_TRUE(line_masked());
}

/* ---- snapshots ---------------------------------------------------------- */

KTEST(ipc, snapshots_for_the_shell)
{
    struct port *port = NULL;
    struct port_stat stat;
    struct ipc_edge edge[3];

    begin(2);
    call(&c, port_c, 1);
    KT_TRUE(receive());
    call(&d, port_d, 2);
    KT_EQ(actor_result(&s, sys_notify, port_s, 6, 0), 0);
    KT_EQ(ipc_edges(edge, 1), 1);
    KT_REQUIRE(ipc_edges(edge, 3) >= 2);
    KT_EQ(edge[0].edge_task, c.actor_pid);
    KT_EQ(edge[0].edge_server, s.actor_pid);
    KT_TRUE(!edge[0].edge_queued);
    KT_EQ(edge[1].edge_task, d.actor_pid);
    KT_EQ(edge[1].edge_server, s.actor_pid);
    KT_TRUE(edge[1].edge_queued);
    while ((port = port_walk(port, &stat)) != NULL &&
           stat.stat_number != edge[0].edge_port)
        ;
    KT_REQUIRE(port != NULL);
    object_put(&port->port_object);
    KT_EQ(stat.stat_number, edge[1].edge_port);
    KT_EQ(stat.stat_refs, 3);
    KT_EQ(stat.stat_holders, 1);
    KT_EQ(stat.stat_server, s.actor_pid);
    KT_EQ(stat.stat_queued, 1);
    KT_EQ(stat.stat_waiting, 0);
    KT_EQ(stat.stat_calls, 1);
    KT_EQ(stat.stat_bits, 6);
}

/* ---- the verifier ------------------------------------------------------- */

KTEST(ipc, the_verifier_finds_each_fault)
{
    struct port *p;

    begin(1);
    call(&c, port_c, 1);
    p = c.actor_task->task_ipc.ipc_port;
    c.actor_task->task_ipc.ipc_state = IPC_RECEIVING;
    KT_UNSOUND(ipc_verify, "a task is in a list, but not in the state");
    c.actor_task->task_ipc.ipc_state = IPC_NONE;
    KT_UNSOUND(ipc_verify, "a task is in a list, but not in the state");
    c.actor_task->task_ipc.ipc_state = IPC_QUEUED;
    c.actor_task->task_ipc.ipc_port = NULL;
    KT_UNSOUND(ipc_verify, "a task is in the list of another port");
    c.actor_task->task_ipc.ipc_port = p;
    p->port_holders = 0;
    KT_UNSOUND(ipc_verify, "a dead port is still in use");
    p->port_holders = 4;
    KT_UNSOUND(ipc_verify, "a port has fewer references than receivers");
    p->port_holders = 1;
    s.actor_task->task_ipc.ipc_last = c.actor_task;
    KT_UNSOUND(ipc_verify,
               "the caller received last does not wait for a reply");
    s.actor_task->task_ipc.ipc_last = NULL;
    c.actor_task->task_interruptible = false;
    KT_UNSOUND(ipc_verify, "a task that waits for a message cannot be killed");
    c.actor_task->task_interruptible = true;
    list_remove(&c.actor_task->task_ipc.ipc_link);
    KT_UNSOUND(ipc_verify, "a task is not in the list of its state");
    list_insert_before(&p->port_callers, &c.actor_task->task_ipc.ipc_link);
    KT_SOUND(ipc_verify);
}
