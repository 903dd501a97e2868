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

#define TRIES_MAX 100000u /* of a program whose runs always have a failure */

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
        task_kill(NULL, st.stat_pid, SIGKILL);
        sched_sleep_ms(10);
    }
}

/* Whether the heap is valid and nothing was leaked. */
static bool is_sound(void)
{
    const char *where;
    const char *wrong = kmem_verify(&where);

    if (wrong != NULL)
        kprintf("  broken: %s (%s)\n", wrong, where);
    return leak_check(say) == 0 && wrong == NULL;
}

/* Runs the program with its n-th request failing, for n = 1, 2, 3 …, until a
 * run has no failure. */
static int try_all(enum kmem_fail_kind kind, const char *name, char **argv)
{
    uint32_t n = 0, failed = 0;
    uint32_t bad = 0;
    bool fired;

    do {
        pid_t before = last_pid();

        leak_note(true);
        kmem_fail_set(kind, ++n);
        taskcmd_run(argv);
        fired = kmem_fail_fired();
        failed += fired;
        kmem_fail_set(KMEM_FAIL_NONE, 0);
        end_programs(before);
        if (!is_sound()) {
            kprintf("  ... after %s request %u failed\n", name, (unsigned)n);
            bad++;
        }
    } while (fired && n < TRIES_MAX && !shell_interrupted());
    kprintf("%s: %u requests failed in turn; %u leaked memory\n", argv[0],
            (unsigned)failed, (unsigned)bad);
    debugcon_event("{\"event\":\"fail\",\"kind\":\"%s\",\"program\":\"%s\","
                   "\"requests\":%u,\"bad\":%u,\"untouched\":%s}",
                   name, argv[0], (unsigned)failed, (unsigned)bad,
                   fired ? "false" : "true");
    return fired || bad != 0;
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

/* The end of the function at `addr`, or 0. */
static uintptr_t function_end(uintptr_t addr)
{
    const char *name = symbol_lookup(addr, NULL);

    if (name == NULL)
        return 0;
    while (symbol_lookup(addr, NULL) == name)
        addr++;
    return addr;
}

/* The function whose requests fail, also those of functions that it calls.
 * False after an error line. */
static bool read_caller(const char *word, struct kmem_fail *f)
{
    if (word == NULL)
        return true;
    f->fail_from = symbol_address(word);
    f->fail_to = function_end(f->fail_from);
    if (f->fail_to == 0)
        shell_error("'%.32s' is no function; `whatis SYMBOL` says what is",
                    word);
    return f->fail_to != 0;
}

/* `fail slab 3` (`nth` is the number) or `fail slab -r 10`. */
static int set_failure(enum kmem_fail_kind kind, const char *nth)
{
    struct kmem_fail f = {.fail_kind = kind, .fail_seed = 1};
    const char *cache = shell_value('c');

    if (!heap_number('r', &f.fail_rate) || !heap_number('s', &f.fail_seed) ||
        !heap_number('t', &f.fail_task) || !read_caller(shell_value('f'), &f) ||
        (cache != NULL && (f.fail_cache = heap_cache_named(cache)) == NULL))
        return 1;
    if (nth && (!parse_u32(nth, &f.fail_nth) || f.fail_nth == 0))
        return shell_error("'%.32s' is no number of a request; from 1 on", nth);
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

static int cmd_fail(char **argv)
{
    enum kmem_fail_kind kind = KMEM_FAIL_SLAB;

    if (!argv[1]) {
        print_state();
        return 0;
    }
    if (strcmp(argv[1], "off") == 0)
        return end_failure();
    if (strcmp(argv[1], "page") == 0)
        kind = KMEM_FAIL_PAGE;
    if (!argv[2] || (argv[2][0] >= '0' && argv[2][0] <= '9'))
        return argv[2] && argv[3]
                   ? shell_error("takes no '%.32s' after a number", argv[3])
                   : set_failure(kind, argv[2]);
    if (!taskcmd_alive())
        return 1;
    if (!taskcmd_is_program(argv[2]))
        return shell_error("'%.32s' is no program; `run ls /bin` lists them",
                           argv[2]);
    return try_all(kind, argv[1], argv + 2);
}

static void offer_functions(const struct shell_offer *o)
{
    heap_offer_symbols(o, symbol_functions);
}

SHELL_COMMAND(
    fail, {"slab N [-c CACHE] [-t TASK] [-f FUNCTION]", cmd_fail, SHELL_ACTION},
    {"slab -r RATE [-s SEED] [-c CACHE] [-t TASK] [-f FUNCTION]", cmd_fail,
     SHELL_ACTION},
    {"page N [-t TASK] [-f FUNCTION]", cmd_fail, SHELL_ACTION},
    {"page -r RATE [-s SEED] [-t TASK] [-f FUNCTION]", cmd_fail, SHELL_ACTION},
    {"slab|page PROGRAM [ARG ...]", cmd_fail, SHELL_ACTION},
    {"[off]", cmd_fail, SHELL_ACTION});
SHELL_WORDS(FUNCTION, offer_functions);

/* ---- the option kmem.fail= ---------------------------------------------- */

static const char *option;

static bool set_option(char *value)
{
    option = value;
    return value[0] != '\0';
}

BOOT_OPTION(fail, "kmem.fail=", "kmem.fail=WORD,WORD...",
            "`fail` after boot, with commas for blanks", set_option);

/* Runs the command that the option describes, and prints it as if it were
 * typed. */
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
