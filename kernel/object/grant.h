/*
 * Grants: the parts of the machine that a server may use, from the manifest.
 *
 * Each stanza has one grant, created at boot and never destroyed. A task takes
 * it (system call grant_take, or `run -s` of the kernel shell), but it is in
 * force only while that task runs the stanza's program. So the right belongs to
 * the code, whose file is sealed, and not to the task that started it.
 *
 *     FREE ── grant_take ──> TAKEN ── exec of its program ──> IN FORCE
 *      ^                       │                                 │
 *      └── exec of another, exit ────────────────────────────────┘
 *
 * A system call that asks for an interrupt line, memory range or DMA page looks
 * in the grant. The processor checks ports itself (kernel/task/io_map.h).
 */
#pragma once

#include "kernel/lib/manifest.h"
#include "kernel/task/task.h"

struct grant {
    struct list grant_link; /* in the list of all grants, in the manifest's
                               order */
    struct manifest_server grant_server;
    struct inode *grant_program; /* sealed, with a reference; NULL: the
                                    archive has no such program */
    /* Guarded by sched_lock; the task itself reads them without it. */
    struct task *grant_task; /* the task that has taken it, or NULL */
    bool grant_in_force;     /* and that task runs its program */
};

/* Creates the cache. Boot only. */
void grant_init(void);

/* Creates a grant with the rights of a stanza and takes over the reference.
 * NULL: no memory. */
struct grant *grant_create(const struct manifest_server *rights,
                           struct inode *program);

/* The grant of that server, or NULL. */
struct grant *grant_find(const char *name);

/* `t`, the caller or a task that has not started, takes the grant; it is not
 * yet in force. Returns 0; -EBUSY: another task has it; -EPERM: `t` has a grant
 * already. */
int grant_take(struct grant *g, struct task *t);

/* `t`, the caller or a task that has not started, now runs `program`: its grant
 * comes into force if it is the grant's program, else it is dropped. Returns
 * whether `t` still has a grant. */
bool grant_exec(struct task *t, const struct inode *program);

/* `t` drops its grant, if it has one. */
void grant_drop(struct task *t);

/* ---- what the caller may use -------------------------------------------- */

/* The caller's grant if it is in force, or NULL. */
static inline const struct grant *grant_self(void)
{
    const struct grant *g = task_self()->task_grant;

    return g != NULL && g->grant_in_force ? g : NULL;
}

/* Whether it is that of the server of this name. */
bool grant_is_of(const char *name);

bool grant_has_irq(uint32_t line);
bool grant_has_memory(paddr_t first, uint32_t bytes);

/* DMA pages that the caller may have at once. */
uint32_t grant_dma_pages(void);

/* ---- snapshots ---------------------------------------------------------- */

struct grant_stat {
    struct manifest_server stat_server;
    bool stat_program;  /* the archive has its program */
    bool stat_in_force; /* else taken, or free */
    pid_t stat_pid;     /* 0: free */
};

/* Grant number `n` in the manifest's order; false: no more. */
bool grant_stat(size_t n, struct grant_stat *out);

/* "running" (in force), "taken", "free" or "-" (no program). */
const char *grant_state(const struct grant_stat *st);

/* NULL, or the first broken invariant; *where says where. */
const char *grant_verify(const char **where);
