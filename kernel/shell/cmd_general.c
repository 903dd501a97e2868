/*
 * The commands that have nothing to do with memory: help, the log, the clock,
 * power off and reset.
 */
#include "kernel/shell/shell.h"
#include "drivers/console.h"
#include "drivers/pit.h"
#include "drivers/power.h"
#include "drivers/rtc.h"
#include "kernel/lib/option.h"
#include "kernel/lib/string.h"
#include "kernel/shell/text.h"

static bool no_arguments(int argc, char **argv)
{
    if (argc == 1)
        return true;
    shell_error("takes no arguments; write `%s`", argv[0]);
    return false;
}

/* ---- help --------------------------------------------------------------- */

extern const char __start_shell_help[], __stop_shell_help[];

static const struct text help = {__start_shell_help, __stop_shell_help};

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

static void help_all(void)
{
    struct text t = help, line, title, name = {NULL, NULL};

    while (text_line(&t, &line)) {
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
}

static int help_one(const char *name)
{
    struct text section, usage, line;

    if (!shell_find(name))
        return shell_only_workshop(name)
                   ? 1
                   : shell_error("no command \"%.32s\"; `help` lists them",
                                 name);
    section = text_section(help, name, &usage);
    kprintf("usage: ");
    text_print(usage);
    kprintf("\n");
    text_line(&section, &line);
    text_print(line);
    kprintf("\n");
    text_print(section);
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

static int cmd_help(int argc, char **argv)
{
    if (argc > 2)
        return shell_error("takes one command at most; see `help help`");
    if (argc == 2 && strcmp(argv[1], "options") == 0)
        return help_options();
    if (argc == 2)
        return help_one(argv[1]);
    help_all();
    return 0;
}

static void complete_command(void (*add)(const char *word, void *arg),
                             void *arg)
{
    for (const struct shell_command *c = __start_shell_commands;
         c < __stop_shell_commands; c++)
        add(c->command_name, arg);
}

SHELL_COMMAND(help, cmd_help, complete_command);

/* ---- the log ------------------------------------------------------------ */

/* Shows the ring without recording, so that it does not change meanwhile. */
static int cmd_dmesg(int argc, char **argv)
{
    char text[256];
    size_t at = 0;
    size_t n;

    if (!no_arguments(argc, argv))
        return 1;
    while ((n = console_history(at, text, sizeof(text))) > 0) {
        if (shell_interrupted())
            break;
        console_echo(text, n);
        at += n;
    }
    return 0;
}

SHELL_COMMAND(dmesg, cmd_dmesg, NULL);

static int cmd_clear(int argc, char **argv)
{
    if (!no_arguments(argc, argv))
        return 1;
    console_clear();
    return 0;
}

SHELL_COMMAND(clear, cmd_clear, NULL);

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

static int cmd_terminal(int argc, char **argv)
{
    if (argc > 2 || (argc == 2 && !set_terminal(argv[1])))
        return shell_error("wants plain, vga or both");
    kprintf("%s\n", terminals[console_terminals()]);
    return 0;
}

SHELL_COMMAND(terminal, cmd_terminal, NULL);

static int cmd_echo(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (i > 1)
            console_putc(' ');
        console_write(argv[i], strlen(argv[i]));
    }
    console_putc('\n');
    return 0;
}

SHELL_COMMAND(echo, cmd_echo, NULL);

/* ---- time --------------------------------------------------------------- */

static int cmd_uptime(int argc, char **argv)
{
    uint64_t ms = timer_ms();
    uint32_t seconds = (uint32_t)(ms / 1000);
    struct rtc_time now;

    if (!no_arguments(argc, argv))
        return 1;
    kprintf("up %u:%02u:%02u.%02u", seconds / 3600, seconds / 60 % 60,
            seconds % 60, (uint32_t)(ms % 1000) / 10);
    if (rtc_now(seconds, &now))
        kprintf(", the clock says %u-%02u-%02u %02u:%02u:%02u", now.rtc_year,
                now.rtc_month, now.rtc_day, now.rtc_hour, now.rtc_minute,
                now.rtc_second);
    kprintf("\n");
    return 0;
}

SHELL_COMMAND(uptime, cmd_uptime, NULL);

/* ---- the rest ----------------------------------------------------------- */

static int cmd_reboot(int argc, char **argv)
{
    if (!no_arguments(argc, argv))
        return 1;
    power_reset();
}

SHELL_COMMAND(reboot, cmd_reboot, NULL);

static int cmd_poweroff(int argc, char **argv)
{
    if (!no_arguments(argc, argv))
        return 1;
    power_off();
}

SHELL_COMMAND(poweroff, cmd_poweroff, NULL);

static int cmd_about(int argc, char **argv)
{
    if (!no_arguments(argc, argv))
        return 1;
    kprintf("Slate, a teaching microkernel for 32-bit x86, built around the "
            "slab allocator of\nJeff Bonwick, \"The Slab Allocator: An "
            "Object-Caching Kernel Memory Allocator\",\nUSENIX Summer 1994. "
            "Free software under the MIT licence.\n"
            "Compiled by GCC " __VERSION__ ".\n");
    return 0;
}

SHELL_COMMAND(about, cmd_about, NULL);
