/*
 * Processes: a task with an address space, handles and a directory.
 */
#pragma once

#include "kernel/task/task.h"

struct file;
struct grant;
struct inode;

/* A process to be started by the kernel shell or a test. */
struct process_start {
    const char *start_path;
    const char *const *start_argv; /* NULL-terminated, like the next */
    const char *const *start_envp; /* may be NULL */
    struct file *start_console;    /* becomes handles 0, 1 and 2 */
    struct grant *start_grant;     /* its grant, or NULL. With a grant, the
                                  program is the grant's and the path gives
                                  only the name */
    bool start_privileged;
    bool start_init; /* privileged if the program is the init of boot time */
};

/*
 * Starts a process as a child of the caller and in a group of its own. The
 * contents of *start stay the caller's. Returns its pid, or an error of exec:
 * -ENOENT, -ENOEXEC, -ENOMEM, -E2BIG …; -EBUSY: another task has the grant. May
 * sleep.
 */
pid_t process_spawn(const struct process_start *start);

/* Forks the calling process. Returns the pid, -ENOMEM, or -EAGAIN: its session
 * has as many tasks as it may have. */
pid_t process_fork(void);

/* Ends the calling process: closes its handles, releases directory and address
 * space, then calls task_exit. */
void process_exit(int status) __attribute__((noreturn));

/* ---- exec (kernel/syscall/exec.c) --------------------------------------- */

/* Arguments and environment of the next program: consecutive strings, each with
 * its NUL. */
struct exec_args {
    char *args_text; /* ARG_MAX bytes from kmem_alloc */
    uint32_t args_used;
    uint32_t args_argc;
    uint32_t args_envc;
};

/* Copies the strings. `user`: the arrays are in the program's memory, and its
 * pointers are checked. 0, -E2BIG, -EFAULT, -ENOMEM. */
int exec_args_copy(struct exec_args *args, const char *const argv[],
                   const char *const envp[], bool user);
void exec_args_free(struct exec_args *args);

/* Returns a space with the program loaded and its arguments on the stack,
 * charged to `session`; *entry and *esp are its start. NULL and *error. May
 * sleep. */
struct space *exec_load(struct inode *program, const struct exec_args *args,
                        struct session *session, uint32_t *entry, uint32_t *esp,
                        int *error);

/* A program's name for ps: the last component of its path. */
const char *exec_name(const char *path);
