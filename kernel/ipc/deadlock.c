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
 *
 * A search releases sched_lock after every STEP arrows and every HANDLES
 * handles. If the searching task loses the processor meanwhile, the arrows may
 * have changed, and it begins again. A real cycle stays, so it is found then.
 */
#include "kernel/abi/errno.h"
#include "kernel/ipc/ipc_impl.h"
#include "kernel/lib/string.h"
#include "kernel/task/handle.h"

#define CHAIN_MAX 128 /* arrows followed */
#define STEP      8   /* arrows in one hold of sched_lock */
#define HANDLES   16  /* handles in one hold of sched_lock */
#define TRIES     8

/* The task that will probably receive next. */
static struct task *server_of(const struct port *port)
{
    return port->port_server == 0 ? NULL : task_find(port->port_server);
}

/* The task that a caller waits for, or NULL. */
static struct task *waits_for(const struct task *t)
{
    spin_assert_held(&sched_lock);
    if (t->task_state != TASK_BLOCKED) /* killed: no longer waits */
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

/* Releases sched_lock for a moment. False: other tasks have run. (An interrupt
 * only ends waits, and so cannot close a cycle.) */
static bool let_in(uint32_t switches)
{
    sched_let_in();
    return task_self()->task_switches == switches;
}

/* Counts the handles with which a task may receive at any port. */
static bool count_handles(const struct task *t, uint32_t switches)
{
    const struct handle_table *table = t->task_handles;

    for (uint32_t i = 0; table != NULL && i < table->table_size; i++) {
        const struct handle *h = &table->table_slot[i];

        if (h->handle_object != NULL && (h->handle_flags & HANDLE_RECEIVE))
            container_of(h->handle_object, struct port, port_object)
                ->port_found++;
        if (i % HANDLES == HANDLES - 1 && !let_in(switches))
            return false;
    }
    return let_in(switches);
}

enum pass {
    PASS_RESET,
    PASS_COUNT,
    PASS_COMPARE,
    PASSES
};

/* Follows the cycle through `first`, which waits, or is about to, at its port;
 * or visits `first` alone if it waits for no known task. False: there is no
 * cycle, or another task may receive at a port where a member queues. */
static bool follow(struct task *first, uint32_t switches, enum pass pass)
{
    struct task *t = first;

    for (unsigned n = 0; n < CHAIN_MAX; n++) {
        bool queued = t == first || t->task_ipc.ipc_state == IPC_QUEUED;
        struct port *port = t->task_ipc.ipc_port;

        if (queued && pass == PASS_RESET)
            port->port_found = 0;
        if ((pass == PASS_COUNT && !count_handles(t, switches)) ||
            (queued && pass == PASS_COMPARE &&
             port->port_found != port->port_holders) ||
            (n % STEP == STEP - 1 && !let_in(switches)))
            return false;
        t = t == first ? server_of(port) : waits_for(t);
        if (t == NULL || t == first)
            return t == first || n == 0;
    }
    return false;
}

bool ipc_deadlock(struct task *t)
{
    uint32_t switches;
    int tries = 0;

    spin_assert_held(&sched_lock);
    do {
        enum pass pass = PASS_RESET;

        switches = task_self()->task_switches;
        while (pass < PASSES && follow(t, switches, pass))
            pass++;
        if (pass == PASSES)
            return true;
    } while (t == task_self() && t->task_switches != switches &&
             ++tries < TRIES);
    return false;
}

/* ---- a receiver has left ------------------------------------------------ */

static bool refuse(struct task *t)
{
    if (!ipc_deadlock(t) || !ipc_waits(t))
        return false;
    ipc_refuse(t, -EDEADLK);
    return true;
}

/* If the next receiver is known, only one caller can be in a cycle with it: the
 * one to which the chain from the receiver leads. Otherwise any caller may be
 * the only receiver that is left. */
static void search_callers(const struct port *port, uint32_t switches)
{
    struct task *t = server_of(port);

    if (t == NULL)
        list_for_each (l, &port->port_callers)
            if (refuse(ipc_task(l)) || !let_in(switches))
                return;
    for (unsigned n = 1; t != NULL && n <= CHAIN_MAX; n++) {
        if (n % STEP == 0 && !let_in(switches))
            return;
        if (t->task_ipc.ipc_state == IPC_QUEUED &&
            t->task_ipc.ipc_port == port) {
            refuse(t);
            return;
        }
        t = waits_for(t);
    }
}

void ipc_refuse_deadlock(struct port *port)
{
    uint32_t switches;
    int n = 0;

    spin_lock(&sched_lock);
    do {
        switches = task_self()->task_switches;
        search_callers(port, switches);
    } while (task_self()->task_switches != switches && ++n < TRIES);
    spin_unlock(&sched_lock);
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
