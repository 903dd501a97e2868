/*
 * Who waits for whom.
 *
 *     task A ──> port ──> server B ──> port ──> server C …
 *                queued           has received A's call: B owes an answer
 *
 * A caller that has been received waits for its server. One that still queues
 * waits for whoever receives at the port; the best guess is the task that did
 * so last, or made the port. Following these arrows from a caller either ends
 * at a task that does not wait, or leads back: a circle.
 *
 * Since fork copies handles, a port may have more receivers than the guess. A
 * circle is certain, and the call refused, only if every handle that could
 * receive at a port where some member queues belongs to a member. So no call is
 * refused that could have been served; what may be missed are circles that a
 * wrong guess leads around.
 */
#include "kernel/ipc/ipc_impl.h"
#include "kernel/lib/string.h"
#include "kernel/task/handle.h"

#define CHAIN_MAX 128 /* arrows followed; interrupts are disabled meanwhile */

/* Who will most likely receive next. */
static struct task *server_of(const struct port *port)
{
    return port->port_server == 0 ? NULL : task_find(port->port_server);
}

struct task *ipc_waits_for(const struct task *t)
{
    if (t->task_state == TASK_READY) /* killed: does not wait any more */
        return NULL;
    switch (t->task_ipc.ipc_state) {
    case IPC_QUEUED:
        return server_of(t->task_ipc.ipc_port);
    case IPC_ANSWER:
    case IPC_TRANSFER:
        return t->task_ipc.ipc_server;
    default:
        return NULL;
    }
}

/* ---- circles ------------------------------------------------------------ */

/* With how many handles a task, which does not run, may receive there. */
static unsigned holds(const struct task *t, const struct port *port)
{
    const struct handle_table *table = t->task_handles;
    unsigned n = 0;

    for (uint32_t i = 0; table != NULL && i < table->table_size; i++)
        n += table->table_slot[i].handle_object == &port->port_object &&
             (table->table_slot[i].handle_flags & HANDLE_RECEIVE) != 0;
    return n;
}

/* Whether nobody but the members of the circle through `self` could receive at
 * a port. */
static bool shut(const struct task *self, const struct port *port)
{
    const struct task *t = self;
    unsigned n = 0;

    do {
        n += holds(t, port);
        t = ipc_waits_for(t);
    } while (t != self);
    return n == port->port_holders;
}

bool ipc_deadlock(const struct task *self)
{
    const struct port *port = self->task_ipc.ipc_port;
    const struct task *t = ipc_waits_for(self);

    if (t == NULL) /* no guess; but we might be the only one */
        return holds(self, port) == port->port_holders;
    for (unsigned n = 0; t != self; n++) {
        if (t == NULL || n == CHAIN_MAX)
            return false;
        t = ipc_waits_for(t);
    }
    do {
        if (t->task_ipc.ipc_state == IPC_QUEUED &&
            !shut(self, t->task_ipc.ipc_port))
            return false;
        t = ipc_waits_for(t);
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
    server = ipc_waits_for(t);
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
