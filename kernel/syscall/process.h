/*
 * Programs: a task with an address space, handles and a directory.
 */
#pragma once

#include "kernel/task/task.h"

struct file;

/* Sets up the way back to ring 3. Boot only. */
void process_init(void);

/*
 * A new process running the program at `path` with the given arguments and
 * environment (NULL-terminated; envp may be NULL), as a child of the caller
 * and in a group of its own. `console` becomes handles 0, 1 and 2 (the
 * caller's reference stays his). Returns its pid, or what exec says: -ENOENT,
 * -ENOEXEC, -ENOMEM, -E2BIG … For the kernel's shell and tests. May sleep.
 */
pid_t process_spawn(const char *path, const char *const argv[],
                    const char *const envp[], struct file *console);

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

/* A space with the program at `path` loaded and its arguments on the stack;
 * *entry and *esp say how it starts. NULL and *error. May sleep. */
struct space *exec_load(const char *path, struct inode *cwd,
                        const struct exec_args *args, uint32_t *entry,
                        uint32_t *esp, int *error);

/* What ps shows for a program: the last name of its path. */
const char *exec_name(const char *path);
