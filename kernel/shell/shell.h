/*
 * The kernel shell: its commands, and functions that they share.
 *
 * A file per group of commands registers them with SHELL_COMMAND; the line
 * editor, `help` and completion find them through the linker section, so a
 * new command is one function and one table entry in one file.
 *
 *     static int cmd_uptime(int argc, char **argv) { … }
 *     SHELL_COMMAND(uptime, cmd_uptime, NULL);
 *
 * Its group, its usage and what `help` says of it are in help.txt.
 *
 * A command returns its status: 0, or 1 after shell_error() has printed its one
 * line; `verify` counts. It never allocates for its own output. Commands run
 * with interrupts on.
 */
#pragma once

#include "kernel/lib/line.h"
#include "kernel/lib/types.h"

#define SHELL_LINE_MAX LINE_MAX
#define SHELL_ARGS_MAX 16 /* words in a command, its name included */

/* Calls `add` for every word that could stand at this place. */
typedef void shell_complete_t(void (*add)(const char *word, void *arg),
                              void *arg);

struct shell_command {
    const char *command_name;
    int (*command_run)(int argc, char **argv);
    shell_complete_t *command_complete; /* for its arguments, or NULL */
};

extern const struct shell_command __start_shell_commands[];
extern const struct shell_command __stop_shell_commands[];

#define SHELL_COMMAND(id, run, complete)                                       \
    static const struct shell_command shell_command_##id                       \
        __attribute__((used, section("shell_commands"),                        \
                       aligned(sizeof(void *)))) = {#id, run, complete}

/* The names of the commands that only the workshop kernel has, then NULL: the
 * build finds them (tools/make/commands.py). */
extern const char *const shell_workshop_commands[];

/* If only the workshop kernel has a command of that name, says so: true. */
bool shell_only_workshop(const char *name);

/* Reads and runs commands for ever, on both consoles. */
void shell_run(void) __attribute__((noreturn));

/* Ticks of the time-stamp counter from the kernel's entry to shell_run(). */
uint64_t shell_boot_instructions(void);

/* The command called `name`, or NULL. */
const struct shell_command *shell_find(const char *name);

/* Runs one line: commands separated by `;`. Returns the last one's status. For
 * tools, each status that is not 0 is an event, too. `line` is changed. */
int shell_execute(char *line);

/* Prints "NAME: what is wrong; what would be right" on one line. Returns 1. */
int shell_error(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* True once ^C was typed on a console since the command began: long commands
 * ask and stop. */
bool shell_interrupted(void);

/* Options that begin with one dash and a letter, for commands that take no
 * more than that: removes them from argv and returns a mask with bit
 * (letter - 'a') set for each; on a letter that is not in `allowed` prints
 * the error and returns false. Words after `--` are arguments. */
bool shell_options(int *argc, char **argv, const char *allowed,
                   uint32_t *options);

#define SHELL_OPTION(c) (1u << ((c) - 'a'))

/* The same for commands whose options may have values: words_take() with the
 * error line. */
struct words_option;
bool shell_take(int *argc, char **argv, const struct words_option *options,
                size_t n);

/* Completes the names of slab caches. */
shell_complete_t shell_complete_cache;

/* Prints a text as a JSON string with its quotes. */
void shell_json_string(const char *s);
