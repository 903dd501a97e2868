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
 * handles. Meanwhile other tasks run, here or on other processors, and any task
 * but the caller may change, or be gone. The members of a real cycle stay
 * blocked, so what matters is whether they did: the search follows the cycle
 * again and again, and at last compares how often each member was switched to
 * (`members` of follow) with the first time. If another search began, which
 * counts in the same ports, it begins again.
 */
#include "kernel/abi/errno.h"
#include "kernel/ipc/ipc_impl.h"
#include "kernel/lib/string.h"
#include "kernel/object/handle.h"

#define CHAIN_MAX 128 /* arrows followed */
#define STEP      4   /* arrows in one hold of sched_lock */
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

/* ---- what may change ---------------------------------------------------- */

/* A task as it was, in a hold of sched_lock. */
struct sight {
    const struct task *sight_task;
    pid_t sight_pid;
    uint8_t sight_state; /* of its IPC */
    uint64_t sight_switches;
};

static struct sight look_at(const struct task *t)
{
    return (struct sight){t, t->task_pid, t->task_ipc.ipc_state,
                          t->task_switches};
}

/* Whether it still exists, waits in the same list and has not run; or is the
 * caller. */
static bool is_as_before(const struct sight *s)
{
    spin_assert_held(&sched_lock);
    return s->sight_task == task_self() ||
           (task_find(s->sight_pid) == s->sight_task &&
            s->sight_task->task_ipc.ipc_state == s->sight_state &&
            s->sight_task->task_switches == s->sight_switches);
}

/* Releases sched_lock for a moment. False: the task is no longer as before. */
static bool lock_break(const struct task *t)
{
    struct sight sight = look_at(t);

    sched_lock_break();
    return is_as_before(&sight);
}

/* ---- cycles ------------------------------------------------------------- */

/* Counts the handles with which a task may receive at any port. */
static bool count_handles(const struct task *t)
{
    const struct handle_table *table = t->task_handles;

    for (uint32_t i = 0; table != NULL && i < table->table_size; i++) {
        const struct handle *h = &table->table_slot[i];

        if (h->handle_object != NULL && (h->handle_flags & HANDLE_RECEIVE))
            container_of(h->handle_object, struct port, port_object)
                ->port_holders_found++;
        if (i % HANDLES == HANDLES - 1 && !lock_break(t))
            return false;
    }
    return lock_break(t);
}

enum pass {
    PASS_LOOK,
    PASS_RESET,
    PASS_COUNT,
    PASS_COMPARE
};

/* Adds a member to a number that is another if one of them is another, or has
 * run. The caller has not. */
static uint32_t add_member(uint32_t members, const struct task *t)
{
    members = members * 31 + (uint32_t)t->task_pid;
    return t == task_self() ? members
                            : members * 31 + (uint32_t)t->task_switches;
}

/* Follows the cycle through a task that waits at its port, or is about to. If
 * the next task is unknown, visits only the first. False: there is no cycle, or
 * another task may receive at a port where a member queues. */
static bool follow(const struct sight *sight, enum pass pass, uint32_t *members)
{
    const struct task *first = sight->sight_task;
    const struct task *t = first;

    *members = 0;
    if (!is_as_before(sight))
        return false;
    for (unsigned n = 0; n < CHAIN_MAX; n++) {
        bool queued = t == first || t->task_ipc.ipc_state == IPC_QUEUED;
        struct port *port = t->task_ipc.ipc_port;

        if (t != task_self() &&
            (!ipc_waits(t) || t->task_ipc.ipc_state == IPC_TRANSFER))
            return false; /* its handles may change */
        *members = add_member(*members, t);
        if (queued && pass == PASS_RESET)
            port->port_holders_found = 0;
        if ((pass == PASS_COUNT && !count_handles(t)) ||
            (queued && pass == PASS_COMPARE &&
             port->port_holders_found != port->port_holders) ||
            (n % STEP == STEP - 1 && !lock_break(t)))
            return false;
        t = t == first ? server_of(port) : waits_for(t);
        if (t == NULL || t == first)
            return t == first || n == 0;
    }
    return false;
}

bool ipc_deadlock(struct task *t)
{
    static uint32_t searches;
    struct sight sight = look_at(t);
    int tries = 0;

    spin_assert_held(&sched_lock);
    do {
        uint32_t before, after;
        uint32_t search;

        if (!follow(&sight, PASS_LOOK, &before))
            return false;
        search = ++searches;
        if (follow(&sight, PASS_RESET, &before) &&
            follow(&sight, PASS_COUNT, &after) &&
            follow(&sight, PASS_COMPARE, &after) && searches == search)
            return before == after;
        if (searches == search)
            return false;
    } while (is_as_before(&sight) && ++tries < TRIES);
    return false;
}

/* ---- a receiver has left ------------------------------------------------ */

/* Ends the wait of a caller that is in a deadlock. False: it waits as before,
 * and is in none. */
static bool refuse_call(struct task *t)
{
    struct sight sight = look_at(t);
    bool deadlock = ipc_deadlock(t);

    if (!is_as_before(&sight) || !ipc_waits(t))
        return true;
    if (deadlock)
        ipc_refuse(t, -EDEADLK);
    return deadlock;
}

/* If the next receiver is known, only one caller can be in a cycle with it: the
 * one to which the chain from the receiver leads. Otherwise any caller may be
 * the only receiver that is left. False: the queue or the chain changed. */
static bool search_callers(const struct port *port)
{
    struct task *t = server_of(port);

    if (t == NULL)
        list_for_each (l, &port->port_callers)
            if (refuse_call(ipc_task(l)) || !lock_break(ipc_task(l)))
                return false;
    for (unsigned n = 1; t != NULL && n <= CHAIN_MAX; n++) {
        if (n % STEP == 0 && !lock_break(t))
            return false;
        if (t->task_ipc.ipc_state == IPC_QUEUED &&
            t->task_ipc.ipc_port == port) {
            refuse_call(t);
            return true;
        }
        t = waits_for(t);
    }
    return true;
}

void ipc_refuse_deadlock(struct port *port)
{
    int tries = 0;

    spin_lock(&sched_lock);
    while (!search_callers(port) && ++tries < TRIES)
        continue;
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
        .edge_queued = t->task_ipc.ipc_state == IPC_QUEUED,
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
