/*
 * The commands that have nothing to do with memory: help, the log, the clock,
 * power off and reset.
 */
#include "kernel/shell/shell.h"
#include "drivers/console.h"
#include "drivers/pit.h"
#include "drivers/power.h"
#include "kernel/lib/option.h"
#include "kernel/lib/string.h"
#include "kernel/shell/usage.h"

/* ---- help --------------------------------------------------------------- */

/* Lists the commands that only the workshop kernel has. */
static void help_workshop(void)
{
    size_t column = 0; /* 0: none was printed */

    for (const char *const *name = shell_workshop_commands; *name; name++) {
        if (shell_find(*name))
            continue;
        if (column == 0)
            kprintf("\nOnly in the workshop kernel (make run WORKSHOP=1):");
        if (column == 0 || column + 1 + strlen(*name) > LINE_COLUMNS) {
            kprintf("\n ");
            column = 1;
        }
        kprintf(" %s", *name);
        column += 1 + strlen(*name);
    }
    if (column)
        kprintf("\n");
}

/* Prints a line of the list, if this kernel has the command. */
static void help_line(struct text name, struct text what)
{
    const struct shell_command *c = __start_shell_commands;

    for (; c < __stop_shell_commands; c++)
        if (text_is(name, c->command_name)) {
            kprintf("  %-10s ", c->command_name);
            text_print(what);
        }
}

static int help_all(void)
{
    struct text t = usage_help, line, title, name = {NULL, NULL};

    while (text_line(&t, &line)) {
        if (*line.text_from == '|')
            continue;
        title = text_after(line, "== ");
        if (!text_empty(title)) {
            text_print(title);
            kprintf(":\n");
        }
        help_line(name, line);
        name = text_word(text_after(line, "= "));
    }
    kprintf("`help NAME` says more. `;` separates commands, quotes keep "
            "blanks.\nTab completes, Up brings lines back, ^C stops a "
            "command.\n");
    help_workshop();
    return 0;
}

static int help_one(char *name)
{
    char *words[] = {name, NULL};
    struct text section, form, line;

    if (!shell_find(name))
        return shell_only_workshop(name)
                   ? 1
                   : shell_error("no command \"%.32s\"; `help` lists them",
                                 name);
    section = text_section(usage_help, name, &form);
    usage_show(1, words, NULL);
    while (!text_empty(form))
        form = usage_next_form(&section);
    if (text_line(&section, &line)) {
        text_print(line);
        kprintf("\n");
        text_print(section);
    }
    return 0;
}

static int help_options(void)
{
    const struct boot_option *o = __start_boot_options;

    kprintf("options on the kernel's command line, `make run APPEND=...`\n");
    for (; o < __stop_boot_options; o++)
        kprintf("  %-24s %s\n", o->option_form, o->option_help);
    return 0;
}

static int cmd_help(char **argv)
{
    if (!argv[1])
        return help_all();
    if (strcmp(argv[1], "options") == 0)
        return help_options();
    return help_one(argv[1]);
}

SHELL_COMMAND(help, cmd_help, SHELL_REPORT);

/* ---- the log ------------------------------------------------------------ */

/* Shows the ring without recording, so that it does not change meanwhile. */
static int cmd_dmesg(char **argv)
{
    char text[256];
    size_t at = 0;
    size_t n;

    (void)argv;
    while ((n = console_history(at, text, sizeof(text))) > 0) {
        if (shell_interrupted())
            break;
        console_echo(text, n);
        at += n;
    }
    return 0;
}

SHELL_COMMAND(dmesg, cmd_dmesg);

static int cmd_clear(char **argv)
{
    (void)argv;
    console_clear();
    return 0;
}

SHELL_COMMAND(clear, cmd_clear);

static const char *const terminals[] = {
    [CONSOLE_NO_TERMINAL] = "plain",
    [CONSOLE_VGA] = "vga",
    [CONSOLE_VGA_AND_SERIAL] = "both",
};

static bool set_terminal(char *value)
{
    for (size_t i = 0; i < ARRAY_SIZE(terminals); i++)
        if (strcmp(value, terminals[i]) == 0) {
            console_set_terminals(i);
            return true;
        }
    return false;
}

BOOT_OPTION(terminal, "terminal=", "terminal=plain|vga|both",
            "which outputs have colours and stop at a page", set_terminal);

static int cmd_terminal(char **argv)
{
    if (argv[1])
        set_terminal(argv[1]);
    kprintf("%s\n", terminals[console_terminals()]);
    return 0;
}

SHELL_COMMAND(terminal, cmd_terminal);

static int cmd_echo(char **argv)
{
    while (*++argv) {
        console_write(*argv, strlen(*argv));
        if (argv[1])
            console_putc(' ');
    }
    console_putc('\n');
    return 0;
}

SHELL_COMMAND(echo, cmd_echo, SHELL_REPORT);

/* ---- time --------------------------------------------------------------- */

static int cmd_uptime(char **argv)
{
    uint64_t ms = timer_ms();
    uint32_t seconds = (uint32_t)(ms / 1000);

    (void)argv;
    kprintf("up %u:%02u:%02u.%02u\n", seconds / 3600, seconds / 60 % 60,
            seconds % 60, (uint32_t)(ms % 1000) / 10);
    return 0;
}

SHELL_COMMAND(uptime, cmd_uptime, SHELL_REPORT);

/* ---- the rest ----------------------------------------------------------- */

static int cmd_reboot(char **argv)
{
    (void)argv;
    power_reset();
}

SHELL_COMMAND(reboot, cmd_reboot);

static int cmd_poweroff(char **argv)
{
    (void)argv;
    power_off();
}

SHELL_COMMAND(poweroff, cmd_poweroff);

static int cmd_about(char **argv)
{
    (void)argv;
    kprintf("Slate, a teaching microkernel for 32-bit x86, built around the "
            "slab allocator of\nJeff Bonwick, \"The Slab Allocator: An "
            "Object-Caching Kernel Memory Allocator\",\nUSENIX Summer 1994. "
            "Free software under the MIT licence.\n"
            "Compiled by GCC " __VERSION__ ".\n");
    return 0;
}

SHELL_COMMAND(about, cmd_about, SHELL_REPORT);
