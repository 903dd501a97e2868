/*
 * The shell: declarations shared by its files.
 *
 *     main.c     the source of lines: console, file, -c, a pipe
 *     edit.c     a line from the console, with history and completion
 *     parse.c    text -> struct list, or one error and nothing is run
 *     expand.c   words: variables, quotes, patterns -> arguments
 *     vars.c     variables and the environment
 *     run.c      pipelines, redirections, processes
 *     suggest.c  the likely meaning of an unknown command
 *     builtin.c  commands that must run in the shell itself
 *     arena.c    memory for all of these
 *
 * A line is read, parsed as a whole, run, and its memory freed.
 */
#pragma once

#include "kernel/lib/line.h"
#include "user/lib/unistd.h"

#define LINE_MAX_BYTES 4096 /* of a line, with its NUL */

/* ---- parsed lines ------------------------------------------------------- */

enum redirect_kind {
    REDIRECT_READ,   /* < */
    REDIRECT_WRITE,  /* > */
    REDIRECT_APPEND, /* >> */
    REDIRECT_DUP,    /* >& and <&: the target is a handle's number */
};

struct redirect {
    struct redirect *redirect_next;
    enum redirect_kind redirect_kind;
    int redirect_handle;
    const char *redirect_target; /* a word */
};

/* Words as typed, including quotes. */
struct word {
    struct word *word_next;
    char word_text[];
};

struct command {
    struct command *command_next; /* that reads its output */
    struct word *command_assigns; /* NAME=value before it */
    struct word *command_words;
    struct redirect *command_redirects;
};

enum join {
    JOIN_ALWAYS, /* the first of its list */
    JOIN_AND,    /* runs if the one before succeeded */
    JOIN_OR,     /* runs if it failed */
};

struct pipeline {
    struct pipeline *pipeline_next;
    enum join pipeline_join;
    struct command *pipeline_commands;
};

struct list {
    struct list *list_next;
    struct pipeline *list_pipelines;
    bool list_background;
};

/* Parses a line; NULL for an empty one. On an error NULL and *error, one line
 * of text. */
struct list *parse_line(const char *line, const char **error);

/* ---- memory ------------------------------------------------------------- */

/* Allocates from the arena; NULL and E2BIG: full. Valid until an earlier mark
 * is released. */
void *arena_alloc(size_t size);
char *arena_string(const char *s, size_t n);
size_t arena_mark(void);
void arena_release(size_t mark);

/* Builds a string at the end of the arena, where nothing else may be allocated
 * meanwhile; arena_finish adds a NUL. False, and NULL and E2BIG: full. */
bool arena_put(char c);
char *arena_finish(void);

/* ---- expansion ---------------------------------------------------------- */

/* The arguments that the words expand to, with NULL at the end; their number in
 * *argc. NULL after a message: too long, or a pattern's directory cannot be
 * read. */
char **expand_words(const struct word *words, int *argc);

/* The same for a single word: a redirection's target, a value. */
char *expand_word(const char *text);

/* A list that grows at its end. */
struct field {
    struct field *field_next;
    const char *field_text;
};

struct fields {
    struct field **fields_end;
    int fields_count;
};

/* Adds one; false: the arena is full. */
bool fields_add(struct fields *f, const char *text);

/* Of patterns (kernel/lib/string.h). glob_plain removes the `\`; glob adds the
 * paths that match, in order, and returns their number, or -1 and errno: a
 * directory cannot be read, or the arena is full (E2BIG). */
void glob_plain(char *pattern);
int glob(char *pattern, struct fields *f);

/* ---- variables ---------------------------------------------------------- */

/* Takes over the environment. */
void vars_init(char **environment);

/* The value, or NULL. */
const char *var_get(const char *name);

enum var_use {
    VAR_SHELL,
    VAR_EXPORT,  /* for programs, too */
    VAR_COMMAND, /* until vars_end_command; hides a variable of that name */
};

/* Sets a variable from "NAME=value". False: no memory, after a message. */
bool var_set(const char *assignment, enum var_use use);
void vars_end_command(void);
void var_unset(const char *name);

/* Exports a variable; creates it, empty, if it does not exist. False after a
 * message. */
bool var_export(const char *name);

/* The environment for programs: in the arena; NULL: full. */
char **vars_environment(void);

/* Calls fn for each exported variable, "NAME=value". */
void vars_each(void (*fn)(const char *text));

/* The length of the name at the start of `s`. */
size_t name_length(const char *s);
bool is_assignment(const char *word);

/* ---- running ------------------------------------------------------------ */

struct shell {
    int shell_status;       /* $? */
    pid_t shell_background; /* $!, 0: none yet */
    int shell_ended;        /* its status, if a prompt has reported it */
    bool shell_interactive; /* reads from a console and manages groups */
    bool shell_exit;        /* `exit` was called */
    const char *shell_name; /* $0 */
    char **shell_args;      /* $1 … */
    int shell_argc;
};

extern struct shell shell;

/* Parses and runs a line; errors are reported with `where` (may be NULL).
 * False: a syntax error. */
bool run_line(const char *line, const char *where);

#define NOT_FOUND 127 /* the status: no such command, no such child */

/* Waits for `pid`, or all children if that is -1. Returns the status as in $?,
 * also of $! if a prompt has reported it. */
int run_wait(pid_t pid);

/* The status as in $?: 128 + signal for a killed child. */
int run_status(int status);

/* Gives the console to a group, if the shell manages groups. */
void run_foreground(pid_t group);

/* Prints "sh: what" on stderr in one write. Returns `status`. */
int complain(int status, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- built-in commands -------------------------------------------------- */

struct builtin {
    const char *builtin_name;
    const char *builtin_usage;
    const char *builtin_help;
    int (*builtin_run)(int argc, char **argv);
};

extern const struct builtin builtins[]; /* ended by a NULL name */

const struct builtin *builtin_find(const char *name);

/* ---- suggest.c ---------------------------------------------------------- */

/* Finds the command probably meant by `name`, which is not a command. */
bool suggest(const char *name, char out[NAME_MAX + 1]);

/* ---- the console -------------------------------------------------------- */

/* Reads a line into `buf` (LINE_MAX_BYTES). Returns its length, or -1 at the
 * end. A cancelled line is empty. */
int edit_line(const char *prompt, char *buf);

/* Calls add(name, arg) for each command: the built-in ones, then those of PATH.
 */
void add_commands(line_add_t *add, void *arg);

/* The n-th line of the history, from 0; NULL after the last. */
const char *edit_history(unsigned n);
