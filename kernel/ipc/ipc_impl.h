/*
 * What the files of kernel/ipc share with one another alone.
 */
#pragma once

#include "kernel/ipc/port.h"
#include "kernel/x86/trap.h"

/* What makes a message more than its registers. */
#define IPC_EXTRA (IPC_DATA | IPC_HANDLE)

/* By sched_lock. */
extern struct list port_all;          /* every port, by number */
extern struct port *name_server_port; /* NULL: none, or it has died */

/* The registers with which a task that waits entered the kernel. */
static inline struct trapframe *ipc_frame(const struct task *t)
{
    return (struct trapframe *)t->task_stack_top - 1;
}

static inline struct task *ipc_task(const struct list *link)
{
    return list_entry(link, struct task, task_ipc.ipc_link);
}

/* Whether a task in a list still waits there: not if it has been killed. */
static inline bool ipc_waits(const struct task *t)
{
    return t->task_state == TASK_BLOCKED;
}

/* The port's alarm, if there is one, is off. sched_lock held. */
void ipc_alarm_off(struct port *port);

/* What is wrong with a port's alarm, or with the list of them, or NULL.
 * sched_lock held. */
const char *ipc_alarm_verify(const struct port *port);
const char *ipc_alarms_verify(size_t ports);

/* Whom task `t` waits for. NULL: nobody in particular. sched_lock held. */
struct task *ipc_waits_for(const struct task *t);

/* Whether the wait that the caller has noted in its task_ipc, in a port's
 * queue, could never end. sched_lock held. */
bool ipc_deadlock(const struct task *self);

/* Ends the wait of every caller in the queue with -EPIPE. sched_lock held. */
void ipc_refuse_callers(struct port *port);

/* The same with -EDEADLK of those that could wait for ever, now that a receiver
 * has gone: nobody receives there but who waits himself. sched_lock held. */
void ipc_refuse_circles(struct port *port);

/*
 * Copies bytes and handle of the message `tag` as the two tasks' buffers say.
 * 0, -EMSGSIZE, -EBADF, -EMFILE, -ENOMEM, -EFAULT; then nothing has been
 * delivered. No lock held: whichever of the two does not run is pinned. May
 * sleep.
 */
int ipc_transfer(struct task *to, struct task *from, uint32_t tag);

/* Whether the bytes that `t` sends can be read: after -EFAULT, to tell whose
 * fault it was. May sleep. */
bool ipc_readable(struct task *t);
