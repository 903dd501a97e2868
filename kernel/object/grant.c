/*
 * Grants: taken, in force, dropped.
 */
#include "kernel/object/grant.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/string.h"
#include "kernel/task/cache.h"
#include "kernel/task/io_map.h"

static struct kmem_cache *grant_cache;

/* Guarded by sched_lock. */
static struct list grants = LIST_INIT(grants);

void grant_init(void)
{
    grant_cache = cache_create("grant", sizeof(struct grant), 0, NULL, NULL);
}

/* ---- creating ----------------------------------------------------------- */

struct grant *grant_create(const struct manifest_server *rights,
                           struct inode *program)
{
    struct grant *g = kmem_cache_alloc(grant_cache, KM_NOSLEEP);

    if (g == NULL)
        return NULL;
    g->grant_server = *rights;
    g->grant_program = program;
    g->grant_task = NULL;
    g->grant_in_force = false;
    spin_lock(&sched_lock);
    list_insert_before(&grants, &g->grant_link);
    spin_unlock(&sched_lock);
    return g;
}

struct grant *grant_find(const char *name)
{
    struct grant *found = NULL;

    spin_lock(&sched_lock);
    list_for_each (l, &grants) {
        struct grant *g = list_entry(l, struct grant, grant_link);

        if (found == NULL && strcmp(g->grant_server.server_name, name) == 0)
            found = g;
    }
    spin_unlock(&sched_lock);
    return found;
}

/* ---- taking and losing -------------------------------------------------- */

int grant_take(struct grant *g, struct task *t)
{
    int result = 0;

    spin_lock(&sched_lock);
    if (g->grant_task != NULL) {
        result = -EBUSY;
    } else if (t->task_grant != NULL) {
        result = -EPERM;
    } else {
        g->grant_task = t;
        g->grant_in_force = false;
        t->task_grant = g;
    }
    spin_unlock(&sched_lock);
    return result;
}

/* The map is the first processor's, so tasks with ports run there. */
static void set_task_ports(struct task *t, const struct grant *g)
{
    t->task_ports = g != NULL ? &g->grant_server : NULL;
    sched_move(t, g != NULL ? 1 : TASK_ANYWHERE);
    if (t == task_self())
        io_map_load(t);
}

/* A driver with interrupt lines runs before other programs. Otherwise it would
 * wait for the end of their time slices. */
static void set_priority(struct task *t, bool driver)
{
    if (t->task_priority <= PRIORITY_SERVER)
        t->task_priority = driver ? PRIORITY_SERVER : PRIORITY_USER;
}

static void drop(struct task *t)
{
    struct grant *g = t->task_grant;

    spin_assert_held(&sched_lock);
    g->grant_task = NULL;
    g->grant_in_force = false;
    t->task_grant = NULL;
    set_priority(t, false);
    set_task_ports(t, NULL);
}

void grant_drop(struct task *t)
{
    if (t->task_grant == NULL)
        return;
    spin_lock(&sched_lock);
    drop(t);
    spin_unlock(&sched_lock);
}

bool grant_exec(struct task *t, const struct inode *program)
{
    struct grant *g = t->task_grant;
    bool in_force = g != NULL && g->grant_program == program;

    if (g == NULL)
        return false;
    spin_lock(&sched_lock);
    if (in_force) {
        g->grant_in_force = true;
        set_task_ports(t, g->grant_server.server_ports != 0 ? g : NULL);
        set_priority(t, g->grant_server.server_irqs != 0);
    } else {
        drop(t);
    }
    spin_unlock(&sched_lock);
    return in_force;
}

/* ---- what the caller may use -------------------------------------------- */

bool grant_is_of(const char *name)
{
    const struct grant *g = grant_self();

    return g != NULL && strcmp(g->grant_server.server_name, name) == 0;
}

bool grant_has_irq(uint32_t line)
{
    const struct grant *g = grant_self();

    return g != NULL && line < MANIFEST_LINES &&
           (g->grant_server.server_irqs >> line & 1) != 0;
}

bool grant_has_memory(paddr_t first, uint32_t bytes)
{
    const struct grant *g = grant_self();
    const struct manifest_server *s;

    if (g == NULL)
        return false;
    s = &g->grant_server;
    for (unsigned i = 0; i < s->server_memories; i++)
        if (first >= s->server_memory[i].range_first &&
            first <= s->server_memory[i].range_last &&
            bytes - 1 <= s->server_memory[i].range_last - first)
            return true;
    return false;
}

uint32_t grant_dma_pages(void)
{
    const struct grant *g = grant_self();

    return g == NULL ? 0 : g->grant_server.server_dma;
}

/* ---- snapshots ---------------------------------------------------------- */

bool grant_stat(size_t n, struct grant_stat *out)
{
    bool found = false;

    spin_lock(&sched_lock);
    list_for_each (l, &grants) {
        const struct grant *g = list_entry(l, struct grant, grant_link);

        if (n-- != 0)
            continue;
        *out = (struct grant_stat){
            .stat_server = g->grant_server,
            .stat_program = g->grant_program != NULL,
            .stat_in_force = g->grant_in_force,
            .stat_pid = g->grant_task == NULL ? 0 : g->grant_task->task_pid,
        };
        found = true;
        break;
    }
    spin_unlock(&sched_lock);
    return found;
}

const char *grant_state(const struct grant_stat *st)
{
    if (!st->stat_program)
        return "-";
    return st->stat_pid == 0 ? "free" : st->stat_in_force ? "running" : "taken";
}

/* ---- checking ----------------------------------------------------------- */

#define WALK_MAX 4096u

static bool is_grant(const struct grant *g)
{
    list_for_each (l, &grants)
        if (list_entry(l, struct grant, grant_link) == g)
            return true;
    return false;
}

static const char *check_grant(const struct grant *g)
{
    const struct task *t = g->grant_task;

    if (t == NULL)
        return g->grant_in_force ? "a grant is in force without a task" : NULL;
    if (g->grant_program == NULL)
        return "a grant without a program has been taken";
    if (t->task_grant != g)
        return "a grant's task does not refer to it";
    if (t->task_pid != 0 && task_find(t->task_pid) != t)
        return "a grant's task no longer exists";
    if (t->task_state == TASK_ZOMBIE)
        return "a task that has ended has a grant";
    return NULL;
}

static const char *grant_check_task(const struct task *t)
{
    const struct grant *g = t->task_grant;
    const struct manifest_server *ports = t->task_ports;

    if (g != NULL && (!is_grant(g) || g->grant_task != t))
        return "a task has a grant that is not its own";
    if (ports != NULL &&
        (g == NULL || ports != &g->grant_server || !g->grant_in_force))
        return "a task may use ports that it has no grant for";
    return NULL;
}

struct finding {
    const char *finding_wrong;
    const char *finding_name;
};

static bool grant_check_next(struct task *t, void *arg)
{
    struct finding *f = arg;

    f->finding_wrong = grant_check_task(t);
    f->finding_name = t->task_name;
    return f->finding_wrong == NULL;
}

static void check_grants(struct finding *f)
{
    size_t n = 0;

    list_for_each (l, &grants) {
        const struct grant *g = list_entry(l, struct grant, grant_link);

        f->finding_name = g->grant_server.server_name;
        f->finding_wrong = n++ == WALK_MAX ? "the list of grants does not end"
                                           : check_grant(g);
        if (f->finding_wrong != NULL)
            return;
    }
    f->finding_name = "the processor";
    f->finding_wrong = io_map_check();
}

const char *grant_verify(const char **where)
{
    static struct finding f;

    spin_lock(&sched_lock);
    check_grants(&f);
    spin_unlock(&sched_lock);
    if (f.finding_wrong == NULL)
        task_each(grant_check_next, &f);
    *where = f.finding_name;
    return f.finding_wrong;
}
