/*
 * Private to kernel/ipc.
 */
#pragma once

#include "kernel/ipc/port.h"

/* A message with these flags has more than registers. */
#define IPC_EXTRA (IPC_DATA | IPC_HANDLE)

/* Guarded by sched_lock. */
extern struct list port_all;          /* every port, by number */
extern struct port *name_server_port; /* NULL: none, or it is dead */

static inline struct task *ipc_task(const struct list *link)
{
    return list_entry(link, struct task, task_ipc.ipc_link);
}

/* Whether a task in a list still waits there: not if it was killed. */
static inline bool ipc_waits(const struct task *t)
{
    return t->task_state == TASK_BLOCKED;
}

/* Cancels the port's alarm, if it has one. Caller holds sched_lock. */
void ipc_alarm_off(struct port *port);

/* Whether a wait of `t` in the queue of its ipc_port could never end. `t` is
 * the running task, which is about to queue, or is in the queue. The caller
 * holds sched_lock, which is released meanwhile. */
bool ipc_deadlock(struct task *t);

/* A handle that may receive was closed: ends with -EDEADLK the wait of a caller
 * that is now in a deadlock. */
void ipc_refuse_deadlock(struct port *port);

/* Ends the wait of every queued caller of a dead port with -EPIPE. */
void ipc_refuse_callers(struct port *port);

/* Ends the wait of a queued caller. Caller holds sched_lock. */
void ipc_refuse(struct task *t, int error);

/*
 * Copies the bytes and the handle of the message `tag` as the two tasks'
 * buffers say. 0, -EMSGSIZE, -EBADF, -EMFILE, -ENOMEM, -EFAULT; on error
 * nothing is delivered. No lock held: the task that does not run is pinned. May
 * sleep.
 */
int ipc_transfer(struct task *to, struct task *from, uint32_t tag);

/* After -EFAULT: whether the bytes that `t` sends can be read. If so, the other
 * task's memory was at fault. May sleep. */
bool ipc_readable(struct task *t);
