/*
 * Ports: where programs meet to exchange messages (kernel/abi/ipc.h).
 *
 *     callers ──> port_callers ──> │ port │ <── port_receivers <── servers
 *                  first come,                   only while they wait
 *                  first served
 *
 * Everything here is guarded by sched_lock: which task waits for what is the
 * scheduler's business. Only bytes and handles are copied without it, by the
 * server, while its client is pinned (see message.c).
 */
#pragma once

#include "kernel/abi/ipc.h"
#include "kernel/task/object.h"
#include "kernel/task/task.h"

/*
 * Where a task stands; ipc_link is in the list named.
 *
 *               ┌───────────────── answered, killed, EPIPE ──────────────┐
 *               v                                                        │
 *     call ── NONE ──> QUEUED ──> ANSWER <──> TRANSFER ──────────────────┤
 *               │        │          │                                    │
 *               │        └──────────┴────────────────────────────────────┤
 *     receive   └────> RECEIVING ── a message, bits, killed ─────────────┘
 */
enum ipc_state {
    IPC_NONE,      /* in no list */
    IPC_QUEUED,    /* called; in port_callers */
    IPC_ANSWER,    /* called and received; in the server's ipc_clients */
    IPC_TRANSFER,  /* the same, pinned while the server copies */
    IPC_RECEIVING, /* in port_receivers */
};

/* A task that was killed is READY, but leaves its list only when it runs; so
 * members of these lists count only while they are BLOCKED. */
struct port {
    struct object port_object;  /* first */
    struct list port_callers;   /* by ipc_link */
    struct list port_receivers; /* by ipc_link */
    uint32_t port_bits;         /* notified and not received yet */
    uint32_t port_holders;      /* handles that may receive; 0: dead */
    pid_t port_server;          /* received here last, or made the port; 0:
                                   does so no more */
    uint32_t port_calls;        /* picked up so far */
    uint32_t port_number;       /* for people to tell them apart */
    uint32_t port_alarm_bits;   /* notified at port_alarm_ms; 0: no alarm */
    uint64_t port_alarm_ms;
    struct list port_alarm_link; /* in all alarms, by time */
    struct list port_all_link;   /* in all ports, by number */
};

extern const struct object_type port_type;

/* The cache of ports. After task_init. Boot only. */
void port_init(void);

/* A port without handles; the caller owns the one reference. NULL: no memory.
 * It lives as a port from its first handle with HANDLE_RECEIVE on. */
struct port *port_create(void);

/* ---- messages ----------------------------------------------------------- */

/*
 * What the system calls of the same names do, for the task that runs; the
 * registers are those of its trap frame. `buffer` is a copy of the program's
 * one in the kernel, or NULL; what it says has been checked, and what came is
 * noted in it. All wait, and return 0 or an error of kernel/abi/ipc.h.
 */
int ipc_call(struct port *port, struct ipc_buffer *buffer);
int ipc_receive(struct port *port, struct ipc_buffer *buffer);
int ipc_reply_receive(struct port *port, struct ipc_buffer *buffer);

/*
 * A call that the kernel makes on behalf of the task that runs, which may also
 * be one of its own: `words` are tag and three words, overwritten by the
 * answer's. What the buffer says may lie in the kernel's memory; a handle
 * cannot come back. IPC_PATIENT: a kill does not end the wait. A `timeout_ms`
 * other than 0 does: -ETIMEDOUT. *received says whether the message had been
 * received when the call failed. The caller has a reference to the port.
 * Otherwise as ipc_call.
 */
#define IPC_PATIENT 1u
int ipc_call_kernel(struct port *port, uint32_t words[4],
                    struct ipc_buffer *buffer, unsigned flags,
                    uint32_t timeout_ms, bool *received);

/* Answers the client of that number (0: the one received last) with the
 * message, or, if `error` is not 0, with that. Returns what the client was
 * told, or -ESRCH. */
int ipc_reply(uint32_t client, struct ipc_buffer *buffer, int error);

/* Adds bits to those that wait to be received. 0 or -EPIPE. In interrupts
 * too. With sched_lock held: ipc_notify_locked. */
int ipc_notify(struct port *port, uint32_t bits);
int ipc_notify_locked(struct port *port, uint32_t bits);

/* For a task that ends, before its handles are closed: whoever waits for an
 * answer from it gets -EPIPE. */
void ipc_task_exit(struct task *t);

/* ---- alarms (alarm.c) --------------------------------------------------- */

/* After that many milliseconds the port is notified of bit number `bit`; 0 ends
 * an alarm that there was. A port has one. 0 or -EINVAL. */
int ipc_alarm(struct port *port, uint32_t ms, unsigned bit);

/* From the timer's interrupt. */
void ipc_tick(void);

/* ---- interrupts and names ----------------------------------------------- */

/* From now on an interrupt on line `irq` masks that line and notifies the port
 * of bit number `bit`. 0, -EINVAL, -EBUSY, -EPIPE. It ends with the port. */
int ipc_irq_bind(struct port *port, unsigned irq, unsigned bit);

/* Unmasks a line that the caller has bound: 0 or -EINVAL. */
int ipc_irq_ack(unsigned irq);

/* Lets go of the lines of a port that has died. sched_lock held. */
void ipc_irq_release(const struct port *port);

/* Lets go of the lines that a task has bound: it may not have them any more. */
void ipc_irq_drop(const struct task *t);

/* The lines bound to a port, as bits. sched_lock held. */
uint32_t ipc_irq_lines(const struct port *port);

/* Who has bound a line, and to which port; stat_port 0: nobody. */
struct ipc_irq_stat {
    uint32_t stat_port;
    pid_t stat_task;
    char stat_name[TASK_NAME_MAX + 1];
};
void ipc_irq_stat(unsigned irq, struct ipc_irq_stat *out);

/* Makes `port` the name server's. -EPERM if there is another one that lives,
 * and not `force`; -EPIPE if `port` is dead. */
int name_server_set(struct port *port, bool force);

/* The name server's port, with a reference for the caller, or NULL. */
struct port *name_server_get(void);

/* ---- looking ------------------------------------------------------------ */

struct port_stat {
    uint32_t stat_number;
    uint32_t stat_refs;    /* handles to it, of both kinds */
    uint32_t stat_holders; /* of them, how many may receive; 0: dead */
    uint32_t stat_calls;
    uint32_t stat_bits;
    uint32_t stat_irqs; /* interrupt lines bound to it, as bits */
    pid_t stat_server;
    uint16_t stat_queued;  /* callers that nobody has received yet */
    uint16_t stat_waiting; /* receivers that wait */
    bool stat_name_server; /* the name server's */
};

/* Snapshots of the ports with the lowest numbers above `after`; at most n. */
size_t port_stats(uint32_t after, struct port_stat *out, size_t n);

/* One arrow of the graph of who waits for whom: task -> port -> server. */
struct ipc_edge {
    pid_t edge_task;
    pid_t edge_server; /* 0: nobody in particular */
    uint32_t edge_port;
    uint8_t edge_state; /* enum ipc_state */
    char edge_name[TASK_NAME_MAX + 1];
    char edge_server_name[TASK_NAME_MAX + 1];
};

/* All callers that wait, by pid; at most n. Returns how many were stored. */
size_t ipc_edges(struct ipc_edge *out, size_t n);

/* NULL, or the first broken invariant; *where gets a text that says where. */
const char *ipc_verify(const char **where);
