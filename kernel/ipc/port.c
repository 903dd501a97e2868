/*
 * Ports as objects: creation, references, death; and the name server's port,
 * which every task can find.
 *
 * A port lives while some handle may receive on it. Handles that may only call
 * keep the object, but not the port alive: after the last handle that may
 * receive is closed, the port is dead for good and callers get an error. Tasks
 * in a port's queues need no reference: each has the handle that it used, and
 * cannot close it while it waits.
 */
#include "kernel/abi/errno.h"
#include "kernel/ipc/ipc_impl.h"
#include "kernel/task/cache.h"
#include "kernel/object/handle.h"
#include "kernel/object/session.h"
#include "mm/kmem.h"

struct list port_all = LIST_INIT(port_all);
struct port *name_server_port;

static struct kmem_cache *port_cache;
static uint32_t last_number; /* guarded by sched_lock */

static void port_ctor(void *obj, size_t size UNUSED)
{
    struct port *port = obj;

    list_init(&port->port_callers);
    list_init(&port->port_receivers);
    port->port_bits = 0;
    port->port_holders = 0;
    port->port_alarm_bits = 0;
    port->port_alarm.timeout_ms = 0;
}

void port_init(void)
{
    port_cache = cache_create("port", sizeof(struct port), 0, port_ctor, NULL);
}

struct port *port_create(void)
{
    struct port *port = kmem_cache_alloc(port_cache, KM_NOSLEEP);

    if (port == NULL)
        return NULL;
    object_init(&port->port_object, &port_type);
    port->port_server = task_self()->task_pid;
    port->port_calls = 0;
    port->port_session = NULL;
    spin_lock(&sched_lock);
    port->port_number = ++last_number;
    list_insert_before(&port_all, &port->port_all_link);
    spin_unlock(&sched_lock);
    return port;
}

/* ---- handles created and closed ----------------------------------------- */

static void port_release(struct object *o)
{
    struct port *port = container_of(o, struct port, port_object);

    spin_lock(&sched_lock);
    list_remove(&port->port_all_link);
    spin_unlock(&sched_lock);
    session_refund(port->port_session, SESSION_PORTS, 1);
    kmem_cache_free(port_cache, port);
}

static void count_handle(struct object *o, uint32_t flags)
{
    struct port *port = container_of(o, struct port, port_object);

    if ((flags & HANDLE_RECEIVE) == 0)
        return;
    spin_lock(&sched_lock);
    port->port_holders++;
    spin_unlock(&sched_lock);
}

/* The last handle that may receive was closed. */
static void mark_dead(struct port *port)
{
    spin_assert_held(&sched_lock);
    port->port_bits = 0;
    if (name_server_port == port)
        name_server_port = NULL;
    ipc_irq_release(port);
    ipc_alarm_off(port);
}

/* Whether the running task still has a handle that may receive. Does not take
 * sched_lock, because there may be many handles. */
static bool self_receives(const struct object *o)
{
    const struct handle_table *t = task_self()->task_handles;

    for (uint32_t i = 0; t != NULL && i < t->table_size; i++)
        if (t->table_slot[i].handle_object == o &&
            (t->table_slot[i].handle_flags & HANDLE_RECEIVE) != 0)
            return true;
    return false;
}

static void uncount_handle(struct object *o, uint32_t flags)
{
    struct port *port = container_of(o, struct port, port_object);
    bool last, dead;

    if ((flags & HANDLE_RECEIVE) == 0)
        return;
    last = !self_receives(o);
    spin_lock(&sched_lock);
    if (last && port->port_server == task_self()->task_pid)
        port->port_server = 0;
    dead = --port->port_holders == 0;
    if (dead)
        mark_dead(port);
    spin_unlock(&sched_lock);
    if (dead)
        ipc_refuse_callers(port);
    else
        ipc_refuse_deadlock(port);
}

const struct object_type port_type = {
    .type_name = "port",
    .type_release = port_release,
    .type_open = count_handle,
    .type_close = uncount_handle,
};

/* ---- the name server's port --------------------------------------------- */

/* Takes no reference: name_server_port becomes NULL when the port dies, which
 * is before its object is freed. */
int name_server_set(struct port *port)
{
    int result = 0;

    spin_lock(&sched_lock);
    if (port->port_holders == 0)
        result = -EPIPE;
    else
        name_server_port = port;
    spin_unlock(&sched_lock);
    return result;
}

struct port *name_server_get(void)
{
    struct port *port;

    spin_lock(&sched_lock);
    port = name_server_port;
    if (port != NULL)
        object_get(&port->port_object);
    spin_unlock(&sched_lock);
    return port;
}
