/*
 * Alarms: notifications of a port at a given time.
 *
 * A port has at most one alarm: a time-out (kernel/task/timeout.h) that is a
 * member of the port. A server waits only for messages to its port. An alarm
 * wakes it if a device does not respond in time.
 */
#include "drivers/pit.h"
#include "kernel/abi/errno.h"
#include "kernel/ipc/ipc_impl.h"

static void ring(struct timeout *timeout)
{
    struct port *port = list_entry(timeout, struct port, port_alarm);
    uint32_t bits = port->port_alarm_bits;

    port->port_alarm_bits = 0;
    ipc_notify_locked(port, bits);
}

void ipc_alarm_off(struct port *port)
{
    spin_assert_held(&sched_lock);
    port->port_alarm_bits = 0;
    timeout_clear(&port->port_alarm);
}

int ipc_alarm(struct port *port, uint32_t ms, unsigned bit)
{
    if (bit >= 32)
        return -EINVAL;
    spin_lock(&sched_lock);
    ipc_alarm_off(port);
    if (ms != 0) {
        port->port_alarm_bits = 1u << bit;
        timeout_set(&port->port_alarm, timer_ms() + ms, ring);
    }
    spin_unlock(&sched_lock);
    return 0;
}
