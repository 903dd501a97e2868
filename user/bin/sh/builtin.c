/*
 * Commands that change or need the shell's own state, and so run inside it.
 */
#include "user/bin/sh/sh.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

/* ---- directories -------------------------------------------------------- */

static int cmd_cd(int argc, char **argv)
{
    const char *to = argc > 1 ? argv[1] : var_get("HOME");

    if (argc > 2)
        return complain(2, "usage: cd [DIRECTORY]");
    if (to == NULL)
        to = "/";
    if (chdir(to) < 0)
        return complain(1, "cd: %s: %s", to, strerror(errno));
    return 0;
}

static int cmd_pwd(int argc, char **argv)
{
    char path[PATH_MAX];

    (void)argc, (void)argv;
    if (getcwd(path, sizeof(path)) < 0)
        return complain(1, "pwd: %s", strerror(errno));
    putname(path);
    putchar('\n');
    return 0;
}

/* ---- processes ---------------------------------------------------------- */

/* The number that is all of `s`, or -1. */
static long number(const char *s)
{
    char *end;
    long value = strtol(s, &end, 10);

    return *s != 0 && *end == 0 ? value : -1;
}

static int cmd_exit(int argc, char **argv)
{
    long status = argc > 1 ? number(argv[1]) : shell.shell_status;

    if (argc > 2 || status < 0)
        return complain(2, "usage: exit [STATUS]");
    shell.shell_exit = true;
    return (int)(status & 0xff);
}

static int cmd_wait(int argc, char **argv)
{
    int status = 0;

    if (argc == 1) {
        run_wait(-1);
        return 0;
    }
    for (int i = 1; i < argc; i++) {
        long pid = number(argv[i]);

        if (pid <= 0)
            return complain(2, "usage: wait [PID ...]");
        status = run_wait((pid_t)pid);
    }
    return status;
}

/* ---- variables ---------------------------------------------------------- */

static void print_export(const char *text)
{
    fputs("export ", stdout);
    putname(text);
    putchar('\n');
}

static int cmd_export(int argc, char **argv)
{
    if (argc == 1)
        vars_each(print_export);
    for (int i = 1; i < argc; i++) {
        size_t n = name_length(argv[i]);

        if (n == 0 || (argv[i][n] != 0 && argv[i][n] != '='))
            return complain(1, "export: %s: not a name", argv[i]);
        if (argv[i][n] == '=' ? !var_set(argv[i], VAR_EXPORT)
                              : !var_export(argv[i]))
            return 1;
    }
    return 0;
}

static int cmd_unset(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        size_t n = name_length(argv[i]);

        if (n == 0 || argv[i][n] != 0)
            return complain(1, "unset: %s: not a name", argv[i]);
        var_unset(argv[i]);
    }
    return 0;
}

/* ---- help --------------------------------------------------------------- */

static int cmd_history(int argc, char **argv)
{
    const char *line;

    (void)argc, (void)argv;
    for (unsigned i = 0; (line = edit_history(i)) != NULL; i++)
        printf("%4u  %s\n", i + 1, line);
    return 0;
}

static const char syntax[] =
    "a | b      output of a to b          a && b  b if a succeeded\n"
    "a ; b      one after the other       a || b  b if a failed\n"
    "a &        in the background         < file  input from it\n"
    "> file     output to it              >> file output to its end\n"
    "2> file    errors to it              2>&1    errors to the output\n"
    "'a' \"b\" \\c quotes; $X works in \"\"   *, ?, [a-z]  matching names\n"
    "X=1        a variable                # text  a comment\n"
    "$X $? $$ $! $1   its value, last status, shell's pid, last & pid, word\n"
    "There are no loops, and no conditions but && and ||.\n"
    "Programs are in /bin: ls /bin.\n";

static int cmd_help(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (const struct builtin *b = builtins; b->builtin_name != NULL; b++)
        printf("%-24s %s\n", b->builtin_usage, b->builtin_help);
    putchar('\n');
    fputs(syntax, stdout);
    return 0;
}

/* ---- the table ---------------------------------------------------------- */

const struct builtin builtins[] = {
    {"cd", "cd [DIRECTORY]", "changes to a directory, by default $HOME or /",
     cmd_cd},
    {"exit", "exit [STATUS]", "ends the shell", cmd_exit},
    {"export", "export [NAME[=VALUE] ...]", "exports variables to programs",
     cmd_export},
    {"help", "help", "this list", cmd_help},
    {"history", "history", "previous lines", cmd_history},
    {"pwd", "pwd", "prints the current directory", cmd_pwd},
    {"unset", "unset NAME ...", "removes variables", cmd_unset},
    {"wait", "wait [PID ...]",
     "waits for background commands; only Ctrl-\\ leaves it", cmd_wait},
    {NULL, NULL, NULL, NULL},
};

const struct builtin *builtin_find(const char *name)
{
    for (const struct builtin *b = builtins; b->builtin_name != NULL; b++)
        if (strcmp(b->builtin_name, name) == 0)
            return b;
    return NULL;
}
