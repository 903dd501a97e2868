/*
 * Texts in sections (kernel/shell/text.c).
 */
#include "kernel/lib/string.h"
#include "kernel/shell/shell.h"
#include "kernel/shell/text.h"
#include "tools/workshop/ktest/ktest.h"

static const char lines[] = "== Title\n= one\nfirst\n = not a mark\n= two\n"
                            "= three words more\nlast";
static const struct text all = {lines, lines + sizeof(lines) - 1};

static void expect(const char *name, const char *want, int at)
{
    if (!text_is(text_section(all, name, NULL), want))
        ktest_fail(__FILE__, at, "section %s is not \"%s\"", name, want);
}

KTEST(text, sections)
{
    expect("one", "first\n = not a mark\n", __LINE__);
    expect("two", "", __LINE__);
    expect("three", "last", __LINE__);
    expect("on", "", __LINE__);
    expect("Title", "", __LINE__);
    expect("four", "", __LINE__);
}

KTEST(text, lines_and_their_marks)
{
    struct text t = all, line;
    unsigned n = 0;

    while (text_line(&t, &line))
        n++;
    KT_EQ(n, 7);
    KT_TRUE(text_empty(t));
    KT_TRUE(text_is(text_section(all, "three", &line), "last"));
    KT_TRUE(text_is(line, "three words more"));
    KT_TRUE(text_is(text_word(line), "three"));
    KT_TRUE(text_empty(text_section(all, "four", &line)));
    KT_TRUE(text_empty(line));
    t = all;
    KT_REQUIRE(text_line(&t, &line));
    KT_TRUE(text_is(text_after(line, "== "), "Title"));
    KT_TRUE(text_empty(text_after(line, "= ")));
    KT_TRUE(text_empty(text_after(line, "== Title and more than it has")));
}

extern const char __start_shell_help[], __stop_shell_help[];

KTEST(text, help_has_each_command)
{
    const struct text help = {__start_shell_help, __stop_shell_help};
    const struct shell_command *c = __start_shell_commands;

    for (; c < __stop_shell_commands; c++)
        if (text_empty(text_section(help, c->command_name, NULL)))
            ktest_fail(__FILE__, __LINE__, "no help for %s", c->command_name);
}
