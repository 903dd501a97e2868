/*
 * Tasks: creation, lookup, exit, wait and kill.
 *
 * A task is two objects, each from its own cache. The stack is three pages; the
 * constructor unmaps the lowest, so that an overflow faults instead of
 * overwriting another object, and the destructor maps it again before the pages
 * return to buddy. A cached stack keeps its guard page.
 *
 *     kstack:   | no page | page | page |
 *                         stack <──────── top
 */
#include "kernel/task/cache.h"
#include "kernel/task/task.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/string.h"
#include "kernel/task/sched_impl.h"
#include "kernel/x86/paging.h"
#include "kernel/x86/panic.h"
#include "kernel/x86/switch.h"
#include "kernel/x86/trap.h"
#include "mm/kmem.h"

#define HASH_SIZE 64u /* a power of two */

static struct kmem_cache *task_cache;
static struct kmem_cache *kstack_cache;

/* Guarded by sched_lock. */
static struct list all_tasks = LIST_INIT(all_tasks); /* by pid */
static struct list by_pid[HASH_SIZE];
static pid_t last_pid;
static struct task *reaper; /* the parent of tasks without another */

/* ---- the two caches ----------------------------------------------------- */

static void task_ctor(void *obj, size_t size)
{
    struct task *t = obj;

    memset(t, 0, size);
    list_init(&t->task_children);
    list_init(&t->task_ipc.ipc_clients);
    wait_queue_init(&t->task_exited, "child");
}

static void kstack_ctor(void *obj, size_t size UNUSED)
{
    paging_unmap((vaddr_t)obj);
}

static void kstack_dtor(void *obj, size_t size UNUSED)
{
    paging_map((vaddr_t)obj);
}

/* ---- creating ----------------------------------------------------------- */

/* A program's name is that of a file, which may have any character in it. */
void task_set_name(struct task *t, const char *name)
{
    strlcpy(t->task_name, name, sizeof(t->task_name));
    make_printable(t->task_name);
}

/* Fields that are not kept between uses. */
static void init(struct task *t, const char *name, unsigned priority)
{
    t->task_pending = 0;
    t->task_cr3 = paging_kernel_cr3();
    t->task_state = TASK_BLOCKED;
    t->task_priority = (uint8_t)priority;
    t->task_signal = 0;
    t->task_status = 0;
    t->task_pid = 0;
    t->task_group = 0;
    t->task_ticks = 0;
    t->task_switches = 0;
    t->task_program = false;
    t->task_privileged = false;
    t->task_grant = NULL;
    t->task_ports = NULL;
    task_set_name(t, name);
}

struct task *task_prepare(const char *name, void (*entry)(void *), void *arg,
                          enum task_priority priority)
{
    struct task *t = kmem_cache_alloc(task_cache, KM_NOSLEEP);

    if (t == NULL)
        return NULL;
    t->task_kstack = kmem_cache_alloc(kstack_cache, KM_NOSLEEP);
    if (t->task_kstack == NULL) {
        kmem_cache_free(task_cache, t);
        return NULL;
    }
    init(t, name, priority);
    t->task_stack_top = (vaddr_t)t->task_kstack + KSTACK_BYTES;
    t->task_esp = switch_prepare(t->task_stack_top - sizeof(struct trapframe),
                                 entry, arg);
    return t;
}

void task_discard(struct task *t)
{
    kmem_cache_free(kstack_cache, t->task_kstack);
    kmem_cache_free(task_cache, t);
}

static struct list *bucket(pid_t pid)
{
    return &by_pid[(uint32_t)pid % HASH_SIZE];
}

/* Assigns a pid and a parent. */
static void enter(struct task *t, struct task *parent)
{
    spin_assert_held(&sched_lock);
    t->task_pid = ++last_pid;
    if (t->task_group == 0)
        t->task_group = t->task_pid;
    t->task_parent = parent;
    list_insert_before(&all_tasks, &t->task_all_link);
    list_insert_before(bucket(t->task_pid), &t->task_hash_link);
    if (parent != NULL)
        list_insert_before(&parent->task_children, &t->task_sibling);
}

/* If the parent's group was killed while the parent was creating `t`, the kill
 * applies to `t` too. */
static void inherit_kill(struct task *t, const struct task *parent)
{
    spin_assert_held(&sched_lock);
    if (parent->task_signal == 0 || t->task_group != parent->task_group)
        return;
    t->task_signal = parent->task_signal;
    t->task_pending |= PENDING_KILL;
}

pid_t task_start(struct task *t)
{
    pid_t pid;

    spin_lock(&sched_lock);
    enter(t, task_self());
    inherit_kill(t, task_self());
    pid = t->task_pid;
    sched_wake(t, 0);
    spin_unlock(&sched_lock);
    return pid;
}

/* The function of a kernel task. Stored in its stack's unused trap frame. */
struct kernel_main {
    void (*main_fn)(void *);
    void *main_arg;
};

static void kernel_begin(void *arg)
{
    struct kernel_main m = *(struct kernel_main *)arg;

    sched_begin();
    m.main_fn(m.main_arg);
    task_exit(0);
}

struct task *task_create(const char *name, void (*fn)(void *), void *arg,
                         enum task_priority priority)
{
    struct task *t = task_prepare(name, kernel_begin, NULL, priority);
    struct kernel_main *m;

    if (t == NULL)
        return NULL;
    m = (struct kernel_main *)(t->task_stack_top - sizeof(struct trapframe));
    *m = (struct kernel_main){fn, arg};
    ((struct switch_frame *)t->task_esp)->esi = (uint32_t)m;
    task_start(t);
    return t;
}

/* ---- ending ------------------------------------------------------------- */

/* The new parent of an orphan: the oldest ancestor that is a program (init, if
 * it runs), else the kernel's reaper. */
static struct task *new_parent(const struct task *dead)
{
    struct task *oldest = NULL;

    for (struct task *t = dead->task_parent; t != NULL; t = t->task_parent)
        if (t->task_space != NULL && t->task_state != TASK_ZOMBIE)
            oldest = t;
    return oldest != NULL ? oldest : reaper;
}

static void reparent(struct task *t, struct task *to)
{
    list_remove(&t->task_sibling);
    t->task_parent = to;
    list_insert_before(&to->task_children, &t->task_sibling);
    if (t->task_state == TASK_ZOMBIE)
        wait_queue_wake_locked(&to->task_exited, UINT32_MAX);
}

static void orphan_children(struct task *self)
{
    struct task *to = new_parent(self);

    while (!list_empty(&self->task_children))
        reparent(
            list_entry(self->task_children.next, struct task, task_sibling),
            to);
}

void task_disown(struct task *t)
{
    spin_lock(&sched_lock);
    reparent(t, reaper);
    spin_unlock(&sched_lock);
}

void task_exit(int status)
{
    struct task *self = task_self();

    spin_lock(&sched_lock);
    orphan_children(self);
    self->task_status = status;
    self->task_state = TASK_ZOMBIE;
    wait_queue_wake_locked(&self->task_parent->task_exited, UINT32_MAX);
    sched_switch();
    panic("a task runs after its exit");
}

/* A child that matches `pid`, preferably one that has ended; NULL: none. */
static struct task *find_child(const struct task *self, pid_t pid)
{
    struct task *found = NULL;

    list_for_each (l, &self->task_children) {
        struct task *t = list_entry(l, struct task, task_sibling);

        if (pid != -1 && t->task_pid != pid)
            continue;
        found = t;
        if (t->task_state == TASK_ZOMBIE)
            break;
    }
    return found;
}

static void unlink_task(struct task *t)
{
    list_remove(&t->task_sibling);
    list_remove(&t->task_all_link);
    list_remove(&t->task_hash_link);
}

pid_t task_wait(pid_t pid, int *status, int flags)
{
    struct task *self = task_self();
    struct task *child;
    int error = 0;
    bool ended;

    spin_lock(&sched_lock);
    while ((child = find_child(self, pid)) != NULL && error == 0 &&
           child->task_state != TASK_ZOMBIE && (flags & WNOHANG) == 0)
        error = wait_queue_block(&self->task_exited, true, 0);
    ended = child != NULL && child->task_state == TASK_ZOMBIE;
    if (ended)
        unlink_task(child);
    spin_unlock(&sched_lock);
    if (!ended)
        return child == NULL ? -ECHILD : error;
    pid = child->task_pid;
    *status = child->task_status;
    task_discard(child);
    return pid;
}

static void kill(struct task *t, int signal)
{
    if (t->task_state == TASK_ZOMBIE || t->task_signal != 0)
        return;
    t->task_signal = (uint8_t)signal;
    t->task_pending |= PENDING_KILL;
    if (t->task_state == TASK_BLOCKED && t->task_interruptible)
        sched_wake(t, -EINTR);
}

void task_end(int signal)
{
    spin_lock(&sched_lock);
    kill(task_self(), signal);
    spin_unlock(&sched_lock);
}

/* Whether `pid` selects this task; a negative pid selects a group. Unsigned,
 * because the lowest pid_t has no positive counterpart. */
static bool matches(const struct task *t, pid_t pid)
{
    return pid > 0 ? t->task_pid == pid
                   : (uint32_t)t->task_group == -(uint32_t)pid;
}

int task_kill(pid_t pid, int signal)
{
    int result = -ESRCH;

    if (signal < 0 || signal > SIG_MAX || pid == 0)
        return -EINVAL;
    spin_lock(&sched_lock);
    list_for_each (l, &all_tasks) {
        struct task *t = list_entry(l, struct task, task_all_link);

        if (!matches(t, pid))
            continue;
        if (!t->task_program) {
            if (result != 0)
                result = -EPERM;
            continue;
        }
        result = 0;
        if (signal != 0)
            kill(t, signal);
    }
    spin_unlock(&sched_lock);
    return result;
}

/* ---- lookup and snapshots ----------------------------------------------- */

struct task *task_find(pid_t pid)
{
    spin_assert_held(&sched_lock);
    list_for_each (l, bucket(pid)) {
        struct task *t = list_entry(l, struct task, task_hash_link);

        if (t->task_pid == pid)
            return t;
    }
    return NULL;
}

bool task_group_exists(pid_t group)
{
    spin_assert_held(&sched_lock);
    list_for_each (l, &all_tasks)
        if (list_entry(l, struct task, task_all_link)->task_group == group)
            return true;
    return false;
}

void task_each(bool (*fn)(struct task *t, void *arg), void *arg)
{
    spin_lock(&sched_lock);
    list_for_each (l, &all_tasks)
        if (!fn(list_entry(l, struct task, task_all_link), arg))
            break;
    spin_unlock(&sched_lock);
}

static void copy_stat(const struct task *t, struct task_stat *out)
{
    *out = (struct task_stat){
        .stat_pid = t->task_pid,
        .stat_parent = t->task_parent == NULL ? 0 : t->task_parent->task_pid,
        .stat_group = t->task_group,
        .stat_state = t->task_state,
        .stat_priority = t->task_priority,
        .stat_user = t->task_space != NULL,
        .stat_ticks = t->task_ticks,
        .stat_switches = t->task_switches,
        /* A task that waits for a message is in no wait queue. */
        .stat_waits_for = t->task_waiting != NULL ? t->task_waiting->wait_reason
                          : t->task_state == TASK_BLOCKED ? "message"
                                                          : NULL,
    };
    memcpy(out->stat_name, t->task_name, sizeof(out->stat_name));
}

size_t task_stats(pid_t after, struct task_stat *out, size_t n)
{
    size_t used = 0;

    spin_lock(&sched_lock);
    list_for_each (l, &all_tasks) {
        const struct task *t = list_entry(l, struct task, task_all_link);

        if (used == n)
            break;
        if (t->task_pid > after)
            copy_stat(t, &out[used++]);
    }
    spin_unlock(&sched_lock);
    return used;
}

static const char *verify_task(const struct task *t)
{
    if (t->task_kstack != NULL && paging_readable((vaddr_t)t->task_kstack))
        return "a kernel stack has no guard page";
    if (task_find(t->task_pid) != t)
        return "a task is not found by its pid";
    if (t->task_waiting != NULL && t->task_state != TASK_BLOCKED)
        return "a task in a wait queue is not blocked";
    if (t->task_state == TASK_RUNNING && t != task_self())
        return "a task is marked running and is not on a processor";
    return NULL;
}

const char *task_verify(const char **where)
{
    const char *wrong = NULL;
    pid_t before = -1;
    size_t n = 0;

    *where = "the scheduler";
    spin_lock(&sched_lock);
    list_for_each (l, &all_tasks) {
        const struct task *t = list_entry(l, struct task, task_all_link);

        n++;
        wrong = t->task_pid <= before ? "the tasks are not in order of pid"
                                      : verify_task(t);
        before = t->task_pid;
        if (wrong != NULL) {
            *where = t->task_name;
            break;
        }
    }
    if (wrong == NULL)
        wrong = sched_verify(n);
    spin_unlock(&sched_lock);
    return wrong;
}

/* ---- boot --------------------------------------------------------------- */

static void idle_main(void *arg UNUSED)
{
    sched_begin();
    for (;;)
        cpu_wait_interrupt();
}

static void reaper_main(void *arg UNUSED)
{
    int status;

    for (;;)
        if (task_wait(-1, &status, 0) == -ECHILD) {
            spin_lock(&sched_lock);
            if (list_empty(&task_self()->task_children))
                wait_queue_block(&task_self()->task_exited, false, 0);
            spin_unlock(&sched_lock);
        }
}

static struct task *require(struct task *t)
{
    if (t == NULL)
        panic("not enough memory to create the first tasks");
    return t;
}

/* Task 1 keeps the stack on which the kernel booted. */
static struct task *boot_task(void)
{
    struct task *t = kmem_cache_alloc(task_cache, KM_SLEEP);

    init(t, "kernel", PRIORITY_KERNEL);
    t->task_stack_top = (vaddr_t)boot_stack_top;
    t->task_kstack = NULL;
    return t;
}

void task_init(void)
{
    struct task *boot;
    struct task *idle;

    for (unsigned i = 0; i < HASH_SIZE; i++)
        list_init(&by_pid[i]);
    task_cache = cache_create("task", sizeof(struct task), 0, task_ctor, NULL);
    kstack_cache = cache_create("kstack", KSTACK_BYTES, PAGE_SIZE, kstack_ctor,
                                kstack_dtor);
    boot = boot_task();
    idle = require(task_prepare("idle", idle_main, NULL, PRIORITY_IDLE));
    sched_init(boot, idle);
    spin_lock(&sched_lock);
    last_pid = -1;
    enter(idle, NULL);
    enter(boot, NULL);
    spin_unlock(&sched_lock);
    reaper = require(task_create("reaper", reaper_main, NULL, PRIORITY_KERNEL));
    spin_lock(&sched_lock);
    reparent(reaper, idle);
    spin_unlock(&sched_lock);
    trap_set_preempt(sched_preempt);
}
