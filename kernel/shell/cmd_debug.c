/*
 * debug: the debugging modes of each cache (paper, section 6).
 */
#include "kernel/shell/cmd_debug.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/shell/shell.h"
#include "mm/debug/debug.h"
#include "mm/platform.h"

#define LINE_WIDTH 80

/* ---- shared by the commands --------------------------------------------- */

static uint32_t depth(const struct kmem_transaction *t)
{
    return MIN(t->trans_depth, KMEM_STACK_DEPTH + 0u);
}

const char *debugcmd_caller(const struct kmem_transaction *t,
                            char text[DEBUGCMD_CALLER])
{
    if (depth(t) == 0)
        return "-";
    return symbol_caller(t->trans_stack[0], text, DEBUGCMD_CALLER);
}

void debugcmd_print_stack(const struct kmem_transaction *t, unsigned indent)
{
    char text[DEBUGCMD_CALLER];
    size_t column = LINE_WIDTH;

    for (uint32_t i = 0; i < depth(t); i++) {
        size_t n;

        symbol_caller(t->trans_stack[i], text, sizeof(text));
        n = strlen(text) + 3; /* " < " */
        if (column + n > LINE_WIDTH) {
            kprintf("%s%*s%s", i ? "\n" : "", (int)indent, "", i ? "< " : "");
            column = indent;
        } else {
            kprintf(" < ");
        }
        kprintf("%s", text);
        column += n;
    }
    if (depth(t) != 0)
        kprintf("\n");
}

void debugcmd_json_stack(const struct kmem_transaction *t)
{
    char text[DEBUGCMD_CALLER];

    kprintf("[");
    for (uint32_t i = 0; i < depth(t); i++) {
        kprintf("%s", i ? "," : "");
        print_json(print_console, NULL,
                   symbol_caller(t->trans_stack[i], text, sizeof(text)));
    }
    kprintf("]");
}

const char *debugcmd_seconds(uint64_t us, char buf[HEAP_CELL])
{
    snprintf(buf, HEAP_CELL, "%llu.%06u", (us / 1000000),
             (unsigned)(us % 1000000));
    return buf;
}

uint64_t debugcmd_ago(const struct kmem_transaction *t)
{
    uint64_t now = mm_clock_us();

    return now - MIN(now, t->trans_us);
}

const char *debugcmd_age(const struct kmem_transaction *t, char buf[HEAP_CELL])
{
    if (t->trans_depth == 0)
        return "-";
    return heap_age(debugcmd_ago(t) / 1000, buf);
}

void debugcmd_print_transaction(const char *what,
                                const struct kmem_transaction *t)
{
    char ago[HEAP_CELL];

    if (t->trans_depth == 0)
        return;
    kprintf("%s by task %u (%s), %s s ago\n", what, (unsigned)t->trans_task,
            mm_task_name(t->trans_task),
            debugcmd_seconds(debugcmd_ago(t), ago));
    debugcmd_print_stack(t, 4);
}

/* ---- debug -------------------------------------------------------------- */

struct mode_row {
    struct kmem_cache_stat row_stat;
    char row_letters[8];
};

#define MODE(member, ...) COLUMN(struct mode_row, row_##member, __VA_ARGS__)

static const struct column mode_columns[] = {
    MODE(stat.stat_name, CHARS, -HEAP_NAME, "CACHE", NULL),
    MODE(letters, CHARS, -7, "MODES", NULL),
    MODE(stat.stat_inuse, NUMBER, 6, "INUSE", NULL),
    MODE(stat.stat_slabs, NUMBER, 6, "SLABS", NULL),
    MODE(stat.stat_chunk, NUMBER, 6, "CHUNK", NULL),
    {0},
};

static void print_settings(void)
{
    if (kmem_last_error.error_kind != KMERR_NONE)
        kprintf("an error stopped the machine: %s\n",
                kmem_error_title(kmem_last_error.error_kind));
    kprintf("log: %u of %u transactions kept%s\n", (unsigned)kmem_log_kept(),
            (unsigned)kmem_log_last(), kmem_log_stopped ? ", stopped" : "");
    if (kmem_unmapped_pages())
        kprintf("unmapped pages: %zu\n", kmem_unmapped_pages());
}

static void show_modes(void)
{
    const struct kmem_cache_stat *st;
    struct table t = shell_table(mode_columns);
    size_t none = 0, empty = 0;
    struct kmem_cache *cp;
    struct mode_row row;

    st = &row.row_stat;
    heap_all (cp, &row.row_stat) {
        kmem_debug_text(st->stat_modes, row.row_letters);
        if (!st->stat_modes)
            none++;
        else if (st->stat_slabs == 0 && st->stat_kind == KMEM_KIND_CLASS)
            empty++; /* there are many */
        else
            table_row(&t, &row);
    }
    if (empty)
        kprintf("size classes without slabs in a mode: %zu\n", empty);
    kprintf("%zu cache%s in none\n", none, none == 1 ? " is" : "s are");
    print_settings();
}

/* A change of modes: "+FP" adds two, "-FP" removes them, "=FP" sets them. */
struct change {
    unsigned change_clear, change_set;
};

static bool read_change(const char *word, struct change *c)
{
    char sign = *word && strchr("+-=", *word) ? *word++ : '+';
    bool none = strcmp(word, "-") == 0 || strcmp(word, "none") == 0;
    unsigned modes = 0;
    char bad;

    if (*word == '\0') {
        shell_error("wants modes after +, - or =; `debug +FPZU inode`");
        return false;
    }
    if (!none && !kmem_debug_letters(word, NULL, &modes, &bad)) {
        shell_error("'%c' in '%.8s' is no mode; modes are " KMEM_DEBUG_LETTERS,
                    bad, word);
        return false;
    }
    c->change_clear = sign == '=' ? ~0u : sign == '-' ? modes : 0;
    c->change_set = sign == '-' ? 0 : modes;
    return true;
}

/* Returns 0 or the error of kmem_debug_set. `named`: the user named this cache,
 * so every result is printed. */
static int change_cache(struct kmem_cache *cp, const struct change *c,
                        bool named)
{
    unsigned before = kmem_debug_modes(cp);
    unsigned modes = (before & ~c->change_clear) | c->change_set;
    char was[8], is[8], why[112];
    int error = modes == before ? 0 : kmem_debug_set(cp, modes);

    kmem_debug_text(before, was);
    if (error && (named || (error != -KMEM_EPERM && error != -KMEM_EBUSY)))
        shell_error("%s: %s", heap_owner_name(cp),
                    kmem_debug_set_error(cp, modes, error, why, sizeof(why)));
    else if (named && modes == before)
        kprintf("%s: %s, as before\n", heap_owner_name(cp), was);
    else if (named)
        kprintf("%s: %s, was %s\n", heap_owner_name(cp),
                kmem_debug_text(modes, is), was);
    return error;
}

static int change_all(const struct change *c, const char *pattern)
{
    struct kmem_cache_stat st;
    struct kmem_cache *cp;
    size_t n = 0, matching = 0, busy = 0;
    int failed = 0, error;

    heap_all (cp, &st) {
        if (!heap_match(st.stat_name, pattern))
            continue;
        matching++;
        error = change_cache(cp, c, false);
        failed |= error != 0 && error != -KMEM_EPERM;
        busy += error == -KMEM_EBUSY;
        n += kmem_debug_modes(cp) != st.stat_modes;
    }
    if (matching == 0)
        return shell_error("no cache fits '%.20s'; `kmastat -z` lists them all",
                           pattern);
    kprintf("%zu cache%s changed\n", n, plural(n));
    if (busy)
        kprintf("%zu more with allocated objects are as before; for them, boot "
                "with kmem.debug=\n",
                busy);
    return failed;
}

static int cmd_debug(char **argv)
{
    struct kmem_cache *cp;
    struct change c;

    if (!argv[1]) {
        show_modes();
        return 0;
    }
    if (!shell_may_change() || !read_change(argv[1], &c))
        return 1;
    if (!argv[2])
        return change_all(&c, NULL);
    if (strchr(argv[2], '*') || strchr(argv[2], '?'))
        return change_all(&c, argv[2]);
    cp = heap_cache_named(argv[2]);
    return cp ? change_cache(cp, &c, true) != 0 : 1;
}

SHELL_COMMAND(debug, {"[+MODES|-MODES|=MODES|=none|MODES] [PATTERN]", cmd_debug,
                      SHELL_REPORT});

/* What is typed, and each letter that it has not. */
static void offer_modes(const struct shell_offer *o)
{
    char word[sizeof(KMEM_DEBUG_LETTERS) + 1];
    size_t n = strlcpy(word, o->offer_typed, sizeof(KMEM_DEBUG_LETTERS));

    for (const char *c = KMEM_DEBUG_LETTERS; *c; c++)
        if (n < sizeof(KMEM_DEBUG_LETTERS) && !strchr(o->offer_typed, *c)) {
            word[n] = *c;
            word[n + 1] = 0;
            shell_offer(o, word);
        }
}

SHELL_WORDS(MODES, offer_modes);
