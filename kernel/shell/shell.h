/*
 * The kernel shell: its commands, and functions that they share.
 *
 * A file per group of commands registers them with SHELL_COMMAND; the line
 * editor, `help` and completion find them through the linker section, so a
 * new command is one function and one table entry in one file.
 *
 *     static int cmd_bt(char **argv) { … }
 *     SHELL_COMMAND(bt, {"[TASK]", cmd_bt, SHELL_ACTION});
 *
 * A command has one or more forms. Each has a usage, which is the grammar of
 * its words (usage.h), and a function or a table. The command's group and help
 * text are in help.txt.
 *
 * A function gets only words that fit its form. It returns its status: 0, or 1
 * after shell_error() has printed its one line; `verify` counts. It never
 * allocates for its own output. Commands run with interrupts on.
 */
#pragma once

#include "kernel/lib/line.h"
#include "kernel/lib/table.h"

#define SHELL_LINE_MAX LINE_MAX
#define SHELL_ARGS_MAX 16 /* words in a command, its name included */

struct shell_form {
    const char *form_usage;       /* the words after the command's name */
    int (*form_run)(char **argv); /* argv ends with NULL */
    bool form_report;
    const struct table_source *form_table; /* printed; NULL: form_run */
};

struct shell_command {
    const char *command_name;
    const struct shell_form *command_forms; /* the last one is zeroed */
};

extern const struct shell_command __start_shell_commands[];
extern const struct shell_command __stop_shell_commands[];

/* Whether a form may run in a stopped machine (report.h): a report changes
 * nothing for good, or calls shell_may_change first. */
#define SHELL_REPORT .form_report = true
#define SHELL_ACTION .form_report = false

#define SHELL_COMMAND(id, ...)                                                 \
    static const struct shell_command shell_command_##id __attribute__((       \
        used, section("shell_commands"), aligned(sizeof(void *)))) = {         \
        #id, (const struct shell_form[]){__VA_ARGS__, {0}}}

/* Where completion wants the words of a kind. */
struct shell_offer {
    const char *offer_typed;  /* of the word, after its fixed characters */
    const char *offer_before; /* its fixed characters, as the + of +MODES */
    size_t offer_fixed;       /* how many */
    line_add_t *offer_add;
    void *offer_arg;
};

/* Offers a word; those that do not begin with what is typed are dropped. */
void shell_offer(const struct shell_offer *o, const char *word);

/* A kind of words that usages name, as CACHE; those of most kinds, as N,
 * cannot be listed. */
struct shell_kind {
    const char *kind_name;
    void (*kind_words)(const struct shell_offer *o);
};

extern const struct shell_kind __start_shell_kinds[];
extern const struct shell_kind __stop_shell_kinds[];

#define SHELL_WORDS(id, words)                                                 \
    static const struct shell_kind shell_kind_##id __attribute__((             \
        used, section("shell_kinds"), aligned(sizeof(void *)))) = {#id, words}

/* The names of the commands that only the workshop kernel has, then NULL: the
 * build finds them (tools/make/commands.py). */
extern const char *const shell_workshop_commands[];

/* If only the workshop kernel has a command of that name, says so: true. */
bool shell_only_workshop(const char *name);

/* Says that no command has that name, and which was perhaps meant: 1. */
int shell_unknown(const char *name);

/* Reads and runs commands for ever, on both consoles. */
void shell_run(void) __attribute__((noreturn));

/* Ticks of the time-stamp counter from the kernel's entry to shell_run(). */
uint64_t shell_boot_instructions(void);

/* The command called `name`, or NULL. */
const struct shell_command *shell_find(const char *name);

/* Runs one line: commands separated by `;`. Returns the last one's status. For
 * tools, each status that is not 0 is an event, too. `line` is changed. */
int shell_execute(char *line);

/* The same for a debugger, in a stopped machine (report.h). */
int shell_report(char *line);

/* Whether it is a debugger that has called the command. */
extern bool shell_reporting;

/* False after an error line: then only reports are run. */
bool shell_may_change(void);

/* Prints "NAME: what is wrong; what would be right" on one line. Returns 1. */
int shell_error(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* The ending of a noun after a number of things. */
static inline const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* True once ^C was typed on a console since the command began: long commands
 * ask and stop. */
bool shell_interrupted(void);

/* Whether the command that runs was given an option of its usage; and its
 * value: "" if it takes none, NULL without the option. */
bool shell_option(char letter);
const char *shell_value(char letter);

/* A table on the console, or JSON lines if the command was given -j. Prints its
 * heads. */
struct table shell_table(const struct column *columns);

/* Prints a whole table. Returns 0. */
int shell_print(const struct table_source *source);
