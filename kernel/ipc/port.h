/*
 * Ports: where programs exchange messages (kernel/abi/ipc.h).
 *
 *     callers ──> port_callers ──> │ port │ <── port_receivers <── servers
 *                  first come,                   only while they wait
 *                  first served
 *
 * sched_lock guards all of this, because the scheduler decides which task waits
 * for what. Only bytes and handles are copied without it, by the server, while
 * its client is pinned (see message.c).
 */
#pragma once

#include "kernel/abi/ipc.h"
#include "kernel/object/object.h"
#include "kernel/task/task.h"

/* A killed task is READY, but leaves its list only when it runs. So members of
 * these lists count only while they are BLOCKED. */
struct port {
    struct object port_object;    /* first */
    struct list port_callers;     /* by ipc_link */
    struct list port_receivers;   /* by ipc_link */
    uint32_t port_bits;           /* notified and not received yet */
    uint32_t port_holders;        /* handles that may receive; 0: dead */
    pid_t port_server;            /* received last, or created the port; 0: it
                                   no longer receives */
    struct session *port_session; /* charged for it, or NULL */
    uint32_t port_calls;          /* calls received so far */
    uint32_t port_number;         /* for people, to tell ports apart */
    uint32_t port_alarm_bits;     /* notified at port_alarm; 0: no alarm */
    uint32_t port_holders_found;  /* for detection of deadlocks */
    struct timeout port_alarm;
    struct list port_all_link; /* in the list of ports, by number */
};

extern const struct object_type port_type;

/* Creates the cache. After task_init. Boot only. */
void port_init(void);

/* A port without handles; the caller owns the only reference. NULL: no memory.
 * The port lives from its first handle with HANDLE_RECEIVE on. */
struct port *port_create(void);

/* ---- messages ----------------------------------------------------------- */

/*
 * The system calls of the same names, for the running task; the registers are
 * those of its trap frame. `buffer` is the kernel's copy of the program's
 * buffer, or NULL. Its contents have been checked; what was received is
 * recorded in it. All wait, and return 0 or an error of kernel/abi/ipc.h.
 */
int ipc_call(struct port *port, struct ipc_buffer *buffer);
int ipc_receive(struct port *port, struct ipc_buffer *buffer);
int ipc_reply_receive(struct port *port, struct ipc_buffer *buffer);

/*
 * A call by the kernel on behalf of the running task. `words` are the tag and
 * three words; the reply's replace them. The buffer may be in the kernel's
 * memory; the reply cannot bring a handle. *received says whether the message
 * had been received when the call failed. The caller has a reference to the
 * port. -EIO: the bytes of the reply cannot be read. Otherwise as ipc_call.
 */
int ipc_call_kernel(struct port *port, uint32_t words[4],
                    struct ipc_buffer *buffer, bool *received);

/* Replies to the client of that number (0: the client received last) with the
 * message or, if `error` is not 0, with that error. Returns what the client
 * got, or -ESRCH. */
int ipc_reply(uint32_t client, struct ipc_buffer *buffer, int error);

/* Adds bits to the port's pending notification: 0 or -EPIPE. May be used in
 * interrupts. The caller of ipc_notify_locked holds sched_lock. */
int ipc_notify(struct port *port, uint32_t bits);
int ipc_notify_locked(struct port *port, uint32_t bits);

/* Called when a task exits, after its handles are closed: callers that wait for
 * a reply from it get -EPIPE. */
void ipc_task_exit(struct task *t);

/* ---- alarms (alarm.c) --------------------------------------------------- */

/* Notifies the port of bit number `bit` after `ms` milliseconds; 0 cancels the
 * port's alarm. 0 or -EINVAL. */
int ipc_alarm(struct port *port, uint32_t ms, unsigned bit);

/* ---- interrupts and the name server ------------------------------------- */

/* Binds line `irq`: an interrupt masks the line and notifies the port of bit
 * number `bit`. 0, -EINVAL, -EBUSY, -EPIPE. The binding ends with the port. */
int ipc_irq_bind(struct port *port, unsigned irq, unsigned bit);

/* Unmasks a line that the caller has bound: 0 or -EINVAL. */
int ipc_irq_ack(unsigned irq);

/* Unbinds the lines of a port that has died. Caller holds sched_lock. */
void ipc_irq_release(const struct port *port);

/* Unbinds the lines that a task has bound and may no longer use. */
void ipc_irq_drop(const struct task *t);

/* The lines bound to a port, as bits. Caller holds sched_lock. */
uint32_t ipc_irq_lines(const struct port *port);

/* The binding of a line; stat_port 0: not bound. */
struct ipc_irq_stat {
    uint32_t stat_port;
    pid_t stat_task;
    char stat_name[TASK_NAME_MAX + 1];
};
void ipc_irq_stat(unsigned irq, struct ipc_irq_stat *out);

/* Makes `port` the name server's; the caller has checked the right. 0, or
 * -EPIPE: `port` is dead. */
int name_server_set(struct port *port);

/* The name server's port, with a reference for the caller, or NULL. */
struct port *name_server_get(void);

/* ---- snapshots ---------------------------------------------------------- */

#define PORT_COUNT_MAX 32

struct port_stat {
    uint32_t stat_number;
    uint32_t stat_refs;    /* handles to it, of both kinds */
    uint32_t stat_holders; /* of these, handles that may receive; 0: dead */
    uint32_t stat_calls;
    uint32_t stat_bits;
    uint32_t stat_irqs; /* interrupt lines bound to it, as bits */
    pid_t stat_server;
    uint16_t stat_queued;  /* callers not received yet; more than
                              PORT_COUNT_MAX are not counted */
    uint16_t stat_waiting; /* receivers that wait, likewise */
    bool stat_name_server; /* is the name server's */
};

/* A snapshot of the port after `last` (NULL: of the first), in order of number.
 * Drops the reference to `last`; returns the port with a reference, or NULL: no
 * more. */
struct port *port_walk(struct port *last, struct port_stat *out);

/* One arrow of the wait-for graph: task -> port -> server. */
struct ipc_edge {
    pid_t edge_task;
    pid_t edge_server; /* 0: not known */
    uint32_t edge_port;
    bool edge_queued; /* no task has received the call yet */
    char edge_name[TASK_NAME_MAX + 1];
    char edge_server_name[TASK_NAME_MAX + 1];
};

/* All waiting callers, by pid, at most n. Returns how many were stored. */
size_t ipc_edges(struct ipc_edge *out, size_t n);

/* NULL, or the first broken invariant; *where says where. */
const char *ipc_verify(const char **where);
