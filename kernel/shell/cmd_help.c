/*
 * help: the commands, and texts about each of them, about sections of the slab
 * paper, and about the kernel's options.
 *
 * The texts are files (texts.asm): help.txt, to which the workshop kernel adds
 * tools/workshop/help.txt, and paper.txt. A text begins with a line "= NAME";
 * the line after it is for lists. "== TITLE" begins a group of commands.
 */
#include "drivers/console.h"
#include "kernel/lib/option.h"
#include "kernel/lib/string.h"
#include "kernel/shell/shell.h"
#include "kernel/shell/usage.h"

extern const char __start_shell_help[], __stop_shell_help[];

#define TEXT_NAME 16 /* of a text, NUL included */

static const char *line_after(const char *line)
{
    while (line < __stop_shell_help && *line++ != '\n')
        continue;
    return line;
}

static void help_print_line(const char *line)
{
    console_write(line, (size_t)(line_after(line) - line));
}

/* The name of the text that begins with this line. False: none does. */
static bool text_name(const char *line, char name[TEXT_NAME])
{
    size_t n = (size_t)(line_after(line) - line);

    if (strncmp(line, "= ", 2) != 0)
        return false;
    strlcpy(name, line + 2, MIN(n - 2, TEXT_NAME + 0u));
    return true;
}

/* The lines about a command or a section; NULL: there are none. */
static const char *text_about(const char *name)
{
    char found[TEXT_NAME];

    for (const char *line = __start_shell_help; line < __stop_shell_help;
         line = line_after(line))
        if (text_name(line, found) && strcmp(found, name) == 0)
            return line_after(line);
    return NULL;
}

static bool is_section(const char *name)
{
    return *name >= '0' && *name <= '9';
}

/* A line for each section of the paper, or each command of this kernel. */
static void help_list(bool paper)
{
    char name[TEXT_NAME];

    for (const char *line = __start_shell_help; line < __stop_shell_help;
         line = line_after(line))
        if (!paper && strncmp(line, "== ", 3) == 0) {
            kprintf("%.*s:\n", (int)(line_after(line) - line - 4), line + 3);
        } else if (text_name(line, name) &&
                   (paper ? is_section(name) : shell_find(name) != NULL)) {
            kprintf("  %-10s ", name);
            help_print_line(line_after(line));
        }
}

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

static void help_options(void)
{
    const struct boot_option *o = __start_boot_options;

    kprintf("options on the kernel's command line, `make run APPEND=...`\n");
    for (; o < __stop_boot_options; o++)
        kprintf("  %-24s %s\n", o->option_form, o->option_help);
}

static void help_print(const char *line)
{
    for (; line < __stop_shell_help && *line != '='; line = line_after(line))
        help_print_line(line);
}

static int help_command(const char *name)
{
    const struct shell_command *c = shell_find(name);
    const char *text = text_about(name);

    if (!c)
        return shell_unknown(name);
    usage_show(c);
    help_print_line(text);
    kprintf("\n");
    help_print(line_after(text));
    return 0;
}

static int help_section(const char *number)
{
    const char *text = text_about(number);

    if (!text)
        return shell_error("no section %.32s; `help paper` lists them", number);
    kprintf("%s ", number);
    help_print(text);
    return 0;
}

static int cmd_help(char **argv)
{
    const char *topic = argv[1];

    if (topic && strcmp(topic, "options") == 0) {
        help_options();
    } else if (topic && strcmp(topic, "paper") == 0) {
        help_list(true);
    } else if (topic) {
        return is_section(topic) ? help_section(topic) : help_command(topic);
    } else {
        help_list(false);
        kprintf("`help NAME` says more, `help paper` lists the sections of the "
                "slab paper.\n`;` separates commands, quotes keep blanks. Tab "
                "completes, Up brings lines\nback, ^C stops a command.\n");
        help_workshop();
    }
    return 0;
}

SHELL_COMMAND(help,
              {"[COMMAND|SECTION|options|paper]", cmd_help, SHELL_REPORT});
