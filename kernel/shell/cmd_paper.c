/*
 * paper: the commands, the code and a test of each section of the slab paper,
 * from paper.txt.
 */
#include "drivers/console.h"
#include "kernel/lib/printf.h"
#include "kernel/shell/shell.h"
#include "kernel/shell/text.h"

extern const char __start_shell_paper[], __stop_shell_paper[];

static const struct text paper = {__start_shell_paper, __stop_shell_paper};

static void list_sections(void)
{
    struct text t = paper, line, number = {NULL, NULL};

    while (text_line(&t, &line)) {
        if (!text_empty(number)) {
            kprintf("%-6.*s", (int)(number.text_end - number.text_from),
                    number.text_from);
            text_print(line);
        }
        number = text_after(line, "= ");
    }
}

static int cmd_paper(char **argv)
{
    struct text section;

    if (!argv[1]) {
        list_sections();
        return 0;
    }
    section = text_section(paper, argv[1], NULL);
    if (text_empty(section)) {
        shell_error("no section %.32s; there are:", argv[1]);
        list_sections();
        return 1;
    }
    kprintf("%s ", argv[1]);
    text_print(section);
    return 0;
}

static void offer_sections(const struct shell_offer *o)
{
    struct text t = paper, line, number;
    char word[8];

    while (text_line(&t, &line)) {
        number = text_after(line, "= ");
        snprintf(word, sizeof(word), "%.*s",
                 (int)(number.text_end - number.text_from), number.text_from);
        shell_offer(o, word);
    }
}

SHELL_COMMAND(paper, cmd_paper, SHELL_REPORT);
SHELL_WORDS(SECTION, offer_sections);
