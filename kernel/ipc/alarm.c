/*
 * Alarms: notifications of a port at a given time.
 *
 * A port has at most one alarm, so an alarm needs no object of its own: the
 * port itself is in the list of alarms, which is in order of time.
 *
 *     alarms, by time: port 7 -> port 3 -> port 12
 *
 * A server waits only for messages to its port. An alarm wakes it if a device
 * does not respond in time.
 */
#include "drivers/pit.h"
#include "kernel/abi/errno.h"
#include "kernel/ipc/ipc_impl.h"

static struct list alarms = LIST_INIT(alarms); /* guarded by sched_lock */

static struct port *port_at(const struct list *link)
{
    return list_entry(link, struct port, port_alarm_link);
}

void ipc_alarm_off(struct port *port)
{
    spin_assert_held(&sched_lock);
    if (port->port_alarm_bits == 0)
        return;
    port->port_alarm_bits = 0;
    list_remove(&port->port_alarm_link);
}

static void set(struct port *port, uint64_t when, uint32_t bits)
{
    struct list *at = alarms.prev;

    while (at != &alarms && port_at(at)->port_alarm_ms > when)
        at = at->prev;
    port->port_alarm_ms = when;
    port->port_alarm_bits = bits;
    list_insert_after(at, &port->port_alarm_link);
}

int ipc_alarm(struct port *port, uint32_t ms, unsigned bit)
{
    if (bit >= 32)
        return -EINVAL;
    spin_lock(&sched_lock);
    ipc_alarm_off(port);
    if (ms != 0)
        set(port, timer_ms() + ms, 1u << bit);
    spin_unlock(&sched_lock);
    return 0;
}

void ipc_tick(void)
{
    uint64_t now = timer_ms();

    if (likely(list_empty(&alarms)))
        return;
    spin_lock(&sched_lock);
    while (!list_empty(&alarms)) {
        struct port *port = port_at(alarms.next);
        uint32_t bits = port->port_alarm_bits;

        if (port->port_alarm_ms > now)
            break;
        ipc_alarm_off(port);
        ipc_notify_locked(port, bits);
    }
    spin_unlock(&sched_lock);
}

/* ---- checking ----------------------------------------------------------- */

const char *ipc_alarm_verify(const struct port *port)
{
    bool found = false;
    size_t n = 0;

    spin_assert_held(&sched_lock);
    list_for_each (l, &alarms)
        if (n++ < UINT16_MAX)
            found |= port_at(l) == port;
    if (found != (port->port_alarm_bits != 0))
        return "a port's alarm and the list of alarms do not match";
    return found && port->port_holders == 0 ? "a dead port has an alarm" : NULL;
}

const char *ipc_alarms_verify(size_t ports)
{
    uint64_t before = 0;
    size_t n = 0;

    spin_assert_held(&sched_lock);
    list_for_each (l, &alarms) {
        if (n++ == ports)
            return "the list of alarms does not end";
        if (port_at(l)->port_alarm_ms < before)
            return "the alarms are not in order of time";
        before = port_at(l)->port_alarm_ms;
    }
    return NULL;
}
