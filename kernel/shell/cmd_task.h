/*
 * Shared by the commands about tasks: arguments that name a task, names of
 * signals, stacks of tasks that do not run.
 *
 * The commands are in the files beside this one:
 *
 *     cmd_task.c    ps kill files         cmd_run.c    run sh continue
 *     cmd_ipc.c     ports                 cmd_fs.c     inodes pipes
 *     cmd_servers.c servers irqs
 *
 * Of these only `run` allocates, because it starts a program.
 */
#pragma once

#include "kernel/shell/shell.h"
#include "kernel/task/task.h"

/* False after an error line: the machine has panicked, and a command that
 * starts, ends or waits for anything cannot work. */
bool taskcmd_alive(void);

/* The snapshot of the task whose pid `word` is. False after an error line. */
bool taskcmd_stat(const char *word, struct task_stat *out);

/* "SEGV", or NULL if the signal has no name. */
const char *taskcmd_signal(int signal);

/* Prints the chain of callers on the kernel stack of a task. False, and nothing
 * printed, if it has ended or is running. */
bool taskcmd_print_stack(pid_t pid);

/* Waits for the children of the shell that have ended, and prints a line about
 * each. Called before each prompt. */
void taskcmd_reap(void);

/* Whether there is such a program, and it can be started. */
bool taskcmd_is_program(const char *name);

/* Runs a program with the console, as `run` does. argv ends with NULL. */
int taskcmd_run(char **argv);

/* The same with a server of the manifest, as `run -s` does. */
int taskcmd_run_server(char **argv);
