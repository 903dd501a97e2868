/*
 * Processes: created by fork and spawn, ended by exit. A process is a task, a
 * space, a handle table and a directory; only this file knows all of them.
 */
#include "kernel/syscall/process.h"
#include "kernel/abi/errno.h"
#include "kernel/fs/file.h"
#include "kernel/fs/path.h"
#include "kernel/fs/tty.h"
#include "kernel/ipc/port.h"
#include "kernel/syscall/path.h"
#include "kernel/syscall/servers.h"
#include "kernel/syscall/syscall.h"
#include "kernel/object/grant.h"
#include "kernel/object/handle.h"
#include "kernel/object/session.h"
#include "kernel/vm/space.h"
#include "kernel/x86/gdt.h"
#include "kernel/x86/paging.h"

/* ---- entering ring 3 ---------------------------------------------------- */

static void enter_program(void *arg UNUSED)
{
    sched_begin();
    trap_return(task_frame(task_self()));
}

void trap_handle_pending(void)
{
    struct task *self = task_self();

    sched_preempt();
    if (self->task_pending & PENDING_KILL) {
        irq_enable();
        process_exit(self->task_signal);
    }
}

/* ---- creating ----------------------------------------------------------- */

/* Gives a task what a process needs: all of it or nothing. */
static int equip(struct task *t, struct space *s, struct handle_table *handles,
                 struct inode *cwd)
{
    if (s == NULL || handles == NULL) {
        if (s != NULL)
            space_destroy(s);
        if (handles != NULL)
            handle_table_destroy(handles);
        grant_drop(t);
        task_discard(t);
        return -ENOMEM;
    }
    t->task_program = true;
    t->task_space = s;
    t->task_cr3 = space_cr3(s);
    t->task_handles = handles;
    t->task_cwd = inode_ref(cwd);
    return 0;
}

/* Charges the session for a task that is not started; false: too many. */
static bool join_session(struct task *t, struct session *session)
{
    bool fits = session_charge(session, SESSION_TASKS, 1);

    if (fits)
        t->task_session = session;
    return fits;
}

pid_t process_fork(void)
{
    struct task *self = task_self();
    struct task *t =
        task_prepare(self->task_name, enter_program, NULL, PRIORITY_USER);
    int error;

    if (t == NULL)
        return -ENOMEM;
    if (!join_session(t, self->task_session)) {
        task_discard(t);
        return -EAGAIN;
    }
    error = equip(t, space_copy(self->task_space),
                  handle_table_copy(self->task_handles), self->task_cwd);
    if (error != 0)
        return error;
    /* Point of no return. */
    t->task_group = self->task_group;
    t->task_privileged = self->task_privileged;
    *task_frame(t) = *task_frame(self);
    task_frame(t)->eax = 0;
    return task_start(t);
}

static struct trapframe first_frame(uint32_t entry, uint32_t esp)
{
    return (struct trapframe){
        .gs = GDT_USER_DATA,
        .fs = GDT_USER_DATA,
        .es = GDT_USER_DATA,
        .ds = GDT_USER_DATA,
        .eip = entry,
        .cs = GDT_USER_CODE,
        .eflags = EFLAGS_IF | 2,
        .esp = esp,
        .ss = GDT_USER_DATA,
    };
}

/* Servers and privileged programs are outside every session. */
static pid_t spawn(const struct process_start *start, struct inode *program,
                   const struct exec_args *args)
{
    bool privileged = start->start_privileged ||
                      (start->start_init && program == servers_init_program());
    bool outside = privileged || start->start_grant != NULL;
    struct session *session = outside ? NULL : session_console;
    struct handle_table *handles;
    uint32_t entry, esp;
    int error;
    struct space *s = exec_load(program, args, session, &entry, &esp, &error);
    struct task *t;

    if (s == NULL)
        return error;
    t = task_prepare(exec_name(start->start_path), enter_program, NULL,
                     PRIORITY_USER);
    if (t == NULL)
        error = -ENOMEM;
    else if (!join_session(t, session))
        error = -EAGAIN;
    else if (start->start_grant != NULL)
        error = grant_take(start->start_grant, t);
    if (error != 0) {
        space_destroy(s);
        if (t != NULL)
            task_discard(t);
        return error;
    }
    grant_exec(t, program);
    handles = handle_table_create();
    for (int h = 0; h < 3 && handles != NULL; h++)
        handle_install(handles, object_get(&start->start_console->file_object),
                       0);
    error = equip(t, s, handles, path_root());
    if (error != 0)
        return error;
    t->task_privileged = privileged;
    *task_frame(t) = first_frame(entry, esp);
    return task_start(t);
}

pid_t process_spawn(const struct process_start *start)
{
    const struct grant *g = start->start_grant;
    struct exec_args args;
    struct inode *program;
    int error = 0;

    if (g == NULL)
        error = path_lookup(start->start_path, path_root(), &program);
    else if (g->grant_program == NULL)
        error = -ENOENT;
    else
        program = inode_ref(g->grant_program);
    if (error != 0)
        return error;
    error = exec_args_copy(&args, start->start_argv, start->start_envp, false);
    if (error == 0) {
        error = spawn(start, program, &args);
        exec_args_free(&args);
    }
    inode_put(program);
    return error;
}

/* Both in one step: if another task ran in between, this processor could keep
 * the old directory while the caller goes on elsewhere and frees it. */
static void enter_directory(struct task *self, uint32_t cr3)
{
    irq_disable();
    self->task_cr3 = cr3;
    write_cr3(cr3);
    irq_enable();
}

/* ---- exec --------------------------------------------------------------- */

/* From here on the old program no longer exists; calls that its clients wait
 * for end with -EPIPE. */
static void replace_program(struct space *s, const char *path,
                            struct inode *program, struct session *session,
                            uint32_t entry, uint32_t esp)
{
    struct task *self = task_self();
    struct space *old = self->task_space;

    self->task_session = session;
    self->task_privileged = false;
    if (self->task_grant != NULL && self->task_grant->grant_program != program)
        ipc_irq_drop(self); /* before another task may get the grant */
    grant_exec(self, program);
    ipc_task_exit(self);

    self->task_space = s;
    enter_directory(self, space_cr3(s));
    space_destroy(old);
    handle_close_on_exec(self->task_handles);
    task_set_name(self, exec_name(path));
    *task_frame(self) = first_frame(entry, esp);
}

/* Whether the caller, which is outside every session, remains so with that
 * program. The init of boot time, which has lost its privilege, does. */
static bool stays_outside(const struct inode *program)
{
    const struct grant *g = task_self()->task_grant;

    return program == servers_init_program() ||
           (g != NULL && g->grant_program == program);
}

static int exec_program(const char *path, struct inode *program,
                        const struct exec_args *args)
{
    struct session *session = session_self();
    bool enters = session == NULL && !stays_outside(program);
    uint32_t entry, esp;
    struct space *s;
    int error;

    if (enters && (session = session_create()) == NULL)
        return -ENOMEM;
    s = exec_load(program, args, session, &entry, &esp, &error);
    /* With a space: point of no return. */
    if (s != NULL) {
        replace_program(s, path, program, session, entry, esp);
        if (enters)
            tty_enter_session();
    } else if (enters)
        session_leave(session);
    return error;
}

/* exec(path, argv, envp): returns only if it fails. ENOENT, ENOTDIR, EISDIR,
 * EACCES (a device, a file of /proc), ENOEXEC, E2BIG, EFAULT, ENOMEM,
 * ENAMETOOLONG. */
int32_t sys_exec(uint32_t path_in, uint32_t argv, uint32_t envp)
{
    struct exec_args args;
    struct inode *program;
    char *path;
    int error = path_copy_in(path_in, &path);

    if (error != 0)
        return error;
    error = exec_args_copy(&args, (const char *const *)argv,
                           (const char *const *)envp, true);
    if (error != 0)
        goto free_path;
    error = path_lookup(path, task_self()->task_cwd, &program);
    if (error != 0)
        goto free_args;
    error = exec_program(path, program, &args);
    inode_put(program);
free_args:
    exec_args_free(&args);
free_path:
    path_free(path);
    return error;
}

/* ---- ending ------------------------------------------------------------- */

/* Each resource becomes invisible to other tasks before it is released. */
void process_exit(int status)
{
    struct task *self = task_self();
    struct handle_table *handles = self->task_handles;
    struct inode *cwd = self->task_cwd;
    struct space *s = self->task_space;

    self->task_handles = NULL;
    handle_table_destroy(handles);
    ipc_task_exit(self);
    self->task_cwd = NULL;
    inode_put(cwd);
    enter_directory(self, paging_kernel_cr3());
    self->task_space = NULL;
    space_destroy(s);
    if (self->task_grant != NULL) {
        ipc_irq_drop(self);
        grant_drop(self);
    }
    task_exit(status);
}
