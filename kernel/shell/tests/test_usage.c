/*
 * Words and the usage of commands: what is accepted, and what Tab offers at
 * each place of each command (kernel/shell/usage.c).
 */
#include "kernel/shell/usage.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/shell.h"
#include "kernel/shell/tests/shell_test.h"
#include "kernel/shell/words.h"
#include "mm/kmem.h"
#include "tools/workshop/ktest/ktest.h"

/* ---- what is accepted --------------------------------------------------- */

static char copy[SHELL_LINE_MAX + 1];
static char *argv[SHELL_ARGS_MAX + 1];
static struct form taken;

static bool take(const char *line)
{
    char *at = copy;
    int argc;

    strlcpy(copy, line, sizeof(copy));
    words_next(&at, &argc, argv);
    return usage_take(shell_find(argv[0]), argv, &taken) != NULL;
}

static bool is(const char *word, const char *want)
{
    return word && want ? strcmp(word, want) == 0 : word == want;
}

static const char *value(char letter)
{
    return usage_value(&taken, letter);
}

KTEST(usage, options_are_taken_out)
{
    KT_REQUIRE(take("slabs -j foo -v"));
    KT_TRUE(is(argv[1], "foo") && !argv[2]);
    KT_TRUE(is(value('j'), "") && is(value('v'), "") && !value('a'));
    KT_REQUIRE(take("slabs -vj"));
    KT_TRUE(!argv[1] && value('j') && value('v'));
    KT_REQUIRE(take("log -S"));
    KT_TRUE(value('S') && !value('s'));
    KT_REQUIRE(take("slabs"));
    KT_TRUE(!value('j') && !value('v'));
}

KTEST(usage, options_take_values)
{
    static const char *const lines[] = {"cache -n 5 -j -o alloc box",
                                        "cache -jn5 -oalloc box",
                                        "cache box -o alloc -jn 5"};

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        KT_REQUIRE(take(lines[i]));
        KT_TRUE(value('j') && is(value('n'), "5"));
        KT_TRUE(is(argv[1], "box") && !argv[2]);
    }
}

KTEST(usage, options_end_before_words_that_repeat)
{
    KT_REQUIRE(take("run -b ls -p"));
    KT_TRUE(value('b') && !value('p'));
    KT_TRUE(is(argv[1], "ls") && is(argv[2], "-p") && !argv[3]);
    KT_REQUIRE(take("echo -x"));
    KT_TRUE(is(argv[1], "-x"));
}

KTEST(usage, without_options_a_dash_is_part_of_a_word)
{
    KT_REQUIRE(take("kill -KILL 5"));
    KT_TRUE(is(argv[1], "-KILL") && is(argv[2], "5"));
    KT_REQUIRE(take("kill -5"));
    KT_REQUIRE(take("debug -FP inode"));
}

#define CACHE_FORMS                                                            \
    "usage: cache [-c] [-j] CACHE [partial=sorted|partial=own]\n"              \
    "       cache -o alloc|free [-j] [-n N] [CACHE]\n"                         \
    "       cache -u [-j] [-m AGE] [CACHE]\n"

#define REAP_FORMS                                                             \
    "usage: reap [-a] [CACHE]\n"                                               \
    "       reap -n [CACHE]\n"                                                 \
    "       reap -i SECONDS|never\n"
#define KMEM_FORMS                                                             \
    "usage: kmem create NEW-NAME SIZE [ALIGN|ctor|nocolour ...]\n"             \
    "       kmem alloc NAME N\n"                                               \
    "       kmem free NAME N|all [lifo|fifo|random]\n"                         \
    "       kmem destroy NAME\n"                                               \
    "       kmem list\n"
#define KMASTAT_FORMS                                                          \
    "usage: kmastat [-z] [-j] [-s mem|waste|rate|fail] [PATTERN]\n"            \
    "       kmastat --merged\n"
#define TRACE_FORMS                                                            \
    "usage: trace [on|off]\n"                                                  \
    "       trace mark [N]\n"                                                  \
    "       trace save [NEW-NAME]\n"
#define RUN_FORMS                                                              \
    "usage: run [-p] [-b] PROGRAM [ARG ...]\n"                                 \
    "       run -s [-b] SERVER [ARG ...]\n"

static const struct {
    const char *line;
    const char *said;
} wrong[] = {
    {"dmesg now", "usage: dmesg\n"},
    {"cache", CACHE_FORMS},
    {"cache inode task", CACHE_FORMS},
    {"cache -x inode", CACHE_FORMS},
    {"reap -an", REAP_FORMS},
    {"inodes -r", "usage: inodes [-j] [-a]\n"},
    {"reap -i", REAP_FORMS},
    {"reap -n -i 5", REAP_FORMS},
    {"kmem alloc", KMEM_FORMS},
    {"kmem free box all soon", KMEM_FORMS},
    {"kmastat -j --merged", KMASTAT_FORMS},
    {"log -n", "usage: log [-S] [-j] [-n N] [-c CACHE] [-t TASK] [ADDR]\n"},
    {"cache -o alloc -n many", CACHE_FORMS},
    {"cache -o slab", CACHE_FORMS},
    {"trace mark x", TRACE_FORMS},
    {"trace maybe", TRACE_FORMS},
    {"run -b", RUN_FORMS},
    {"run -s", RUN_FORMS},
    {"run -sp shell", RUN_FORMS},
};

KTEST(usage, other_words_are_refused)
{
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        if (shell_test_run(wrong[i].line) != 1 ||
            !is(shell_test_said, wrong[i].said))
            ktest_fail(__FILE__, __LINE__, "%s: %s", wrong[i].line,
                       shell_test_said);
}

/* ---- what is offered ---------------------------------------------------- */

#define WORDS_MOST 600

static char (*offered)[48]; /* WORDS_MOST of them */
static bool expected[WORDS_MOST];
static size_t offered_count;
static struct line line;

/* Its number, or offered_count. */
static size_t find(const char *word)
{
    size_t i = 0;

    while (i < offered_count && strcmp(offered[i], word) != 0)
        i++;
    return i;
}

static void collect(const char *word, void *typed)
{
    if (strncmp(word, typed, strlen(typed)) == 0 &&
        find(word) == offered_count && offered_count < WORDS_MOST)
        strlcpy(offered[offered_count++], word, sizeof(offered[0]));
}

/* Offers what may follow `before`; its last word is what is typed. */
static void offer(const char *before)
{
    unsigned word;

    strlcpy(line.line_text, before, sizeof(line.line_text));
    line.line_len = line.line_pos = word = (unsigned)strlen(before);
    while (word > 0 && before[word - 1] != ' ')
        word--;
    offered_count = 0;
    usage_complete(&line, 0, word, collect, line.line_text + word);
}

static size_t missing;

static void expect(const char *word, void *arg)
{
    size_t i = find(word);

    (void)arg;
    if (i < offered_count)
        expected[i] = true;
    else
        missing++;
}

static void expect_kind(const char *name)
{
    const struct shell_offer o = {
        .offer_typed = "", .offer_before = "", .offer_add = expect};
    const struct shell_kind *k = __start_shell_kinds;

    while (k < __stop_shell_kinds && strcmp(k->kind_name, name) != 0)
        k++;
    if (k < __stop_shell_kinds)
        k->kind_words(&o);
    else
        missing++;
}

/* A line, and what is offered after it: words, or kinds of them. */
static const struct {
    const char *before;
    const char *want;
} table[] = {
    {"bench ", "@GROUP"},
    {"bench kmem ", ""},
    {"bt ", "@TASK"},
    {"bt 1 ", ""},
    {"buddyinfo ", ""},
    {"buddyinfo -", "-j"},
    {"bug ", "@BUG all list"},
    {"bug -", "-j -k -m -s"},
    {"bug -k ", "@BUG all"},
    {"bug -k -", "-m -s"},
    {"bug -m ", "@MODES"},
    {"bug -m FPZ", "FPZU FPZT FPZS FPZG"},
    {"bug list -", "-j -k -m -s"},
    {"bug list ", ""},
    {"cache ", "@CACHE"},
    {"cache -", "-c -j -m -n -o -u"},
    {"cache -o ", "alloc free"},
    {"cache -o alloc ", "@CACHE"},
    {"cache -j ", "@CACHE"},
    {"cache -u -", "-j -m"},
    {"cache -u ", "@CACHE"},
    {"cache -u -m ", ""},
    {"cache inode ", "partial=own partial=sorted"},
    {"cache inode -", "-c -j -m -n -o -u"},
    {"continue ", ""},
    {"cpufault ", "absent both called locked null paused stack"},
    {"cpufault null ", ""},
    {"cpus ", ""},
    {"debug ", "@MODES +F +P +Z +U +T +S +G =F =P =Z =U =T =S =G =none"},
    {"debug -", "-F -P -Z -U -T -S -G"},
    {"debug +FPZ", "+FPZU +FPZT +FPZS +FPZG"},
    {"debug +F ", "@PATTERN"},
    {"debug =none ", "@CACHE"},
    {"debug +F inode ", ""},
    {"defrag ", "@CACHE"},
    {"defrag -", "-e -l -n -s"},
    {"defrag -s ", "@CACHE"},
    {"defrag -n 5 ", "@CACHE"},
    {"dmesg ", ""},
    {"echo ", ""},
    {"echo -", ""},
    {"fail ", "off page slab"},
    {"fail slab -", "-c -f -r -s -t"},
    {"fail page -", "-f -r -s -t"},
    {"fail slab -c ", "@CACHE"},
    {"fail slab -t ", "@TASK"},
    {"fail slab -f kmem_cache_fre", "kmem_cache_free @FUNCTION"},
    {"fail slab -r 5 ", ""},
    {"fail slab -r 5 -", "-c -f -s -t"},
    {"fail slab 3 ", "@ARG"},
    {"fail page ", "@PROGRAM"},
    {"fail page ls ", "@ARG"},
    {"fail off ", ""},
    {"fault ", "@FAULT"},
    {"fault null ", ""},
    {"files ", "@PID"},
    {"files -", "-j"},
    {"files 5 ", ""},
    {"help ", "@COMMAND options paper"},
    {"help echo ", ""},
    {"hunt ", "@HUNT"},
    {"hunt pop ", ""},
    {"inodes ", ""},
    {"inodes -", "-a -j"},
    {"inodes -a -", "-j"},
    {"irqs ", ""},
    {"irqs -", "-j"},
    {"kill ", "@PID"},
    {"kill -K", "-KILL"},
    {"kill -T", "-TERM -TRAP"},
    {"kill -KILL ", "@PID"},
    {"kill 5 ", ""},
    {"kill -KILL 5 ", ""},
    {"kmastat ", "@PATTERN"},
    {"kmastat -", "--merged -j -s -z"},
    {"kmastat -j -", "-s -z"},
    {"kmastat -s ", "mem waste rate fail"},
    {"kmastat -zs ", "mem waste rate fail"},
    {"kmastat inode ", ""},
    {"kmem ", "alloc create destroy free list"},
    {"kmem alloc ", "@NAME"},
    {"kmem alloc box ", ""},
    {"kmem create ", ""},
    {"kmem create box ", ""},
    {"kmem create box 8 ", "ctor nocolour"},
    {"kmem create box 8 8 ", "ctor nocolour"},
    {"kmem create box 8 ctor ", "ctor nocolour"},
    {"kmem destroy ", "@NAME"},
    {"kmem destroy box ", ""},
    {"kmem free ", "@NAME"},
    {"kmem free box ", "all"},
    {"kmem free box 3 ", "fifo lifo random"},
    {"kmem free box 3 lifo ", ""},
    {"kmem list ", ""},
    {"kmem frob ", ""},
    {"lab ", "@TEST"},
    {"lab a ", ""},
    {"leaks ", ""},
    {"leaks -", "-j -m"},
    {"leaks -m ", ""},
    {"locks ", ""},
    {"locks -", "-j -r"},
    {"log ", ""},
    {"log -", "-S -c -j -n -t"},
    {"log -S -", "-c -j -n -t"},
    {"log -c ", "@CACHE"},
    {"log -t ", "@TASK"},
    {"log -n ", ""},
    {"log -n 5 ", ""},
    {"log -S ", ""},
    {"magazines ", "off on @CACHE"},
    {"magazines -", "-j"},
    {"magazines on ", ""},
    {"magazines task ", ""},
    {"meminfo ", ""},
    {"meminfo -", "-j"},
    {"mounts ", ""},
    {"mounts -", "-j"},
    {"umount ", ""},
    {"umount -", "-f"},
    {"pages ", ""},
    {"pages -", "-j -r"},
    {"pages kmai", "kmain @SYMBOL"},
    {"pages kmain ", ""},
    {"panic ", ""},
    {"pipes ", ""},
    {"pipes -", "-j"},
    {"ports ", ""},
    {"ports -", "-j -w"},
    {"poweroff ", ""},
    {"ps ", ""},
    {"ps -", "-j"},
    {"reap ", "@CACHE"},
    {"reap -", "-a -n -i"},
    {"reap -i ", "never"},
    {"reap -i 5 ", ""},
    {"reap -a -", ""},
    {"reap inode ", ""},
    {"reboot ", ""},
    {"refuse ", ""},
    {"refuse 4 ", "@SUITE"},
    {"refuse 4 usage.options_t", "usage.options_take_values @CASE"},
    {"riddle ", ""},
    {"run ", "@PROGRAM"},
    {"run -", "-b -p -s"},
    {"run -b -", "-p -s"},
    {"run -p -", "-b"},
    {"run -s -", "-b"},
    {"run -s ", "@SERVER"},
    {"run -s console ", "@ARG"},
    {"run ls ", "@ARG"},
    {"run ls -", ""},
    {"run ls / ", "@ARG"},
    {"sample ", "off"},
    {"sample off ", ""},
    {"sanitize ", "@MISTAKE"},
    {"sanitize uaf ", ""},
    {"scale ", ""},
    {"servers ", ""},
    {"servers -", "-j"},
    {"services ", "@SERVICE all"},
    {"services all ", ""},
    {"sessions ", "end"},
    {"sessions -", "-j"},
    {"sessions end ", ""},
    {"sh ", ""},
    {"slabs ", "@CACHE"},
    {"slabs -", "-j -v"},
    {"slabs inode ", ""},
    {"stress ", ""},
    {"stress 1 ", ""},
    {"test ", "@SUITE"},
    {"test -", "-l"},
    {"test usage.options_t", "usage.options_take_values @CASE"},
    {"test line ", ""},
    {"trace ", "mark off on save"},
    {"trace on ", ""},
    {"trace mark ", ""},
    {"trace save ", ""},
    {"verify ", "@CACHE"},
    {"verify -", "-j"},
    {"verify inode ", ""},
    {"whatis ", ""},
    {"whatis -", "-r"},
    {"whatis kmem_cache_fre", "kmem_cache_free @SYMBOL"},
    {"whatis kmain ", ""},
};

/* Compares what is offered with words, and @KINDs of them. */
static void check(const char *before, const char *want)
{
    char words[SHELL_LINE_MAX];
    char *at = words;
    int argc;

    offer(before);
    missing = 0;
    memset(expected, 0, sizeof(expected));
    strlcpy(words, want, sizeof(words));
    words_next(&at, &argc, argv);
    for (int i = 0; i < argc; i++)
        if (argv[i][0] == '@')
            expect_kind(argv[i] + 1);
        else
            expect(argv[i], NULL);
    if (missing > 0)
        ktest_fail(__FILE__, __LINE__, "after \"%s\" %u are missing of %s",
                   before, (unsigned)missing, want);
    for (size_t i = 0; i < offered_count; i++)
        if (!expected[i])
            ktest_fail(__FILE__, __LINE__, "after \"%s\": %s", before,
                       offered[i]);
}

/* Whether a line is of a command. */
static bool is_of(const char *before, const char *name)
{
    size_t n = strlen(name);

    return strncmp(before, name, n) == 0 && before[n] == ' ';
}

KTEST(usage, tab_offers_what_the_place_wants)
{
    size_t size = WORDS_MOST * sizeof(*offered);

    offered = kmem_alloc(size, KM_NOSLEEP);
    KT_REQUIRE(offered != NULL);
    for (const struct shell_command *c = __start_shell_commands;
         c < __stop_shell_commands; c++)
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
            if (is_of(table[i].before, c->command_name))
                check(table[i].before, table[i].want);
    offer("kmas");
    KT_TRUE(offered_count == 1 && find("kmastat") == 0);
    offer("no_such_command ");
    KT_EQ(offered_count, 0);
    kmem_free(offered, size);
}

/* Whether a row for a command wants a word of its usage. */
static bool is_wanted(const char *name, const char *word)
{
    char words[SHELL_LINE_MAX];
    int argc;

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        char *at = words;

        strlcpy(words, table[i].want, sizeof(words));
        words_next(&at, &argc, argv);
        for (int k = 0; k < argc && is_of(table[i].before, name); k++)
            if (is(argv[k], word))
                return true;
    }
    return false;
}

static bool is_kind(const char *name)
{
    for (const struct shell_kind *k = __start_shell_kinds;
         k < __stop_shell_kinds; k++)
        if (is(k->kind_name, name))
            return true;
    return false;
}

static bool is_first(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        if (is_of(table[i].before, name) && !table[i].before[strlen(name) + 1])
            return true;
    return false;
}

/* Looks for each word, option and kind of a form in the table. */
static void check_usage(const char *name, const char *form)
{
    char word[32] = "@";

    for (const char *end; *form; form = end + (*end != '\0')) {
        for (end = form; !strchr(" []|.", *end);)
            end++;
        strlcpy(word + 1, form, (size_t)(end - form) + 1);
        if (end == form || strchr("+=", *form) || (*form == '-' && word[3]))
            continue;
        if (*form < 'A' || *form > 'Z' || !word[2]) {
            if (*form >= 'a' || *form == '-')
                if (!is_wanted(name, word + 1))
                    ktest_fail(__FILE__, __LINE__, "%s: %s", name, word + 1);
        } else if (is_kind(word + 1) && !is_wanted(name, word)) {
            ktest_fail(__FILE__, __LINE__, "%s: %s", name, word);
        }
    }
}

KTEST(usage, the_table_has_every_command_and_place)
{
    for (const struct shell_command *c = __start_shell_commands;
         c < __stop_shell_commands; c++) {
        for (const struct shell_form *f = c->command_forms; f->form_usage; f++)
            check_usage(c->command_name, f->form_usage);
        if (!is_first(c->command_name))
            ktest_fail(__FILE__, __LINE__, "no row for %s", c->command_name);
    }
}

KTEST(usage, help_shows_the_usage_of_every_command)
{
    char text[SHELL_LINE_MAX + 1];

    for (const struct shell_command *c = __start_shell_commands;
         c < __stop_shell_commands; c++) {
        snprintf(text, sizeof(text), "help %s", c->command_name);
        KT_EQ(shell_test_run(text), 0);
        snprintf(text, sizeof(text), "usage: %s", c->command_name);
        if (strncmp(shell_test_said, text, strlen(text)) != 0)
            ktest_fail(__FILE__, __LINE__, "help %s", c->command_name);
    }
}
