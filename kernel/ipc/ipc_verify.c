/*
 * Snapshots of ports for the shell, and the invariants: each member of a list
 * has the state for that list, and each task is in the list for its state.
 */
#include "kernel/ipc/ipc_impl.h"
#include "kernel/lib/printf.h"

/* ---- snapshots ---------------------------------------------------------- */

static uint16_t length(const struct list *head)
{
    uint16_t n = 0;

    for (const struct list *l = head->next; l != head && n < PORT_COUNT_MAX;
         l = l->next)
        n += ipc_waits(ipc_task(l));
    return n;
}

/* The caller's own reference to the port is not counted. */
static struct port_stat port_stat_of(const struct port *port)
{
    return (struct port_stat){
        .stat_number = port->port_number,
        .stat_refs = port->port_object.object_refs - 1,
        .stat_holders = port->port_holders,
        .stat_calls = port->port_calls,
        .stat_bits = port->port_bits,
        .stat_irqs = ipc_irq_lines(port),
        .stat_server = port->port_server,
        .stat_queued = length(&port->port_callers),
        .stat_waiting = length(&port->port_receivers),
        .stat_name_server = port == name_server_port,
    };
}

struct port *port_walk(struct port *last, struct port_stat *out)
{
    const struct list *at = last == NULL ? &port_all : &last->port_all_link;
    struct port *port;

    spin_lock(&sched_lock);
    do {
        at = at->next;
        port = list_entry(at, struct port, port_all_link);
    } while (at != &port_all && !object_get_live(&port->port_object));
    if (at == &port_all)
        port = NULL;
    else
        *out = port_stat_of(port);
    spin_unlock(&sched_lock);
    if (last != NULL)
        object_put(&last->port_object);
    return port;
}

/* ---- checking ----------------------------------------------------------- */

#define WALK_MAX 65536u /* a longer list is broken */

/* Whether `link` is in the list. */
static bool is_listed(const struct list *head, const struct list *link)
{
    size_t n = 0;

    for (const struct list *l = head->next; l != head && n < WALK_MAX;
         l = l->next, n++)
        if (l == link)
            return true;
    return false;
}

/* Every member has the state for this list, and its port or server. */
static const char *check_members(const struct list *head, unsigned state,
                                 const struct port *port,
                                 const struct task *server)
{
    size_t n = 0;

    for (struct list *l = head->next; l != head; l = l->next) {
        const struct task_ipc *ipc = &ipc_task(l)->task_ipc;
        unsigned is =
            ipc->ipc_state == IPC_TRANSFER ? IPC_REPLY : ipc->ipc_state;

        if (l->next->prev != l || n++ == WALK_MAX)
            return "a list of waiting tasks is broken";
        if (is != state)
            return "a task is in a list, but not in the state for it";
        if (server != NULL ? ipc->ipc_server != server : ipc->ipc_port != port)
            return "a task is in the list of another port or server";
    }
    return NULL;
}

static const char *check_port(const struct port *port)
{
    const char *wrong =
        check_members(&port->port_callers, IPC_QUEUED, port, NULL);

    if (wrong == NULL)
        wrong = check_members(&port->port_receivers, IPC_RECEIVING, port, NULL);
    if (wrong != NULL)
        return wrong;
    if (port->port_object.object_type != &port_type ||
        port->port_object.object_refs < port->port_holders)
        return "a port has fewer references than receivers";
    if (port->port_holders == 0 &&
        (!list_empty(&port->port_callers) || port->port_bits != 0 ||
         port == name_server_port || ipc_irq_lines(port) != 0 ||
         port->port_alarm_bits != 0))
        return "a dead port is still in use";
    if (timeout_pending(&port->port_alarm) != (port->port_alarm_bits != 0))
        return "a port's alarm and its time-out do not match";
    return NULL;
}

/* The list that a task's state says it is in. */
static const struct list *list_of(const struct task_ipc *ipc)
{
    switch (ipc->ipc_state) {
    case IPC_QUEUED:
        return &ipc->ipc_port->port_callers;
    case IPC_RECEIVING:
        return &ipc->ipc_port->port_receivers;
    default:
        return &ipc->ipc_server->task_ipc.ipc_clients;
    }
}

static const char *ipc_check_task(const struct task *t)
{
    const struct task_ipc *ipc = &t->task_ipc;
    const char *wrong = check_members(&ipc->ipc_clients, IPC_REPLY, NULL, t);

    if (wrong != NULL)
        return wrong;
    if (ipc->ipc_last != NULL &&
        !is_listed(&ipc->ipc_clients, &ipc->ipc_last->task_ipc.ipc_link))
        return "the caller received last does not wait for a reply";
    if (ipc->ipc_state == IPC_NONE)
        return NULL;
    if (!is_listed(list_of(ipc), &ipc->ipc_link))
        return "a task is not in the list of its state";
    if (t->task_waiting != NULL || timeout_pending(&t->task_timeout))
        return "a task waits for a message and for something else";
    if (!ipc_waits(t) && (t->task_pending & PENDING_KILL) == 0)
        return "a task waits for a message, but is not blocked";
    if (ipc_waits(t) &&
        t->task_interruptible != (ipc->ipc_state != IPC_TRANSFER))
        return "a task that waits for a message cannot be killed, or is pinned "
               "and can";
    return NULL;
}

struct finding {
    const char *finding_wrong;
    char finding_where[32];
};

static bool ipc_check_next(struct task *t, void *arg)
{
    struct finding *f = arg;

    f->finding_wrong = ipc_check_task(t);
    if (f->finding_wrong == NULL)
        return true;
    snprintf(f->finding_where, sizeof(f->finding_where), "task %d %s",
             (int)t->task_pid, t->task_name);
    return false;
}

static void check_ports(struct finding *f)
{
    uint32_t before = 0;

    spin_lock(&sched_lock);
    list_for_each (l, &port_all) {
        const struct port *port = list_entry(l, struct port, port_all_link);

        f->finding_wrong = port->port_number <= before
                               ? "the ports are not in order of number"
                               : check_port(port);
        before = port->port_number;
        if (f->finding_wrong != NULL)
            break;
    }
    spin_unlock(&sched_lock);
    snprintf(f->finding_where, sizeof(f->finding_where), "port %u",
             (unsigned)before);
}

const char *ipc_verify(const char **where)
{
    static struct finding f;

    check_ports(&f);
    if (f.finding_wrong == NULL)
        task_each(ipc_check_next, &f);
    *where = f.finding_where;
    return f.finding_wrong;
}
