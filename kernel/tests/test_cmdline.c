/*
 * The kernel's command line (kernel/cmdline.c), read into a table of this
 * file's: nothing here changes the machine that runs it.
 */
#include "kernel/cmdline.h"
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/string.h"
#include "kernel/x86/panic.h"

static char line[128];
static char size[32];
static char commands[64];
static unsigned sets;

static bool set_size(char *value)
{
    uint32_t n;

    sets++;
    strlcpy(size, value, sizeof(size));
    return parse_u32(value, &n);
}

static bool set_commands(char *value)
{
    sets++;
    strlcpy(commands, value, sizeof(commands));
    return true;
}

static const struct boot_option table[] = {
    {"size=", "size=N", "", set_size},
    {"run=", "run=COMMANDS", "", set_commands},
};

static unsigned read_line(const char *text)
{
    sets = 0;
    size[0] = '\0';
    commands[0] = '\0';
    strlcpy(line, text, sizeof(line));
    return cmdline_read(line, table, ARRAY_SIZE(table));
}

static void expect(const char *text, unsigned ignored, const char *want_size,
                   const char *want_commands)
{
    unsigned got = read_line(text);

    if (got != ignored || strcmp(size, want_size) != 0 ||
        strcmp(commands, want_commands) != 0)
        KT_FAIL("\"%s\": %u ignored, size \"%s\", run \"%s\"; want %u, \"%s\", "
                "\"%s\"",
                text, got, size, commands, ignored, want_size, want_commands);
}

KTEST(cmdline, empty)
{
    expect("", 0, "", "");
    expect("    ", 0, "", "");
    KT_EQ(sets, 0);
}

KTEST(cmdline, words)
{
    expect("size=7", 0, "7", "");
    expect("  size=7   size=8  ", 0, "8", "");
    KT_EQ(sets, 2);
}

KTEST(cmdline, run_takes_the_rest)
{
    expect("size=7 run=meminfo; size=8 x", 0, "7", "meminfo; size=8 x");
    expect("run=", 0, "", "");
    KT_EQ(sets, 1);
}

KTEST(cmdline, quotes_around_run_are_dropped)
{
    expect("run=\"a; b\"", 0, "", "a; b");
    expect("run='a; b'  ", 0, "", "a; b");
    expect("run='panic \"x\"'", 0, "", "panic \"x\"");
    expect("run=\"a", 0, "", "\"a");
    expect("run=\"a'", 0, "", "\"a'");
    expect("run=\"", 0, "", "\"");
    expect("run=\"\"", 0, "", "");
}

KTEST(cmdline, words_in_quotes)
{
    expect("/boot/slate.elf \"run=a; b\" size=7", 0, "7", "a; b");
    expect("'run=a b'", 0, "", "a b");
    expect("\"run=say \\\"a\\\" \\\\\" size=7", 0, "7", "say \"a\" \\");
    expect("\"size=7\"size=8", 0, "8", "");
    expect("\"run=a b", 0, "", "a b");
    expect("\"size=7\\", 1, "7\\", "");
    expect("\"", 1, "", "");
}

KTEST(cmdline, unknown_words_are_reported)
{
    expect("colour=red size=7", 1, "7", "");
    expect("size=7 colour", 1, "7", "");
    expect("siz=7 size", 2, "", "");
}

KTEST(cmdline, wrong_values_are_reported)
{
    expect("size=much run=x", 1, "much", "x");
    expect("size=", 1, "", "");
}

KTEST(cmdline, file_name_may_come_first)
{
    expect("/boot/slate.elf size=7", 0, "7", "");
    expect("slate.elf", 0, "", "");
    expect("size=7 /boot/slate.elf", 1, "7", "");
    expect("slate size=7", 1, "7", "");
}

static const struct boot_option *option(const char *name)
{
    const struct boot_option *o = __start_boot_options;

    for (; o < __stop_boot_options; o++)
        if (strcmp(o->option_name, name) == 0)
            return o;
    return NULL;
}

static void expect_refused(const char *name, const char *text)
{
    const struct boot_option *o = option(name);
    char value[16];

    KT_REQUIRE(o != NULL);
    strlcpy(value, text, sizeof(value));
    if (o->option_set(value))
        KT_FAIL("%s%s was taken", name, text);
}

KTEST(cmdline, kernel_refuses_wrong_values)
{
    size_t limit = cmdline_mem_limit();
    bool exits = panic_exits;

    expect_refused("mem=", "");
    expect_refused("mem=", "0");
    expect_refused("mem=", "4096");
    expect_refused("mem=", "16M");
    expect_refused("ws=", "");
    expect_refused("ws=", "never");
    expect_refused("ws=", "1000001");
    expect_refused("budget=", "0");
    expect_refused("budget=", "-1");
    expect_refused("panic=", exits ? "exits" : "shells");
    KT_EQ(panic_exits, exits);
    KT_EQ(cmdline_mem_limit(), limit);
}

KTEST(cmdline, kernel_options_explain_themselves)
{
    KT_TRUE(boot_option_count() > 0);
    for (const struct boot_option *o = __start_boot_options;
         o < __stop_boot_options; o++) {
        size_t len = strlen(o->option_name);

        KT_TRUE(len > 1 && o->option_name[len - 1] == '=');
        KT_TRUE(strncmp(o->option_form, o->option_name, len) == 0);
        KT_TRUE(o->option_help[0] != '\0');
        KT_TRUE(option(o->option_name) == o);
    }
}
