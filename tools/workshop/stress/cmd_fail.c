/*
 * `fail`: makes allocations fail, and tests how a program handles that.
 */
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/option.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/cmd_task.h"
#include "tools/workshop/ktest/leak.h"
#include "kernel/shell/shell.h"
#include "kernel/shell/words.h"
#include "mm/kmem.h"
#include "tools/workshop/stress/fail.h"

#define TRIES_MAX 100000u /* a program that never gets through is stuck */

static void say(const char *line)
{
    kprintf("  leak: %s\n", line);
}

/* The highest pid so far; programs above it are the command's own. */
static pid_t last_pid(void)
{
    struct task_stat st;
    pid_t last = 0;

    while (task_stats(last, &st, 1) == 1)
        last = st.stat_pid;
    return last;
}

/* Kills the programs that a failed parent left running. */
static void end_programs(pid_t after)
{
    struct task_stat st;

    while (task_stats(after, &st, 1) == 1) {
        task_kill(st.stat_pid, SIGKILL);
        sched_sleep_ms(10);
    }
}

/* Whether everything is as it was before the failure. */
static bool unharmed(void)
{
    const char *where;
    const char *wrong = kmem_verify(&where);

    if (wrong != NULL)
        kprintf("  broken: %s (%s)\n", wrong, where);
    return leak_check(say) == 0 && wrong == NULL;
}

/* Runs the program with the n-th request failing, for n = 1, 2, 3 … until none
 * does. */
static int try_all(enum kmem_fail_kind kind, const char *name, char **argv)
{
    uint32_t n = 0;
    uint32_t bad = 0;
    bool fired;

    do {
        pid_t before = last_pid();

        leak_note(true);
        kmem_fail_set(kind, ++n);
        taskcmd_run(argv);
        fired = kmem_fail_fired();
        kmem_fail_set(KMEM_FAIL_NONE, 0);
        end_programs(before);
        if (!unharmed()) {
            kprintf("  ... after %s request %u failed\n", name, (unsigned)n);
            bad++;
        }
    } while (fired && n < TRIES_MAX && !shell_interrupted());
    kprintf("%s: %u requests failed in turn; %u leaked memory\n", argv[0],
            (unsigned)n - 1, (unsigned)bad);
    debugcon_event("{\"event\":\"fail\",\"kind\":\"%s\",\"program\":\"%s\","
                   "\"requests\":%u,\"bad\":%u,\"untouched\":%s}",
                   name, argv[0], (unsigned)n - 1, (unsigned)bad,
                   fired ? "false" : "true");
    return fired || bad != 0;
}

static enum kmem_fail_kind kind_of(const char *word)
{
    if (strcmp(word, "slab") == 0)
        return KMEM_FAIL_SLAB;
    return strcmp(word, "page") == 0 ? KMEM_FAIL_PAGE : KMEM_FAIL_NONE;
}

/* ---- conditions --------------------------------------------------------- */

static void print_state(void)
{
    struct kmem_fail f;
    uint32_t fitted, failed;
    uintptr_t offset;

    kmem_fail_stat(&f, &fitted, &failed);
    if (f.fail_kind == KMEM_FAIL_NONE) {
        kprintf("no failure is set\n");
        return;
    }
    if (f.fail_nth != 0)
        kprintf("request %u for ", (unsigned)f.fail_nth);
    else
        kprintf("one request in %u for ", (unsigned)f.fail_rate);
    kprintf("%s", f.fail_kind == KMEM_FAIL_PAGE ? "a page" : "an object");
    if (f.fail_cache != NULL)
        kprintf(" of %s", heap_owner_name(f.fail_cache));
    if (f.fail_task != 0)
        kprintf(" by task %u", (unsigned)f.fail_task);
    if (f.fail_to != 0)
        kprintf(" from %s", symbol_lookup(f.fail_from, &offset));
    kprintf(": %u so far, %u failed\n", (unsigned)fitted, (unsigned)failed);
}

/* The function whose callees are to fail. False after an error line. */
static bool read_caller(const char *word, struct kmem_fail *f)
{
    if (word == NULL)
        return true;
    f->fail_from = symbol_address(word);
    f->fail_to = f->fail_from != 0 ? symbol_end(f->fail_from) : 0;
    if (f->fail_to == 0)
        shell_error("'%.32s' is no function; `sym` knows them", word);
    return f->fail_to != 0;
}

/* `fail slab -r 10 -c inode`, argv[0] being the kind. */
static int set_failure(int argc, char **argv, enum kmem_fail_kind kind)
{
    struct kmem_fail f = {.fail_kind = kind, .fail_seed = 1};
    const char *rate = NULL, *seed = NULL, *cache = NULL, *task = NULL;
    const char *caller = NULL;
    const struct words_option options[] = {
        {'r', NULL, &rate}, {'s', NULL, &seed},   {'c', NULL, &cache},
        {'t', NULL, &task}, {'f', NULL, &caller},
    };

    if (!shell_take(&argc, argv, options, ARRAY_SIZE(options)) ||
        !heap_number('r', rate, &f.fail_rate) ||
        !heap_number('s', seed, &f.fail_seed) ||
        !heap_number('t', task, &f.fail_task) || !read_caller(caller, &f) ||
        (cache != NULL && (f.fail_cache = heap_cache_named(cache)) == NULL))
        return 1;
    if (cache != NULL && kind == KMEM_FAIL_PAGE)
        return shell_error("pages are of no cache; -c goes with slab");
    if ((argc == 2) == (rate != NULL) || argc > 2 ||
        (argc == 2 && (!parse_u32(argv[1], &f.fail_nth) || f.fail_nth == 0)))
        return shell_error("wants a number, or -r and a rate; "
                           "`fail slab 3 -c inode`");
    kmem_fail(&f);
    return 0;
}

static int end_failure(void)
{
    struct kmem_fail f;
    uint32_t fitted, failed;

    kmem_fail_stat(&f, &fitted, &failed);
    if (f.fail_kind == KMEM_FAIL_NONE)
        kprintf("no failure was set\n");
    else
        kprintf("a failure %s\n",
                kmem_fail_fired() ? "has happened" : "has not happened");
    kmem_fail_set(KMEM_FAIL_NONE, 0);
    return 0;
}

static int cmd_fail(int argc, char **argv)
{
    enum kmem_fail_kind kind = argc > 1 ? kind_of(argv[1]) : KMEM_FAIL_NONE;

    if (argc == 1) {
        print_state();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "off") == 0) {
        return end_failure();
    }
    if (argc < 3 || kind == KMEM_FAIL_NONE)
        return shell_error("wants slab or page, and a number or a program; "
                           "`fail slab 3`");
    if (argv[2][0] == '-' || (argv[2][0] >= '0' && argv[2][0] <= '9'))
        return set_failure(argc - 1, argv + 1, kind);
    return taskcmd_alive() && taskcmd_exists(argv[2])
               ? try_all(kind, argv[1], argv + 2)
               : 1;
}

SHELL_COMMAND(fail, cmd_fail, NULL);

/* ---- the option kmem.fail= ---------------------------------------------- */

static const char *option;

static bool set_option(char *value)
{
    option = value;
    return value[0] != '\0';
}

BOOT_OPTION(fail, "kmem.fail=", "kmem.fail=WORD,WORD...",
            "`fail` after boot, with commas for blanks", set_option);

/* Runs the command that the option stands for, shown as if it were typed. */
static void run_option(const void *arg)
{
    char line[SHELL_LINE_MAX + 2]; /* room for a line that is too long */

    (void)arg;
    if (option == NULL)
        return;
    snprintf(line, sizeof(line), "fail %s", option);
    for (char *p = line; *p != '\0'; p++)
        if (*p == ',')
            *p = ' ';
    kprintf("slate> %s\n", line);
    shell_execute(line);
}

HOOK(HOOK_UP, run_option);
