/*
 * Tasks and the scheduler.
 *
 * A task is a kernel stack, a place in a queue, and what it owns; kernel tasks
 * have no address space of their own, and that is all the difference. The
 * highest priority that is ready runs; tasks of one priority take turns of
 * TASK_SLICE ticks. The kernel may be preempted wherever interrupts are
 * enabled, so whatever several tasks change needs a lock.
 *
 *     task_create ──> READY <──────────── woken ─── BLOCKED
 *                       │  ^                           ^
 *              picked   │  │ slice over, yield         │ waits
 *                       v  │                           │
 *                     RUNNING ─────────────────────────┘
 *                       │ task_exit
 *                       v
 *                     ZOMBIE ── parent waits ──> gone
 */
#pragma once

#include "kernel/abi/types.h"
#include "kernel/lib/list.h"
#include "kernel/x86/spinlock.h"

struct grant;        /* kernel/task/grant.h */
struct handle_table; /* kernel/task/handle.h */
struct inode;        /* kernel/fs */
struct mutex;        /* kernel/task/sync.h */
struct ipc_buffer;   /* kernel/abi/ipc.h */
struct port;         /* kernel/ipc */
struct space;        /* kernel/vm */

#define TASK_NAME_MAX 15
#define TASK_SLICE    5 /* ticks of 10 ms */

/* Stacks: two pages, and below them one that is missing. Under the sanitizers
 * frames are larger. */
#ifdef CONFIG_SANITIZE
#define KSTACK_BYTES (5 * PAGE_SIZE)
#else
#define KSTACK_BYTES (3 * PAGE_SIZE)
#endif

enum task_priority {
    PRIORITY_IDLE,   /* the idle task alone */
    PRIORITY_USER,   /* programs */
    PRIORITY_SERVER, /* those that may bind interrupts */
    PRIORITY_KERNEL, /* the kernel shell, kernel tasks */
    PRIORITIES,
};

enum task_state {
    TASK_READY,   /* in a run queue */
    TASK_RUNNING, /* on the processor */
    TASK_BLOCKED, /* in a wait queue, asleep, or in IPC */
    TASK_ZOMBIE,  /* ended; the parent has not asked yet */
};

/* Bits of task_pending: looked at on every way back to ring 3. */
#define PENDING_RESCHED 1u /* the slice is over, or a better one is ready */
#define PENDING_KILL    2u /* ends instead of going back */

/* Tasks that wait for the same thing. What can be done with it is in
 * kernel/task/sync.h. */
struct wait_queue {
    struct list wait_tasks;  /* by sched_lock; first come, first served */
    const char *wait_reason; /* "pipe full": what `ps` shows */
};

/* What an IPC partner needs to know; kernel/ipc gives it meaning. */
struct task_ipc {
    struct list ipc_link;    /* in the list that ipc_state tells */
    struct list ipc_clients; /* received from here and not answered yet */
    uint8_t ipc_state;       /* enum ipc_state, kernel/ipc/port.h */
    struct port *ipc_port;   /* called, or receiving on */
    struct task *ipc_server; /* who received the call and owes an answer */
    struct task *ipc_last;   /* the caller received last, not answered yet */
    struct ipc_buffer *ipc_buffer; /* a copy on the kernel stack, or NULL */
    bool ipc_kernel;  /* the kernel itself calls (ipc_call_kernel) … */
    bool ipc_patient; /* … and a kill does not end the wait */
    bool ipc_timed;   /* its time-out stands still while it is pinned */
};

struct task {
    uint32_t task_pending;  /* first: trap.asm tests it at offset 0 */
    uint32_t task_esp;      /* saved, while it does not run */
    uint32_t task_cr3;      /* page directory; the kernel's for kernel tasks */
    vaddr_t task_stack_top; /* of the kernel stack; the user's trap frame
                                lies right below it */
    /* Guarded by sched_lock. */
    struct list task_link; /* in a run queue or wait queue */
    struct list task_timer_link;
    struct wait_queue *task_waiting; /* the queue that task_link is in */
    uint64_t task_wake_ms;           /* if in the timer list */
    int32_t task_wake_result;
    uint8_t task_state;
    uint8_t task_priority;
    bool task_interruptible; /* a kill ends this wait */
    bool task_timed;         /* in the timer list */
    uint8_t task_slice;      /* ticks left */
    uint8_t task_signal;     /* what killed it: SIGKILL … */
    int32_t task_status;     /* of a zombie, as wait() tells it */
    pid_t task_pid;
    pid_t task_group;
    struct task *task_parent; /* NULL: nobody; the reaper sees to it */
    struct list task_all_link;
    struct list task_hash_link;
    struct list task_children;
    struct list task_sibling;
    struct wait_queue task_exited; /* where it waits for a child */
    uint64_t task_ticks;           /* run, in ticks */
    uint64_t task_switches;
    void *task_kstack; /* from the kstack cache; NULL for the boot task */
    char task_name[TASK_NAME_MAX + 1];
    /* Its own; nobody else touches them while it runs. */
    struct space *task_space; /* NULL for kernel tasks */
    bool task_program;        /* has one, or had: not the kernel's own */
    struct handle_table *task_handles;
    struct inode *task_cwd;
    bool task_privileged;     /* may take a grant or replace the name server */
    struct grant *task_grant; /* taken; kernel/task/grant.h. NULL: none */
    const struct grant *task_ports; /* the same if it has ports in force */
    struct task_ipc task_ipc;
#ifdef CONFIG_DEBUG
    struct mutex *task_mutex; /* taken last, of those it holds */
#endif
};

extern struct spinlock sched_lock;

/* The task that runs. */
static inline struct task *task_self(void)
{
    return cpu_self()->cpu_task;
}

/* Makes the caller of kmain task 1 ("kernel"), and the idle task. After
 * kmem_init, before interrupts are enabled. Boot only. */
void task_init(void);

/*
 * A new kernel task that will run fn(arg) and end when that returns; READY at
 * once. NULL if there is no memory. Child of the caller.
 */
struct task *task_create(const char *name, void (*fn)(void *), void *arg,
                         enum task_priority priority);

/* Nobody will wait for this child of the caller. */
void task_disown(struct task *t);

/*
 * The two halves of it, for fork and exec: a task that is in no queue, whose
 * first switch enters `entry` with `arg`; then making it known and READY. In
 * between its owner fills in space, handles, directory. task_discard undoes
 * the first half instead.
 */
struct task *task_prepare(const char *name, void (*entry)(void *), void *arg,
                          enum task_priority priority);
pid_t task_start(struct task *t);
void sched_begin(void); /* the first thing that `entry` does */
void task_discard(struct task *t);

/* Ends the caller with a status as wait() tells it. What it owned must be gone
 * already, but for the stack. */
void task_exit(int status) __attribute__((noreturn));

/*
 * Waits for a child to end: `pid`, or any if that is -1. Returns its pid and
 * stores its status; with WNOHANG returns 0 if none has ended yet. -ECHILD:
 * there is no such child. -EINTR: killed. Frees the child's task and stack.
 */
pid_t task_wait(pid_t pid, int *status, int flags);

/* Ends the task `pid` by `signal`; of a negative pid the group -pid. Signal 0
 * only looks. 0, -ESRCH (none), -EPERM (kernel tasks), -EINVAL (signal). */
int task_kill(pid_t pid, int signal);

/* Ends the program that runs, by `signal`, before it is back in ring 3. */
void task_end(int signal);

/* The task `pid`, or NULL. Valid while sched_lock is held. */
struct task *task_find(pid_t pid);

/* Whether any task is in the group. With sched_lock held. */
bool task_group_exists(pid_t group);

/* Calls fn for every task in order of pid, with sched_lock held: fn may not
 * sleep, print or allocate. Stops when it returns false. */
void task_each(bool (*fn)(struct task *t, void *arg), void *arg);

/* A copy of what `ps` shows of one task. Returns how many were stored. */
struct task_stat {
    pid_t stat_pid, stat_parent, stat_group;
    uint8_t stat_state, stat_priority;
    bool stat_user; /* has an address space */
    uint64_t stat_ticks, stat_switches;
    const char *stat_waits_for; /* the wait queue's name, or NULL */
    char stat_name[TASK_NAME_MAX + 1];
};

/* Snapshots of the tasks with the lowest pids above `after`; at most n. */
size_t task_stats(pid_t after, struct task_stat *out, size_t n);

/* NULL, or the first broken invariant; *where gets a text that says where. */
const char *task_verify(const char **where);

/* ---- the scheduler ------------------------------------------------------ */

/* Lets the others of this priority run. */
void sched_yield(void);

/* Waits for at least so many milliseconds: 0, or -EINTR if killed. */
int sched_sleep_ms(uint32_t ms);

/* From the timer's interrupt. */
void sched_tick(void);

/* On the way out of an interrupt, interrupts disabled: switches if the slice
 * is over. */
void sched_preempt(void);

/*
 * For wait queues and IPC. All with sched_lock held, and held again when they
 * return; the caller has noted why it waits.
 */

/* Blocks the caller, which is in no queue, until sched_wake(); what that was
 * given is the result. If `interruptible` a kill wakes it with -EINTR, also one
 * that came before. `timeout_ms` other than 0 wakes it with -ETIMEDOUT. */
int sched_block(bool interruptible, uint32_t timeout_ms);

/* The same, going straight on to `next`, which is BLOCKED and in no queue. */
int sched_block_handoff(bool interruptible, struct task *next, int result);

/* Stops the time-out of a BLOCKED task; true if it has one. Then
 * sched_timer_resume lets it run on, up to the same moment. */
bool sched_timer_pause(struct task *t);
void sched_timer_resume(struct task *t);

/* Makes a BLOCKED task READY, out of its wait queue and timer; the processor
 * changes hands soon if it has a higher priority. */
void sched_wake(struct task *t, int result);
