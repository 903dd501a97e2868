/*
 * System calls about tasks: identity, fork, exit, wait, kill. (exec is in
 * exec.c.)
 */
#include "drivers/pit.h"
#include "kernel/fs/tty.h"
#include "kernel/syscall/process.h"
#include "kernel/syscall/syscall.h"

/* getpid() */
int32_t sys_getpid(NO_ABC)
{
    return task_self()->task_pid;
}

/* getppid(): 0 if the parent is the kernel itself. */
int32_t sys_getppid(NO_ABC)
{
    const struct task *parent;
    pid_t pid;

    spin_lock(&sched_lock);
    parent = task_self()->task_parent;
    pid = parent->task_space == NULL ? 0 : parent->task_pid;
    spin_unlock(&sched_lock);
    return pid;
}

/* exit(code) */
int32_t sys_exit(uint32_t code, NO_BC)
{
    process_exit((int)(code & 0xff) << 8);
}

/* fork(): the child's pid, and 0 in the child. EAGAIN (too many tasks in the
 * session), ENOMEM. */
int32_t sys_fork(NO_ABC)
{
    return process_fork();
}

/* wait(pid, int *status or NULL, flags): ECHILD, EINTR, EINVAL, EFAULT, ENOMEM.
 * The output is tested first. */
int32_t sys_wait(uint32_t pid, uint32_t status_out, uint32_t flags)
{
    int *out = (int *)status_out;
    int status;
    pid_t child;
    int error = 0;

    if ((flags & ~(uint32_t)WNOHANG) != 0 ||
        ((pid_t)pid <= 0 && (pid_t)pid != -1))
        return -EINVAL;
    if (out != NULL)
        error = copy_from_user(&status, out, sizeof(status));
    if (out != NULL && error == 0)
        error = user_copy(out, &status, sizeof(status));
    if (error != 0)
        return error;
    child = task_wait((pid_t)pid, &status, (int)flags);
    if (child > 0 && out != NULL)
        user_copy(out, &status, sizeof(status)); /* cannot fail: tested above */
    return child;
}

/* kill(pid or -group, signal): ESRCH, EPERM, EINVAL. */
int32_t sys_kill(uint32_t pid, uint32_t signal, NO_C)
{
    return task_kill(task_self(), (pid_t)pid, (int)signal);
}

/* yield() */
int32_t sys_yield(NO_ABC)
{
    sched_yield();
    return 0;
}

/* sleep(milliseconds): EINTR if killed. */
int32_t sys_sleep(uint32_t ms, NO_BC)
{
    return ms == 0 ? 0 : sched_sleep_ms(ms);
}

/* uptime(): milliseconds since boot, modulo 2^31. */
int32_t sys_uptime(NO_ABC)
{
    return (int32_t)(timer_ms() & INT32_MAX);
}

/* The group may be the task's own new one, or one with a task that the caller
 * may signal. */
static int set_group(struct task *self, struct task *t, pid_t group,
                     bool may_join)
{
    if (t == NULL || (t != self && t->task_parent != self))
        return -ESRCH;
    if (group != t->task_pid && !(may_join && task_group_exists(group)))
        return -EPERM;
    task_set_group(t, group);
    return 0;
}

/* setpgid(pid or 0, group or 0): for the caller or one of its children. ESRCH,
 * EPERM (no such group that it may join), EINVAL. */
int32_t sys_setpgid(uint32_t pid, uint32_t group, NO_C)
{
    struct task *self = task_self();
    bool may_join;
    int result;

    if ((pid_t)pid < 0 || (pid_t)group < 0)
        return -EINVAL;
    if (pid == 0)
        pid = (uint32_t)self->task_pid;
    if (group == 0)
        group = pid;
    may_join = group != pid && task_kill(self, -(pid_t)group, 0) == 0;
    spin_lock(&sched_lock);
    result = set_group(self, task_find((pid_t)pid), (pid_t)group, may_join);
    spin_unlock(&sched_lock);
    tty_group_changed();
    return result;
}
