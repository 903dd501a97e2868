/*
 * Tasks and the scheduler.
 *
 * A task has a kernel stack, a place in a queue and the resources it owns. A
 * kernel task differs only in that it has no address space. The highest
 * priority with a ready task runs; tasks of one priority take turns of
 * TASK_SLICE ticks. The kernel can be preempted wherever interrupts are
 * enabled, so data that several tasks change needs a lock.
 *
 *     task_create ──> READY <──────────── woken ─── BLOCKED
 *                       │  ^                           ^
 *              picked   │  │ slice over, yield         │ waits
 *                       v  │                           │
 *                     RUNNING ─────────────────────────┘
 *                       │ task_exit
 *                       v
 *                     ZOMBIE ── parent waits ──> freed
 */
#pragma once

#include "kernel/abi/types.h"
#include "kernel/lib/list.h"
#include "kernel/task/timeout.h"
#include "kernel/x86/spinlock.h"
#include "kernel/x86/trap.h"

struct grant;           /* kernel/object/grant.h */
struct handle_table;    /* kernel/object/handle.h */
struct inode;           /* kernel/fs */
struct manifest_server; /* kernel/lib/manifest.h */
struct mutex;           /* kernel/task/sync.h */
struct ipc_buffer;      /* kernel/abi/ipc.h */
struct port;            /* kernel/ipc */
struct session;         /* kernel/object/session.h */
struct space;           /* kernel/vm */

#define TASK_NAME_MAX 15
#define TASK_SLICE    5     /* ticks of 10 ms */
#define TASK_ANYWHERE 0xFFu /* of task_cpus */

/* A stack has an unmapped guard page below its pages. */
#ifndef KSTACK_PAGES
#define KSTACK_PAGES 2
#endif
#define KSTACK_BYTES ((1 + KSTACK_PAGES) * PAGE_SIZE)

enum task_priority {
    PRIORITY_IDLE,   /* only the idle task */
    PRIORITY_USER,   /* programs */
    PRIORITY_SERVER, /* programs that may bind interrupts */
    PRIORITY_KERNEL, /* the kernel shell, kernel tasks */
    PRIORITIES,
};

enum task_state {
    TASK_READY,   /* in a run queue */
    TASK_RUNNING, /* on the processor */
    TASK_BLOCKED, /* in a wait queue, sleeping, or in IPC */
    TASK_ZOMBIE,  /* ended; the parent has not waited yet */
};

/* Bits of task_pending, tested on every return to ring 3. */
#define PENDING_RESCHED 1u /* the slice is over, or a better task is ready */
#define PENDING_KILL    2u /* the task must end */

/* Tasks that wait for the same event; see kernel/task/sync.h. */
struct wait_queue {
    struct list wait_tasks;  /* by sched_lock; first come, first served */
    const char *wait_reason; /* for `ps`: "pipe-full" */
};

/*
 * States of a task; ipc_link is in the list named.
 *
 *               ┌────────────────── replied, killed, EPIPE ──────────────┐
 *               v                                                        │
 *     call ── NONE ──> QUEUED ──> REPLY <──> TRANSFER ───────────────────┤
 *               │        │          │                                    │
 *               │        └──────────┴────────────────────────────────────┤
 *     receive   └────> RECEIVING ── a message, bits, killed ─────────────┘
 */
enum ipc_state {
    IPC_NONE,      /* in no list */
    IPC_QUEUED,    /* called; in port_callers */
    IPC_REPLY,     /* called and received; in the server's ipc_clients */
    IPC_TRANSFER,  /* the same, pinned while the server copies */
    IPC_RECEIVING, /* in port_receivers */
};

/* A task's part in messages (kernel/ipc). Guarded by sched_lock. */
struct task_ipc {
    struct list ipc_link;    /* in the list for ipc_state */
    struct list ipc_clients; /* received here, wait for their reply */
    uint8_t ipc_state;       /* enum ipc_state */
    bool ipc_kernel;         /* called by the kernel (ipc_call_kernel) */
    uint32_t ipc_client;     /* its number as a client: kernel/abi/ipc.h */
    struct port *ipc_port;   /* called, or received on */
    struct task *ipc_server; /* the task that must reply */
    struct task *ipc_last;   /* the caller received last, until the reply */
    struct ipc_buffer *ipc_buffer; /* a copy on the kernel stack, or NULL */
};

struct task {
    uint32_t task_pending;  /* first: trap.asm tests it at offset 0 */
    uint32_t task_esp;      /* saved, while it does not run */
    uint32_t task_cr3;      /* page directory; the kernel's for kernel tasks */
    vaddr_t task_stack_top; /* of the kernel stack; the user's trap frame is
                               just below it */
    /* Guarded by sched_lock. */
    struct list task_link;           /* in a run queue or wait queue */
    struct timeout task_timeout;     /* of its wait */
    struct wait_queue *task_waiting; /* the queue that task_link is in */
    int32_t task_wake_result;
    uint8_t task_state;
    uint8_t task_priority;
    bool task_interruptible; /* a kill ends this wait */
    uint8_t task_slice;      /* ticks left */
    uint8_t task_cpus;       /* bits (cpu_bit) of the processors that may run
                                it */
    uint8_t task_cpu;        /* the number of the one that ran it last */
    uint8_t task_signal;     /* the signal that killed it */
    int32_t task_status;     /* of a zombie, as wait() returns it */
    pid_t task_pid;
    pid_t task_group;
    struct task *task_parent; /* NULL: none (the idle task) */
    struct list task_all_link;
    struct list task_children;
    struct list task_sibling;
    struct wait_queue task_exited; /* where it waits for its children */
    uint64_t task_ticks;           /* processor time, in ticks */
    uint64_t task_switches;
    void *task_kstack; /* from the kstack cache; NULL for the boot task */
    char task_name[TASK_NAME_MAX + 1];
    /* Its own; other tasks may not use them while it runs. */
    struct space *task_space;     /* NULL for kernel tasks */
    struct session *task_session; /* charged for it; NULL: outside */
    struct handle_table *task_handles;
    struct inode *task_cwd;
    bool task_program;        /* runs or ran a program; not a kernel task */
    bool task_privileged;     /* may take a grant or replace the name server */
    struct grant *task_grant; /* taken (kernel/object/grant.h), or NULL */
    const struct manifest_server *task_ports; /* of devices, that it may use
                                                 (kernel/task/io_map.h) */
    struct task_ipc task_ipc;
#ifdef CONFIG_DEBUG
    struct mutex *task_mutex; /* the innermost mutex that it holds */
#endif
};

extern struct spinlock sched_lock;

/* Releases sched_lock for a moment, so that no work in it takes long. */
static inline void sched_lock_break(void)
{
    spin_unlock(&sched_lock);
    spin_lock(&sched_lock);
}

/* The running task. */
static inline struct task *task_self(void)
{
    return cpu_running();
}

/* Whether the running task must end: long loops ask, and stop. */
static inline bool task_killed(void)
{
    return (task_self()->task_pending & PENDING_KILL) != 0;
}

/* The registers with which a program entered the kernel. */
static inline struct trapframe *task_frame(const struct task *t)
{
    return (struct trapframe *)t->task_stack_top - 1;
}

/* Bytes of the table of pids, and the memory for it. Boot only. */
size_t task_pids_bytes(size_t frames);
void task_set_pids(void *array, size_t frames);

/* Makes the caller, kmain, task 1 ("kernel") and creates the idle task. After
 * kmem_init, before interrupts are enabled. Boot only. */
void task_init(void);

/*
 * Creates a kernel task that runs fn(arg) and exits when fn returns. It is
 * READY at once and a child of the caller. NULL: no memory.
 */
struct task *task_create(const char *name, void (*fn)(void *), void *arg,
                         enum task_priority priority);

/* The caller will not wait for this child. */
void task_disown(struct task *t);

/*
 * The two halves of task_create, for fork and exec. task_prepare creates a task
 * that is in no queue and whose first switch enters `entry` with `arg`. The
 * caller fills in space, handles and directory. task_start then makes it
 * visible and READY, or task_discard frees it.
 */
struct task *task_prepare(const char *name, void (*entry)(void *), void *arg,
                          enum task_priority priority);
pid_t task_start(struct task *t);
void sched_begin(void); /* must be called first in `entry` */
void task_discard(struct task *t);

/* `fn` gets the session of each task that is freed, if it has one; it may not
 * sleep. Boot only. */
void task_set_discard_hook(void (*fn)(struct session *s));

/* For exec: names the task, in printable characters. */
void task_set_name(struct task *t, const char *name);

/* Ends the caller with a status as wait() returns it. All it owned but the
 * stack must have been released. */
void task_exit(int status) __attribute__((noreturn));

/*
 * Waits for a child to end: `pid`, or any child if that is -1. Stores its
 * status, frees its task and stack, and returns its pid. With WNOHANG returns 0
 * if none has ended. -ECHILD: no such child. -EINTR: the caller was killed.
 */
pid_t task_wait(pid_t pid, int *status, int flags);

/*
 * Kills the task `pid` with `signal`; a negative pid selects those of the group
 * -pid that `by` may signal: tasks of its session, its children, itself; any
 * program if `by` is privileged, or NULL, the kernel. Signal 0 only tests. 0,
 * -ESRCH (no such task), -EPERM (only kernel tasks, or not allowed), -EINVAL
 * (bad signal).
 */
int task_kill(const struct task *by, pid_t pid, int signal);

/* Makes the running program end with `signal` before it returns to ring 3. */
void task_end(int signal);

/* The task `pid`, or NULL. Valid only while sched_lock is held. */
struct task *task_find(pid_t pid);

/* The same, but NULL also if the task runs on another processor, or is pinned,
 * so that its server may be copying to it there. What a task at rest owns does
 * not change while the caller holds sched_lock. */
struct task *task_find_at_rest(pid_t pid);

/* Whether any task is in the group. Caller holds sched_lock. */
bool task_group_exists(pid_t group);

/* Moves a task that has started to a group. Caller holds sched_lock. */
void task_set_group(struct task *t, pid_t group);

/* Calls fn for every task in order of pid until it returns false. sched_lock is
 * held: fn may not sleep, print or allocate. */
void task_each(bool (*fn)(struct task *t, void *arg), void *arg);

/* A snapshot of one task, for `ps`. */
struct task_stat {
    pid_t stat_pid, stat_parent, stat_group;
    uint8_t stat_state, stat_priority;
    bool stat_user;    /* has an address space */
    bool stat_program; /* also when it has ended */
    uint64_t stat_ticks, stat_switches;
    unsigned stat_cpu; /* the number of the processor that ran it last */
    const char *stat_waits_for; /* the wait queue's reason, or NULL */
    char stat_name[TASK_NAME_MAX + 1];
};

/* Snapshots of tasks with the lowest pids above `after`, at most n. Returns how
 * many were stored. */
size_t task_stats(pid_t after, struct task_stat *out, size_t n);

/* NULL, or the first broken invariant; *where says where. */
const char *task_verify(const char **where);

/* ---- the scheduler ------------------------------------------------------ */

/* Lets other ready tasks of this priority run first. */
void sched_yield(void);

/* Lets a task run on these processors alone, a bit (cpu_bit) for each: from its
 * next switch on, which comes soon if it runs on another. The caller holds
 * sched_lock. */
void sched_move(struct task *t, uint8_t cpus);

/* The same for the running task, which returns on one of them. */
void sched_move_self(uint8_t cpus);

/* Lets all tasks run on the first processor alone, or no longer so. Returns
 * when the others run only their idle tasks. */
void sched_confine(bool to_first);

/* Sleeps for at least `ms` milliseconds: 0, or -EINTR if killed. */
int sched_sleep_ms(uint32_t ms);

/* Called by the timer interrupt. */
void sched_tick(void);

/* Called on return from an interrupt, interrupts disabled: switches if the
 * slice is over. */
void sched_preempt(void);

/*
 * For wait queues and IPC. The caller holds sched_lock; it is held again on
 * return. The caller has recorded why the task waits.
 */

/* Blocks the caller, which is in no queue, until sched_wake(), and returns the
 * result given there. If `interruptible`, a kill, also an earlier one, ends the
 * wait with -EINTR. A `timeout_ms` other than 0 ends it with -ETIMEDOUT. */
int sched_block(bool interruptible, uint32_t timeout_ms);

/* The same, but switches straight to `next`, which is BLOCKED and in no queue,
 * unless a better task is ready. A killed caller only wakes `next`. */
int sched_block_handoff(bool interruptible, struct task *next, int result);

/* Removes a BLOCKED task from its wait queue and timer and makes it READY. If
 * it has a higher priority than the running task, a switch follows soon. */
void sched_wake(struct task *t, int result);
