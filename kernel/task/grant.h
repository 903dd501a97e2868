/*
 * Grants: what of the machine a server may have, out of the manifest.
 *
 * There is one grant for each stanza, made at boot and there for good. A task
 * takes it (the call grant_take, or the kernel shell's `run -s`), but it is in
 * force only while that task runs the program of the stanza: so what counts is
 * the code, whose file nobody can change, and not who started it.
 *
 *     FREE ── grant_take ──> TAKEN ── exec of its program ──> IN FORCE
 *      ^                       │                                 │
 *      └── exec of another, exit ────────────────────────────────┘
 *
 * The interrupt lines, ranges and pages are looked up when a system call asks
 * for one. The ports the processor itself looks up, in the map behind the task
 * state segment: it holds the ports of one grant, and is changed only when a
 * task with another grant's ports runs.
 */
#pragma once

#include "kernel/lib/manifest.h"
#include "kernel/task/task.h"
#include "kernel/x86/gdt.h"

struct grant {
    struct list grant_link; /* in all grants, in the manifest's order */
    struct manifest_server grant_server;
    struct inode *grant_program; /* sealed, with a reference; NULL: there is
                                    none in the archive */
    /* By sched_lock; for the task itself also without. */
    struct task *grant_task; /* who has taken it, NULL: nobody */
    bool grant_in_force;     /* and runs its program */
};

/* The cache. Boot only. */
void grant_init(void);

/* A grant with the rights of a stanza; takes over the reference. NULL: no
 * memory. grant_destroy is for tests: nobody may have taken it. It leaves the
 * reference to the caller. */
struct grant *grant_create(const struct manifest_server *rights,
                           struct inode *program);
void grant_destroy(struct grant *g);

/* The grant of that server, or NULL. */
struct grant *grant_find(const char *name);

/* `t`, which is the caller or has not begun to run, has it from now on, not yet
 * in force. 0; -EBUSY: another task has it; -EPERM: `t` has one already. */
int grant_take(struct grant *g, struct task *t);

/* The caller, or one that has not begun to run, runs `program` now: what it has
 * taken comes into force, or is lost. False: it has (now) none. */
bool grant_exec(struct task *t, const struct inode *program);

/* Nobody has what `t` has taken. */
void grant_drop(struct task *t);

/* ---- what the caller may ------------------------------------------------ */

/* The caller's, if it is in force, or NULL. */
static inline const struct grant *grant_self(void)
{
    const struct grant *g = task_self()->task_grant;

    return g != NULL && g->grant_in_force ? g : NULL;
}

bool grant_has_irq(uint32_t line);
bool grant_has_memory(paddr_t first, uint32_t bytes);

/* Pages that may be used for DMA at once. */
uint32_t grant_dma_pages(void);

/* ---- the ports ---------------------------------------------------------- */

/* The processor runs `next` from now on. sched_lock held. */
void grant_switch_ports(const struct task *next);

/* For the switch: one test for tasks that have no ports. */
static inline void grant_switch(const struct task *self,
                                const struct task *next)
{
    if (unlikely((uintptr_t)self->task_ports | (uintptr_t)next->task_ports))
        grant_switch_ports(next);
}

/* ---- looking ------------------------------------------------------------ */

struct grant_stat {
    struct manifest_server stat_server;
    bool stat_program;  /* is in the archive */
    bool stat_in_force; /* else it is only taken, or free */
    pid_t stat_pid;     /* 0: free */
};

/* Number `n` in the manifest's order; false: there are no more. */
bool grant_stat(size_t n, struct grant_stat *out);

/* "running": in force; "taken"; "free"; "-": there is no program. */
const char *grant_state(const struct grant_stat *st);

/* NULL, or the first broken invariant; *where gets a text that says where. */
const char *grant_verify(const char **where);
