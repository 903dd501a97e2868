/*
 * The commands that have nothing to do with memory: the log, power off and
 * reset.
 */
#include "kernel/shell/shell.h"
#include "drivers/console.h"
#include "drivers/power.h"
#include "kernel/lib/option.h"
#include "kernel/lib/string.h"
#include "kernel/shell/pager.h"

/* ---- the log ------------------------------------------------------------ */

/* Shows the ring without recording, so that it does not change meanwhile. */
static int cmd_dmesg(char **argv)
{
    char text[256];
    uint32_t at = 0;
    size_t n;

    (void)argv;
    while (!shell_interrupted() &&
           (n = console_history(&at, text, sizeof(text))) > 0)
        pager_echo(text, n);
    return 0;
}

SHELL_COMMAND(dmesg, {"", cmd_dmesg, SHELL_REPORT});

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

SHELL_COMMAND(echo, {"[WORD ...]", cmd_echo, SHELL_REPORT});

/* ---- the rest ----------------------------------------------------------- */

static int cmd_reboot(char **argv)
{
    (void)argv;
    power_reset();
}

SHELL_COMMAND(reboot, {"", cmd_reboot, SHELL_ACTION});

static int cmd_poweroff(char **argv)
{
    (void)argv;
    power_off();
}

SHELL_COMMAND(poweroff, {"", cmd_poweroff, SHELL_ACTION});
