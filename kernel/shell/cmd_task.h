/*
 * What the commands about tasks share: arguments that name a task, names of
 * signals, stacks of tasks that do not run.
 *
 * The commands are in the files beside this one:
 *
 *     cmd_task.c    ps kill files         cmd_run.c    run sh continue
 *     cmd_ipc.c     ports ipc             cmd_fs.c     inodes pipes
 *     cmd_servers.c servers irqs
 *
 * None of them allocates, but `run`, which starts a program.
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
 * printed, if it is gone, or runs just now. */
bool taskcmd_print_stack(pid_t pid);

/* Completes pids. */
shell_complete_t taskcmd_complete;

/* Takes in the children of the shell that have ended, with a line about each:
 * what the shell does before it prompts. */
void taskcmd_reap(void);

/* Whether there is such a program. False after an error line. */
bool taskcmd_exists(const char *name);

/* The same without an error line. */
bool taskcmd_is_program(const char *name);

/* Runs a program with the console, as `run` does. argv ends with NULL. */
int taskcmd_run(char **argv);

/* The same with a server of the manifest, as `run -s` does. */
int taskcmd_run_server(char **argv);
