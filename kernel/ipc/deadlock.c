/*
 * Detection of deadlocks among callers: which task waits for which.
 *
 *     task A ──> port ──> server B ──> port ──> server C …
 *                queued           has received A's call: B owes a reply
 *
 * A caller that has been received waits for its server. A queued caller waits
 * for the next task to receive on the port. The best guess is the task that
 * received last, or that created the port. These arrows, followed from a
 * caller, end at a task that does not wait, or lead back to the caller: a
 * cycle.
 *
 * Since fork copies handles, a port may have other receivers than the guess. A
 * cycle is certain, and the call refused, only if every handle that can receive
 * on a port where a member queues belongs to a member. So no call is refused
 * that could be served. A cycle that a wrong guess hides is not found.
 */
#include "kernel/ipc/ipc_impl.h"
#include "kernel/lib/string.h"
#include "kernel/task/handle.h"

#define CHAIN_MAX 128 /* arrows followed with interrupts disabled */

/* The task that will probably receive next. */
static struct task *server_of(const struct port *port)
{
    return port->port_server == 0 ? NULL : task_find(port->port_server);
}

/* The task that a caller waits for, or NULL. */
static struct task *waits_for(const struct task *t)
{
    spin_assert_held(&sched_lock);
    if (t->task_state == TASK_READY) /* killed: no longer waits */
        return NULL;
    switch (t->task_ipc.ipc_state) {
    case IPC_QUEUED:
        return server_of(t->task_ipc.ipc_port);
    case IPC_REPLY:
    case IPC_TRANSFER:
        return t->task_ipc.ipc_server;
    default:
        return NULL;
    }
}

/* ---- cycles ------------------------------------------------------------- */

/* The number of handles with which `t`, which does not run, may receive. */
static unsigned receive_handles(const struct task *t, const struct port *port)
{
    const struct handle_table *table = t->task_handles;
    unsigned n = 0;

    for (uint32_t i = 0; table != NULL && i < table->table_size; i++)
        n += table->table_slot[i].handle_object == &port->port_object &&
             (table->table_slot[i].handle_flags & HANDLE_RECEIVE) != 0;
    return n;
}

/* Whether only members of the cycle through `self` can receive on the port. */
static bool only_members_receive(const struct task *self,
                                 const struct port *port)
{
    const struct task *t = self;
    unsigned n = 0;

    do {
        n += receive_handles(t, port);
        t = waits_for(t);
    } while (t != self);
    return n == port->port_holders;
}

bool ipc_deadlock(const struct task *self)
{
    const struct port *port = self->task_ipc.ipc_port;
    const struct task *t = waits_for(self);

    spin_assert_held(&sched_lock);
    if (t == NULL) /* no guess, but this may be the only receiver */
        return receive_handles(self, port) == port->port_holders;
    for (unsigned n = 0; t != self; n++) {
        if (t == NULL || n == CHAIN_MAX)
            return false;
        t = waits_for(t);
    }
    do {
        if (t->task_ipc.ipc_state == IPC_QUEUED &&
            !only_members_receive(self, t->task_ipc.ipc_port))
            return false;
        t = waits_for(t);
    } while (t != self);
    return true;
}

/* ---- for the shell ------------------------------------------------------ */

struct edges {
    struct ipc_edge *edges_out;
    size_t edges_used;
    size_t edges_room;
};

static bool add_edge(struct task *t, void *arg)
{
    struct edges *e = arg;
    const struct task *server;
    struct ipc_edge *out;

    if (t->task_ipc.ipc_state == IPC_NONE ||
        t->task_ipc.ipc_state == IPC_RECEIVING)
        return true;
    if (e->edges_used == e->edges_room)
        return false;
    server = waits_for(t);
    out = &e->edges_out[e->edges_used++];
    *out = (struct ipc_edge){
        .edge_task = t->task_pid,
        .edge_server = server == NULL ? 0 : server->task_pid,
        .edge_port = t->task_ipc.ipc_port->port_number,
        .edge_state = t->task_ipc.ipc_state,
    };
    memcpy(out->edge_name, t->task_name, sizeof(out->edge_name));
    if (server != NULL)
        memcpy(out->edge_server_name, server->task_name,
               sizeof(out->edge_server_name));
    return true;
}

size_t ipc_edges(struct ipc_edge *out, size_t n)
{
    struct edges e = {out, 0, n};

    task_each(add_edge, &e);
    return e.edges_used;
}
