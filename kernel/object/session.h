/*
 * Sessions: tasks that belong together, what they may do to others, and how
 * much they may use.
 *
 *     outside        kernel tasks, init, servers with a grant, `run -p`
 *     session 1      programs that the kernel shell runs, and their children
 *     session 2 …    the program of each `sh`, and its children
 *
 * A task inherits its session in fork and keeps it in exec. A task outside that
 * execs a program enters a new session, unless the program is its grant's or
 * the init of boot time. No system call creates a session, so programs in a
 * session cannot.
 *
 * A task may signal the tasks of its session, and its children. What its tasks
 * use is charged to the session up to a limit. A session ends when nothing but
 * files is charged to it any more, so a charge protects each pointer to it.
 */
#pragma once

#include "kernel/task/task.h"

enum session_resource {
    SESSION_TASKS,   /* until their parents have waited for them */
    SESSION_PAGES,   /* promised (kernel/vm/commit.h), and read-only ones */
    SESSION_REGIONS, /* of address spaces */
    SESSION_FILES,   /* pages of files in RAM, and one for each file */
    SESSION_PORTS,
    SESSION_MOUNTS,
    SESSION_RESOURCES,
};

struct session {
    struct list session_link; /* in the list of sessions, by number; as the
                                 number, by sched_lock */
    uint32_t session_number;  /* not 0 */
    uint32_t session_used[SESSION_RESOURCES]; /* atomic */
};

/* What each session may use; in pages of memory, hence not constant. */
extern uint32_t session_limit[SESSION_RESOURCES];

/* Pages that sessions leave available for tasks outside (kernel/vm/commit.h).
 */
extern uint32_t session_reserve;

/* Session 1, of the programs that the kernel shell runs; it never ends. */
extern struct session *session_console;

/* Creates the cache and session 1; the limits depend on the pages of memory.
 * Boot only. */
void session_init(size_t pages);

/* A new session, charged with one task; NULL: no memory. */
struct session *session_create(void);

/* 0: outside every session. */
static inline uint32_t session_number(const struct session *s)
{
    return s == NULL ? 0 : s->session_number;
}

/* The running task's, or NULL; also before there are tasks. */
static inline struct session *session_self(void)
{
    const struct task *self = task_self();

    return self == NULL ? NULL : self->task_session;
}

/* ---- quotas ------------------------------------------------------------- */

/* Charges `n` of a resource; false, and nothing changed: it would exceed the
 * limit. Without a session (NULL) there is no limit. Any locks may be held. */
static inline bool session_charge(struct session *s, enum session_resource what,
                                  uint32_t n)
{
    uint32_t used = s == NULL ? 0 : s->session_used[what];

    while (s != NULL && n <= session_limit[what] - used)
        if (__atomic_compare_exchange_n(&s->session_used[what], &used, used + n,
                                        false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return true;
    return s == NULL;
}

static inline void session_refund(struct session *s, enum session_resource what,
                                  uint32_t n)
{
    if (s != NULL)
        __atomic_sub_fetch(&s->session_used[what], n, __ATOMIC_RELAXED);
}

/* Refunds a session by its number, unless it has ended. For what remains when
 * its tasks have ended. */
void session_refund_number(uint32_t number, enum session_resource what,
                           uint32_t n);

/* Refunds the task that `s` was charged with, and frees the sessions to which
 * nothing is charged any more. */
void session_leave(struct session *s);

/* Kills all tasks of a session, and waits until they have ended, at most a
 * second. 0, -ESRCH (no such session), -EBUSY (some have not ended). */
int session_end(uint32_t number);

/* ---- snapshots ---------------------------------------------------------- */

/* The number of the session of the task `pid`; 0: it is outside, or there is no
 * such task. */
uint32_t session_of(pid_t pid);

struct session_stat {
    uint32_t stat_number;
    uint32_t stat_used[SESSION_RESOURCES];
};

/* Snapshot of the session with the lowest number above `after`; false: none. */
bool session_stat(uint32_t after, struct session_stat *out);

/* NULL, or the first broken invariant; *where says where. */
const char *session_verify(const char **where);
