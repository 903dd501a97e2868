/*
 * Programs: a task with an address space, handles and a directory.
 */
#pragma once

#include "kernel/task/task.h"

struct file;

/*
 * A new process running the program at `path` with the given arguments
 * (NULL-terminated; NULL for an empty environment), as a child of the caller
 * and in a group of its own. `console` becomes handles 0, 1 and 2 (the caller's
 * reference stays his). Returns its pid, or what exec says: -ENOENT, -ENOEXEC,
 * -ENOMEM, -E2BIG … For the kernel's shell and tests. May sleep.
 */
pid_t process_spawn(const char *path, const char *const argv[],
                    const char *const envp[], struct file *console);

/* Ends the calling process: closes its handles, lets go of directory and
 * address space, then task_exit. Kernel tasks: the same without those. */
void process_exit(int status) __attribute__((noreturn));
