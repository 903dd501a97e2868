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
#include "kernel/abi/ipc.h"
#include "kernel/lib/string.h"
#include "kernel/task/sched_impl.h"
#include "kernel/x86/ipi.h"
#include "kernel/x86/paging.h"
#include "kernel/x86/panic.h"
#include "kernel/x86/switch.h"
#include "kernel/x86/trap.h"
#include "mm/kmem.h"

static struct kmem_cache *task_cache;
struct kmem_cache *kstack_cache;

/* What a number means, as a pid and as a group. There are as many numbers as
 * frames. A task needs several frames and takes at most two numbers, so some
 * number is always free. */
struct pid {
    struct task *pid_task; /* or NULL */
    uint32_t pid_members;  /* tasks of the group */
};

/* Guarded by sched_lock. */
static struct list all_tasks = LIST_INIT(all_tasks);
static struct pid *pids;
static uint32_t pid_end; /* all pids given so far are lower */
uint32_t pid_limit;
uint32_t pid_last;
static uint32_t pid_rounds = UINT32_MAX; /* 0 from the first task on */
_Static_assert(PAGING_MAX_RAM / PAGE_SIZE <= 1u << IPC_PID_BITS, "IPC_PID");
static struct task *reaper; /* the parent of tasks without another */

static void (*discard_hook)(struct session *s);

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
    t->task_cpus = TASK_ANYWHERE;
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
    t->task_session = NULL;
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

void task_set_discard_hook(void (*fn)(struct session *s))
{
    discard_hook = fn;
}

void task_discard(struct task *t)
{
    if (t->task_session != NULL)
        discard_hook(t->task_session);
    kmem_cache_free(kstack_cache, t->task_kstack);
    kmem_cache_free(task_cache, t);
}

/* Children that have ended come first, so that find_child need not search. */
static void enter_children(struct task *t, struct task *parent)
{
    t->task_parent = parent;
    if (t->task_state == TASK_ZOMBIE)
        list_insert_after(&parent->task_children, &t->task_sibling);
    else
        list_insert_before(&parent->task_children, &t->task_sibling);
}

/* Assigns the next pid and a parent. False: the pid is in use. */
static bool assign_pid(struct task *t, struct task *parent)
{
    struct pid *pid;

    spin_assert_held(&sched_lock);
    pid_last = (pid_last + 1) % pid_limit;
    pid_rounds += pid_last == 0;
    pid = &pids[pid_last];
    if (pid->pid_task != NULL || pid->pid_members != 0)
        return false;
    pid_end = MAX(pid_end, pid_last + 1);
    pid->pid_task = t;
    t->task_pid = (pid_t)pid_last;
    t->task_ipc.ipc_client = pid_rounds << IPC_PID_BITS | pid_last;
    if (t->task_group == 0)
        t->task_group = t->task_pid;
    pids[t->task_group].pid_members++;
    list_insert_before(&all_tasks, &t->task_all_link);
    t->task_parent = NULL;
    if (parent != NULL)
        enter_children(t, parent);
    return true;
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
    while (!assign_pid(t, task_self()))
        sched_lock_break();
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

#define GENERATIONS 64 /* looked at for a new parent */

/* The new parent of an orphan: the oldest ancestor that is a program (init, if
 * it runs) of the nearest ones, else the kernel's reaper. */
static struct task *new_parent(const struct task *dead)
{
    struct task *t = dead->task_parent;
    struct task *oldest = NULL;

    for (int n = 0; t != NULL && n < GENERATIONS; n++, t = t->task_parent)
        if (t->task_space != NULL && t->task_state != TASK_ZOMBIE)
            oldest = t;
    return oldest != NULL ? oldest : reaper;
}

static void reparent(struct task *t, struct task *to)
{
    list_remove(&t->task_sibling);
    enter_children(t, to);
    if (t->task_state == TASK_ZOMBIE)
        wait_queue_wake_locked(&to->task_exited);
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
    while (!list_empty(&self->task_children)) {
        reparent(
            list_entry(self->task_children.next, struct task, task_sibling),
            new_parent(self));
        sched_lock_break();
    }
    self->task_status = status;
    self->task_state = TASK_ZOMBIE;
    reparent(self, self->task_parent);
    sched_switch();
    panic("a task runs after its exit");
}

/* A child that matches `pid`, preferably one that has ended; NULL: none. */
static struct task *find_child(const struct task *self, pid_t pid)
{
    struct task *t;

    if (pid == -1 && !list_empty(&self->task_children))
        return list_entry(self->task_children.next, struct task, task_sibling);
    t = task_find(pid);
    return t != NULL && t->task_parent == self ? t : NULL;
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
    if (ended) {
        list_remove(&child->task_sibling);
        list_remove(&child->task_all_link);
        pids[child->task_group].pid_members--;
        pids[child->task_pid].pid_task = NULL;
    }
    spin_unlock(&sched_lock);
    if (!ended)
        return child == NULL ? -ECHILD : error;
    pid = child->task_pid;
    *status = child->task_status;
    task_discard(child);
    return pid;
}

/* Whether it was not killed before. */
static bool kill(struct task *t, int signal)
{
    if (t->task_state == TASK_ZOMBIE || t->task_signal != 0)
        return false;
    t->task_signal = (uint8_t)signal;
    t->task_pending |= PENDING_KILL;
    if (t->task_state == TASK_BLOCKED && t->task_interruptible)
        sched_wake(t, -EINTR);
    else if (t->task_state == TASK_RUNNING && t != task_self())
        ipi_resched(cpu_of(t)); /* it returns to ring 3 by way of its end */
    return true;
}

void task_end(int signal)
{
    spin_lock(&sched_lock);
    kill(task_self(), signal);
    spin_unlock(&sched_lock);
}

struct kill {
    const struct task *kill_by; /* NULL: the kernel */
    uint32_t kill_group;        /* 0: any */
    int kill_signal;
    int kill_result;
    bool kill_any; /* a task was not killed before */
};

/* Whether `by` may signal a task. */
static bool may_signal(const struct task *by, const struct task *t)
{
    return t->task_program &&
           (by == NULL || by->task_privileged || t == by ||
            t->task_parent == by ||
            (by->task_session != NULL && t->task_session == by->task_session));
}

static bool kill_one(struct task *t, void *arg)
{
    struct kill *k = arg;
    bool may = may_signal(k->kill_by, t);

    if (k->kill_group != 0 && k->kill_group != (uint32_t)t->task_group)
        return true;
    if (may)
        k->kill_result = 0;
    else if (k->kill_result != 0)
        k->kill_result = -EPERM;
    if (may && k->kill_signal != 0)
        k->kill_any |= kill(t, k->kill_signal);
    return true;
}

/* The tasks of a group are killed in several holds of sched_lock. One that was
 * killed late may have forked before, hence the repetition. */
int task_kill(const struct task *by, pid_t pid, int signal)
{
    struct kill k = {by, pid < 0 ? -(uint32_t)pid : 0, signal, -ESRCH, true};
    struct task *t;

    if (signal < 0 || signal > SIG_MAX || pid == 0)
        return -EINVAL;
    for (; pid < 0 && k.kill_any; task_each(kill_one, &k))
        k.kill_any = false;
    if (pid < 0)
        return k.kill_result;
    spin_lock(&sched_lock);
    t = task_find(pid);
    if (t != NULL)
        kill_one(t, &k);
    spin_unlock(&sched_lock);
    return k.kill_result;
}

/* ---- lookup and snapshots ----------------------------------------------- */

struct task *task_find(pid_t pid)
{
    spin_assert_held(&sched_lock);
    return (uint32_t)pid < pid_end ? pids[pid].pid_task : NULL;
}

struct task *task_find_at_rest(pid_t pid)
{
    struct task *t = task_find(pid);

    if (t != NULL && t != task_self() &&
        (t->task_state == TASK_RUNNING ||
         t->task_ipc.ipc_state == IPC_TRANSFER))
        return NULL;
    return t;
}

bool task_group_exists(pid_t group)
{
    spin_assert_held(&sched_lock);
    return (uint32_t)group < pid_end && pids[group].pid_members != 0;
}

void task_set_group(struct task *t, pid_t group)
{
    spin_assert_held(&sched_lock);
    pids[t->task_group].pid_members--;
    pids[group].pid_members++;
    t->task_group = group;
}

/* The task with the lowest pid above `after`, with sched_lock held; or NULL. */
static struct task *lock_next(pid_t after)
{
    for (uint32_t pid = (uint32_t)after + 1; pid < pid_end; pid++) {
        if (pids[pid].pid_task == NULL) /* looked at again with the lock */
            continue;
        spin_lock(&sched_lock);
        if (pids[pid].pid_task != NULL)
            return pids[pid].pid_task;
        spin_unlock(&sched_lock);
    }
    return NULL;
}

void task_each(bool (*fn)(struct task *t, void *arg), void *arg)
{
    struct task *t = lock_next(-1);

    while (t != NULL) {
        pid_t pid = t->task_pid;
        bool more = fn(t, arg);

        spin_unlock(&sched_lock);
        t = more ? lock_next(pid) : NULL;
    }
}

size_t task_stats(pid_t after, struct task_stat *out, size_t n)
{
    const struct task *t;
    size_t used = 0;

    for (; used < n && (t = lock_next(after)) != NULL; used++) {
        out[used] = (struct task_stat){
            .stat_pid = t->task_pid,
            .stat_parent =
                t->task_parent == NULL ? 0 : t->task_parent->task_pid,
            .stat_group = t->task_group,
            .stat_state = t->task_state,
            .stat_priority = t->task_priority,
            .stat_user = t->task_space != NULL,
            .stat_program = t->task_program,
            .stat_ticks = t->task_ticks,
            .stat_switches = t->task_switches,
            .stat_cpu = t->task_cpu,
            /* A task that waits for a message is in no wait queue. */
            .stat_waits_for = t->task_waiting != NULL
                                  ? t->task_waiting->wait_reason
                              : t->task_state == TASK_BLOCKED ? "message"
                                                              : NULL,
        };
        memcpy(out[used].stat_name, t->task_name, sizeof(t->task_name));
        after = t->task_pid;
        spin_unlock(&sched_lock);
    }
    return used;
}

static const char *verify_task(const struct task *t)
{
    if (t->task_kstack != NULL && paging_readable((vaddr_t)t->task_kstack))
        return "a kernel stack has no guard page";
    if (task_find(t->task_pid) != t)
        return "a task is not found by its pid";
    if (timeout_pending(&t->task_timeout) && t->task_state != TASK_BLOCKED)
        return "a sleeper is not waiting";
    if (t->task_waiting != NULL && t->task_state != TASK_BLOCKED)
        return "a task in a wait queue is not blocked";
    if (t->task_state == TASK_RUNNING && cpu_of(t) == NULL)
        return "a task is marked running and is not on a processor";
    return NULL;
}

const char *task_verify(const char **where)
{
    const char *wrong = NULL;
    size_t n = 0;

    *where = "the scheduler";
    spin_lock(&sched_lock);
    list_for_each (l, &all_tasks) {
        const struct task *t = list_entry(l, struct task, task_all_link);

        n++;
        wrong = verify_task(t);
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

size_t task_pids_bytes(size_t frames)
{
    return frames * sizeof(struct pid);
}

void task_set_pids(void *array, size_t frames)
{
    pids = memset(array, 0, task_pids_bytes(frames));
    pid_limit = (uint32_t)frames;
    pid_last = pid_limit - 1;
}

/* Task 1 keeps the stack on which the kernel booted. */
void task_init(void)
{
    struct task *boot;
    struct task *idle;

    timeouts_init();
    task_cache = cache_create("task", sizeof(struct task), 0, task_ctor, NULL);
    kstack_cache = cache_create("kstack", KSTACK_BYTES, PAGE_SIZE, kstack_ctor,
                                kstack_dtor);
    boot = kmem_cache_alloc(task_cache, KM_SLEEP);
    init(boot, "kernel", PRIORITY_KERNEL);
    boot->task_stack_top = (vaddr_t)boot_stack_top;
    boot->task_kstack = NULL;
    idle = require(task_prepare("idle", idle_main, NULL, PRIORITY_IDLE));
    sched_init(boot, idle);
    spin_lock(&sched_lock);
    assign_pid(idle, NULL);
    assign_pid(boot, NULL);
    spin_unlock(&sched_lock);
    reaper = require(task_create("reaper", reaper_main, NULL, PRIORITY_KERNEL));
    spin_lock(&sched_lock);
    reparent(reaper, idle);
    spin_unlock(&sched_lock);
    trap_set_preempt(sched_preempt);
}
