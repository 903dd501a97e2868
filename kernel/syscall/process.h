/*
 * Programs: a task with an address space, handles and a directory.
 */
#pragma once

#include "kernel/task/task.h"

struct file;
struct grant;
struct inode;

/* Sets up the way back to ring 3. Boot only. */
void process_init(void);

/* How a process begins that the kernel's shell or a test starts. */
struct process_start {
    const char *start_path;
    const char *const *start_argv; /* NULL-terminated, like the next */
    const char *const *start_envp; /* may be NULL */
    struct file *start_console;    /* becomes handles 0, 1 and 2 */
    struct grant *start_grant; /* NULL, or what it has: then the program is the
                                  grant's, and the path only gives the name */
    bool start_privileged;
    bool start_session; /* the same, but only the init that was there at boot */
};

/*
 * A new process as a child of the caller and in a group of its own. All that
 * *start has stays the caller's. Returns its pid, or what exec says: -ENOENT,
 * -ENOEXEC, -ENOMEM, -E2BIG …; -EBUSY: another task has the grant. May sleep.
 */
pid_t process_spawn(const struct process_start *start);

/* A copy of the process that calls. Its pid, or -ENOMEM. */
pid_t process_fork(void);

/* Ends the calling process: closes its handles, lets go of directory and
 * address space, then task_exit. */
void process_exit(int status) __attribute__((noreturn));

/* ---- exec (kernel/syscall/exec.c) --------------------------------------- */

/* Arguments and environment on their way from one program to the next: the
 * strings one behind the other, each with its NUL. */
struct exec_args {
    char *args_text; /* ARG_MAX bytes from kmem_alloc */
    uint32_t args_used;
    uint32_t args_argc;
    uint32_t args_envc;
};

/* Copies the strings; `user` says that the arrays lie in a program, whose
 * pointers are checked. 0, -E2BIG, -EFAULT, -ENOMEM. */
int exec_args_copy(struct exec_args *args, const char *const argv[],
                   const char *const envp[], bool user);

void exec_args_free(struct exec_args *args);

/* A space with the program loaded and its arguments on the stack; *entry and
 * *esp say how it starts. NULL and *error. May sleep. */
struct space *exec_load(struct inode *program, const struct exec_args *args,
                        uint32_t *entry, uint32_t *esp, int *error);

/* What ps shows for a program: the last name of its path. */
const char *exec_name(const char *path);
