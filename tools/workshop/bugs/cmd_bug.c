/*
 * bug: runs a planted bug (tools/workshop/bugs/bugs.h).
 */
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_task.h"
#include "kernel/shell/shell.h"
#include "tools/workshop/bugs/bugs.h"
#include "tools/workshop/stress/watch.h"

/* ---- the list ----------------------------------------------------------- */

/* The word for it in a table. */
static const char *short_when(const struct bugs_rule *rule)
{
    static const char *const text[] = {
        [BUGS_AT_ONCE] = "once",   [BUGS_AT_FREE] = "free",
        [BUGS_AT_ALLOC] = "alloc", [BUGS_AT_REAP] = "reap",
        [BUGS_BY_SCAN] = "scan",   [BUGS_BY_LEAKS] = "leaks",
    };

    return rule->rule_how == BUGS_FAULT ? "fault" : text[rule->rule_when];
}

static const char *letters_text(const char *letters)
{
    if (letters[0] == '*')
        return "all";
    return letters[0] == '+' ? "any" : letters;
}

static void print_found(const struct table *t, const void *bug)
{
    const struct bugs_rule *rule = ((const struct planted_bug *)bug)->bug_rules;
    const char *before = t->table_json ? "{" : " ";

    for (size_t i = 0; i < BUGS_RULES && rule[i].rule_letters != NULL; i++) {
        kprintf(t->table_json ? "%s\"%s\":\"%s\"" : "%s%s:%s", before,
                letters_text(rule[i].rule_letters), short_when(&rule[i]));
        before = t->table_json ? "," : " ";
    }
    kprintf(t->table_json ? "}" : "");
}

#define BUG(member, ...) COLUMN(struct planted_bug, member, __VA_ARGS__)

static const struct column bug_columns[] = {
    BUG(bug_name, STRING, -16, "NAME", "name"),
    BUG(bug_what, STRING, -33, "WHAT", "what"),
    COLUMN_BY(print_found, -8, "FOUND BY", "found"),
    {0},
};

static int list(char **argv UNUSED)
{
    struct table t = shell_table(bug_columns);

    for (size_t i = 0; i < bugs_count; i++)
        table_row(&t, &planted_bugs[i]);
    if (!t.table_json)
        kprintf("FOUND BY: letters of modes (any: of them; -: none; all: with "
                "and without), and\nwhen: once, at the wrong line; "
                "fault, there by a page fault; free, when the\nbuffer is "
                "freed; alloc, when its memory is allocated again; reap, "
                "when its slab\nis destroyed; scan, by `verify`; leaks, by "
                "`leaks`\n");
    return 0;
}

/* ---- running bugs ------------------------------------------------------- */

static void print_rule(const struct bugs_rule *rule)
{
    if (rule == NULL) {
        kprintf("nothing");
        return;
    }
    kprintf("%s: ", bugs_when_text(rule->rule_when));
    if (rule->rule_how == BUGS_FAULT)
        kprintf("page fault, which stops the machine%s",
                rule->rule_error != KMERR_NONE ? ":\n          " : "");
    if (rule->rule_error != KMERR_NONE)
        kprintf("%s", kmem_error_title(rule->rule_error));
    else if (rule->rule_how == BUGS_REFUSED)
        kprintf("kmem_cache_destroy refuses");
    else if (rule->rule_how == BUGS_REPORT)
        kprintf("panic: the cache is destroyed");
    else if (rule->rule_when == BUGS_BY_SCAN)
        kprintf("an invariant does not hold");
    else if (rule->rule_when == BUGS_BY_LEAKS)
        kprintf("objects that nothing points to");
    else if (rule->rule_how == BUGS_NOTICED)
        kprintf("the destructor finds no constructed object");
}

static void print_expected(const struct planted_bug *bug, unsigned modes)
{
    char text[8];

    kprintf("%s: %s; modes %s\nEXPECTED  ", bug->bug_name, bug->bug_what,
            kmem_debug_text(modes, text));
    print_rule(bugs_rule(bug, modes));
    if (kmem_verify_interval() != 0)
        kprintf(",\n          or sooner, by kmem.verify=%u",
                (unsigned)kmem_verify_interval());
    kprintf("\n");
}

static void print_reported(const struct bugs_result *r)
{
    kprintf("REPORTED  ");
    if (r->result_when == BUGS_NEVER)
        kprintf("nothing\n");
    else
        kprintf("%s: %s\n", bugs_when_text(r->result_when), r->result_text);
    if (r->result_san_kind != NULL)
        kprintf("SANITIZER %s: %s: %s\n", bugs_when_text(r->result_san_when),
                r->result_san_kind, r->result_san_text);
}

static void print_tools(const struct planted_bug *bug, unsigned modes,
                        const struct bugs_result *r)
{
    char text[8];

    debugcon_event("{\"event\":\"bug\",\"name\":\"%s\",\"modes\":\"%s\","
                   "\"when\":\"%s\"}",
                   bug->bug_name, kmem_debug_text(modes, text),
                   bugs_when_text(r->result_when));
}

static int run(const struct planted_bug *bug, bool keep, bool go_on)
{
    unsigned modes = bugs_modes();
    struct bugs_result result = {.result_when = BUGS_NEVER};

    print_expected(bug, modes);
    bugs_visit(bug, keep, go_on, &result);
    if (result.result_lost)
        return shell_error("no memory for a task");
    print_reported(&result);
    print_tools(bug, modes, &result);
    return 0;
}

static bool stops(const struct bugs_rule *rule)
{
    return rule != NULL &&
           (rule->rule_how == BUGS_REPORT || rule->rule_how == BUGS_FAULT ||
            (rule->rule_when == BUGS_BY_SCAN && kmem_verify_interval() != 0));
}

/* Runs all in turn, except those that no machine survives. */
static int run_all(bool go_on)
{
    size_t skipped = 0;

    for (size_t i = 0; i < bugs_count && !shell_interrupted(); i++)
        if (stops(bugs_rule(&planted_bugs[i], bugs_modes())))
            skipped++;
        else if (run(&planted_bugs[i], false, go_on) != 0)
            return 1;
        else
            kprintf("\n");
    kprintf("%zu bugs planted; %zu skipped: they would stop the machine\n",
            bugs_count - skipped, skipped);
    return 0;
}

static int plant(const char *name, unsigned modes, bool keep, bool go_on)
{
    const struct planted_bug *bug = bugs_find(name);
    bool all = strcmp(name, "all") == 0;
    int error;
    int result;

    if (bug == NULL && !all)
        return shell_error("'%s' is no planted bug; `bug list` names them",
                           name);
    error = bugs_open(modes);
    if (error != 0)
        return shell_error(
            "the caches cannot be put into these modes (error %d)", error);
    result = all ? run_all(go_on) : run(bug, keep, go_on);
    bugs_close();
    return result;
}

/* The modes of `-m`; false after an error line. */
static bool parse_modes(const char *letters, unsigned *modes)
{
    char bad;

    if (strcmp(letters, "-") == 0)
        letters = "";
    if (kmem_debug_letters(letters, NULL, modes, &bad))
        return true;
    shell_error("'%c' is no mode; they are " KMEM_DEBUG_LETTERS, bad);
    return false;
}

static int cmd_bug(char **argv)
{
    const char *letters = shell_value('m');
    bool keep = shell_option('k');
    bool go_on = shell_option('s');
    unsigned modes = BUGS_AS_IT_IS;

    if (!taskcmd_alive() || (letters && !parse_modes(letters, &modes)))
        return 1;
    return plant(argv[1], modes, keep, go_on);
}

static void offer_bugs(const struct shell_offer *o)
{
    for (size_t i = 0; i < bugs_count; i++)
        shell_offer(o, planted_bugs[i].bug_name);
}

SHELL_COMMAND(bug, {"list [-j]", list, SHELL_ACTION},
              {"[-k] [-s] [-m MODES] BUG|all", cmd_bug, SHELL_ACTION});
SHELL_WORDS(BUG, offer_bugs);
