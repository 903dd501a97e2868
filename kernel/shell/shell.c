/*
 * The kernel shell: reads lines, finds commands, runs them.
 *
 * One shell serves both consoles. It allocates nothing, so that it works
 * after a panic; there it is entered again from the top, on polled consoles,
 * with its one line editor started afresh.
 */
#include "kernel/shell/shell.h"
#include "kernel/lib/line.h"
#include "kernel/shell/usage.h"
#include "kernel/shell/words.h"
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "drivers/pit.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/edit_distance.h"
#include "kernel/lib/option.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_task.h"
#include "kernel/shell/pager.h"
#include "kernel/x86/cpu.h"

#define PROMPT       "slate> "
#define PROMPT_PANIC "slate!> "
#define PANICS_MAX   8 /* failures inside the shell of a failed machine */

static const char self[] = "slate";
static const char *current = self; /* the command that runs */
bool shell_reporting;
static bool interrupted;   /* ^C was typed */
static struct form *given; /* the words of that command */

/* ---- shared by the commands --------------------------------------------- */

int shell_error(const char *fmt, ...)
{
    va_list ap;

    kprintf("%s: ", current);
    va_start(ap, fmt);
    kvprintf(fmt, ap);
    va_end(ap);
    kprintf("\n");
    return 1;
}

bool shell_may_change(void)
{
    if (shell_reporting)
        shell_error("a stopped machine only prints reports; type this at the "
                    "kernel's prompt");
    return !shell_reporting;
}

bool shell_interrupted(void)
{
    if (console_interrupt_pending())
        interrupted = true;
    return interrupted || pager_quit();
}

bool shell_option(char letter)
{
    return shell_value(letter) != NULL;
}

const char *shell_value(char letter)
{
    return usage_value(given, letter);
}

struct table shell_table(const struct column *columns)
{
    struct table t = {columns, print_console, NULL, shell_option('j'), NULL};

    table_begin(&t);
    return t;
}

int shell_print(const struct table_source *source)
{
    struct table t = shell_table(source->source_columns);
    size_t rows = 0;

    t.table_rows = &rows;
    source->source_rows(&t);
    if (rows == 0 && source->source_none && !t.table_json &&
        !shell_interrupted())
        kprintf("%s\n", source->source_none);
    return 0;
}

/* ---- commands ----------------------------------------------------------- */

const struct shell_command *shell_find(const char *name)
{
    for (const struct shell_command *c = __start_shell_commands;
         c < __stop_shell_commands; c++)
        if (strcmp(c->command_name, name) == 0)
            return c;
    return NULL;
}

bool shell_only_workshop(const char *name)
{
    const char *const *n = shell_workshop_commands;

    while (*n != NULL && strcmp(*n, name) != 0)
        n++;
    if (*n == NULL || shell_find(name) != NULL)
        return false;
    kprintf("%s: only the workshop kernel has this command; boot it with: "
            "make run WORKSHOP=1\n",
            name);
    return true;
}

static void offer_commands(const struct shell_offer *o)
{
    for (const struct shell_command *c = __start_shell_commands;
         c < __stop_shell_commands; c++)
        shell_offer(o, c->command_name);
}

SHELL_WORDS(COMMAND, offer_commands);

/* The command that was probably meant by `name`, or NULL: one that begins with
 * it, or the nearest. */
static const struct shell_command *nearest(const char *name)
{
    for (unsigned edits = name[0] == '\0'; edits <= edit_distance_most(name);
         edits++)
        for (const struct shell_command *c = __start_shell_commands;
             c < __stop_shell_commands; c++)
            if (edits == 0 ? strncmp(c->command_name, name, strlen(name)) == 0
                           : edit_distance_within(name, c->command_name, edits))
                return c;
    return NULL;
}

/* The command that other shells call `name`, or NULL. */
static const struct shell_command *synonym(const char *name)
{
    static const char *const words[][2] = {
        {"exit", "poweroff"},     {"quit", "poweroff"}, {"halt", "poweroff"},
        {"shutdown", "poweroff"}, {"man", "help"},      {"?", "help"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strcmp(name, words[i][0]) == 0)
            return shell_find(words[i][1]);
    return NULL;
}

int shell_unknown(const char *name)
{
    const struct shell_command *c = synonym(name);

    if (shell_only_workshop(name))
        return 1;
    if (!c && taskcmd_is_program(name))
        return shell_error("no command \"%.32s\"; it is a program: run %.32s, "
                           "or sh",
                           name, name);
    c = c ?: nearest(name);
    if (!c)
        return shell_error("no command \"%.32s\"; `help` lists them", name);
    return shell_error(
        "no command \"%.32s\"; did you mean %s? `help` lists all", name,
        c->command_name);
}

/* After an interrupted command: drops all keys up to the ^C, which were meant
 * for the state that the whole command would have left. */
static void end_interrupt(void)
{
    while (console_interrupt_pending())
        console_trykey();
    kprintf("^C\n");
}

static int run_words(char **argv)
{
    const struct shell_command *c = shell_find(argv[0]);
    struct form *outer_given = given;
    const char *outer = current;
    const struct shell_form *form;
    struct form words;
    int result = 1;

    if (!c)
        return shell_unknown(argv[0]);
    current = c->command_name;
    if (outer == self && !shell_reporting)
        debugcon_event("{\"event\":\"command\",\"name\":\"%s\",\"ms\":%u}",
                       c->command_name, (unsigned)timer_ms());
    given = &words;
    form = usage_take(c, argv, &words);
    if (form && (form->form_report || shell_may_change()))
        result = form->form_table ? shell_print(form->form_table)
                                  : form->form_run(argv);
    pager_report_ended();
    current = outer;
    given = outer_given;
    if (result != 0 && !shell_reporting)
        debugcon_event("{\"event\":\"status\",\"command\":\"%s\","
                       "\"status\":%d}",
                       c->command_name, result);
    return result;
}

int shell_execute(char *line)
{
    char *argv[SHELL_ARGS_MAX + 1];
    int result = 0;
    int argc;

    if (strlen(line) > SHELL_LINE_MAX)
        return shell_error("more than %d characters; nothing was run",
                           SHELL_LINE_MAX);
    switch (words_check(line)) {
    case WORDS_OK:
        break;
    case WORDS_QUOTE:
        return shell_error("a quote is not closed; nothing was run");
    case WORDS_SH:
        return shell_error("only programs have pipes and redirections, in "
                           "`sh`; nothing was run");
    case WORDS_MANY:
        return shell_error("more than %d words in a command; nothing was run",
                           SHELL_ARGS_MAX);
    }
    interrupted = false;
    while (line && !interrupted && !pager_quit()) {
        words_next(&line, &argc, argv);
        if (argc > 0)
            result = run_words(argv);
    }
    if (interrupted)
        end_interrupt();
    return result;
}

int shell_report(char *line)
{
    shell_reporting = true;
    current = self;
    return shell_execute(line);
}

/* ---- the loop ----------------------------------------------------------- */

static struct line editor = {
    .line_write = console_echo,
    .line_words = usage_complete,
};

/* Adds the final line to the ring that dmesg shows, without its editing. */
static void record_line(const char *prompt, const char *line)
{
    console_record(prompt, strlen(prompt));
    console_record(line, strlen(line));
    console_record("\n", 1);
}

/* Lets the user edit until there is a line worth running. */
static char *read_line(const char *prompt)
{
    for (;;) {
        enum line_result result = LINE_MORE;

        line_begin(&editor, prompt);
        console_report_wait("shell");
        while (result == LINE_MORE || result == LINE_EOF)
            result = line_key(&editor, console_getkey());
        if (result == LINE_TOO_LONG)
            shell_error("more than %d characters; nothing was run",
                        SHELL_LINE_MAX);
        if (result == LINE_DONE) {
            record_line(prompt, editor.line_text);
            return editor.line_text;
        }
    }
}

static const char *run; /* the value of run= */

static bool set_run(char *value)
{
    run = value;
    return true;
}

BOOT_OPTION(run, "run=", "run=COMMANDS",
            "shell commands run after boot: the rest of the line", set_run);

/* The commands of the kernel option run=, shown as if they were typed. */
static void run_option(void)
{
    char line[SHELL_LINE_MAX + 2]; /* one more: longer lines are refused */

    if (!run)
        return;
    strlcpy(line, run, sizeof(line));
    kprintf(PROMPT "%s\n", line);
    shell_execute(line);
}

extern uint64_t boot_tsc; /* boot/entry.asm */

static uint64_t prompt_tsc;

uint64_t shell_boot_instructions(void)
{
    return prompt_tsc - boot_tsc;
}

void shell_run(void)
{
    prompt_tsc = rdtsc();
    debugcon_event("{\"event\":\"prompt\",\"instructions\":%llu}",
                   shell_boot_instructions());
    hooks_run(HOOK_PROMPT, NULL);
    hooks_run(HOOK_PROMPT_TEST, NULL);
    run_option();
    for (;;) {
        char *line;

        taskcmd_reap();
        line = read_line(PROMPT);
        pager_begin();
        shell_execute(line);
        pager_end();
    }
}

/* The shell of a panicked machine, on polled consoles. A failure inside it
 * enters it again, on the same stack. */
static void inspect(const void *arg UNUSED)
{
    static unsigned depth;

    current = self;
    if (depth++ >= PANICS_MAX) {
        kprintf("Too many nested failures: halted.\n");
        console_drain();
        for (;;)
            cpu_halt();
    }
    kprintf("Only this shell still runs: `reboot` starts again.\n");
    pager_begin(); /* the user may have quit the pager before the panic */
    for (;;)
        shell_execute(read_line(PROMPT_PANIC));
}

HOOK(HOOK_INSPECT, inspect);
