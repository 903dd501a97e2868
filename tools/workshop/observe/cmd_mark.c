/*
 * mark: remembers the counts of all caches under a name. diff: what has
 * changed since, or between two marks.
 *
 * Marks are in static storage, for a command allocates nothing; a new one
 * takes the place of the oldest when there are too many. Caches are known by
 * their names: a cache that was destroyed and made again under its name is the
 * same for diff, with counts that have gone down.
 */
#include "drivers/console.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_debug.h"
#include "kernel/shell/shell.h"
#include "tools/workshop/observe/frag.h"
#include "mm/platform.h"
#include "mm/debug/platform.h"

#define MARKS      4
#define CACHES_MAX 128 /* in a mark; those beyond are left out and counted */
#define LABEL_MAX  12
#define NOW        "now"

struct mark_row {
    char row_name[KMEM_NAME_MAX + 1];
    uint32_t row_inuse;
    uint32_t row_slabs;
    uint64_t row_mem;
    uint64_t row_allocs;
    uint64_t row_frees;
};

struct mark {
    char mark_label[LABEL_MAX + 1]; /* empty: not in use */
    uint64_t mark_ms;
    uint64_t mark_us; /* the same on the clock of transactions */
    size_t mark_rows;
    size_t mark_left_out;
    struct heap_frag mark_frag;
    struct mark_row mark_row[CACHES_MAX];
};

/* Oldest first; and the state that marks are compared with. */
static struct mark marks[MARKS];
static struct mark now;

/* ---- taking marks ------------------------------------------------------- */

static void note_cache(struct mark *m, const struct kmem_cache_stat *st)
{
    struct mark_row *row;

    if (m->mark_rows == CACHES_MAX) {
        m->mark_left_out++;
        return;
    }
    row = &m->mark_row[m->mark_rows++];
    strlcpy(row->row_name, st->stat_name, sizeof(row->row_name));
    row->row_inuse = st->stat_inuse;
    row->row_slabs = st->stat_slabs;
    row->row_mem = st->stat_mem;
    row->row_allocs = st->stat_allocs;
    row->row_frees = st->stat_frees;
}

static void take(struct mark *m, const char *label)
{
    struct kmem_cache_stat st;

    memset(m, 0, sizeof(*m));
    strlcpy(m->mark_label, label, sizeof(m->mark_label));
    m->mark_ms = mm_clock_ms();
    m->mark_us = mm_clock_us();
    heap_frag(&m->mark_frag);
    for (size_t n = 0; kmem_cache_stat_number(n, &st); n++)
        note_cache(m, &st);
}

static size_t marks_taken(void)
{
    size_t n = 0;

    while (n < MARKS && marks[n].mark_label[0])
        n++;
    return n;
}

/* Forgets marks[i]; the younger ones move up. */
static void drop(size_t i)
{
    memmove(&marks[i], &marks[i + 1], (MARKS - 1 - i) * sizeof(marks[0]));
    marks[MARKS - 1].mark_label[0] = '\0';
}

static const struct mark *find_mark(const char *label)
{
    for (size_t i = 0; i < marks_taken(); i++)
        if (strcmp(marks[i].mark_label, label) == 0)
            return &marks[i];
    return NULL;
}

bool heap_mark(size_t i, const char **label, struct heap_frag *frag)
{
    if (i >= marks_taken())
        return false;
    *label = marks[i].mark_label;
    *frag = marks[i].mark_frag;
    return true;
}

/* ---- mark --------------------------------------------------------------- */

static void list_marks(bool json)
{
    uint64_t clock = mm_clock_ms();
    char age[HEAP_CELL];

    if (!json)
        kprintf("%-*s %6s %6s %10s %10s\n", LABEL_MAX, "LABEL", "AGE", "CACHES",
                "REQUESTED", "CONSUMED");
    for (size_t i = 0; i < marks_taken(); i++) {
        const struct mark *m = &marks[i];
        unsigned long long requested = m->mark_frag.frag_requested;
        unsigned long long consumed = m->mark_frag.frag_consumed;

        if (json)
            kprintf("{\"mark\":\"%s\",\"ms\":%llu,\"caches\":%zu,"
                    "\"requested\":%llu,\"consumed\":%llu}\n",
                    m->mark_label, (unsigned long long)m->mark_ms, m->mark_rows,
                    requested, consumed);
        else
            kprintf("%-*s %6s %6zu %10llu %10llu\n", LABEL_MAX, m->mark_label,
                    heap_age(clock - m->mark_ms, age), m->mark_rows, requested,
                    consumed);
    }
}

static bool label_good(const char *label)
{
    size_t n = strlen(label);

    for (const char *p = label; *p; p++)
        if (*p <= ' ' || *p > '~' || *p == '"' || *p == '\\')
            return false;
    return n > 0 && n <= LABEL_MAX && label[0] != '-' &&
           strcmp(label, NOW) != 0;
}

static int cmd_mark(char **argv)
{
    const struct mark *old;

    if (!argv[1]) {
        list_marks(shell_option('j'));
        return 0;
    }
    if (!label_good(argv[1]))
        return shell_error("wants one label of at most %d characters, and not "
                           "'" NOW "'; `mark before`",
                           LABEL_MAX);
    old = find_mark(argv[1]);
    if (!old && marks_taken() == MARKS)
        old = &marks[0];
    if (old) {
        kprintf("mark %s, the %s, is deleted\n", old->mark_label,
                strcmp(old->mark_label, argv[1]) ? "oldest" : "previous one");
        drop((size_t)(old - marks));
    }
    old = &marks[marks_taken()];
    take(&marks[marks_taken()], argv[1]);
    kprintf("mark %s: %zu caches, %llu KiB; `diff %s` compares\n", argv[1],
            old->mark_rows,
            (unsigned long long)old->mark_frag.frag_consumed / 1024, argv[1]);
    return 0;
}

SHELL_COMMAND(mark, cmd_mark);

/* ---- diff --------------------------------------------------------------- */

static const struct mark_row *find_row(const struct mark *m, const char *name)
{
    static const struct mark_row none;

    for (size_t i = 0; i < m->mark_rows; i++)
        if (strcmp(m->mark_row[i].row_name, name) == 0)
            return &m->mark_row[i];
    return &none;
}

struct change {
    const char *change_name;
    long long change_inuse;
    long long change_slabs;
    long long change_mem;
    long long change_allocs;
    long long change_frees;
    const char *change_note; /* " new", " destroyed", or "" */
};

static struct change change_of(const struct mark *a, const struct mark *b,
                               const char *name)
{
    const struct mark_row *x = find_row(a, name), *y = find_row(b, name);

    return (struct change){
        name,
        (long long)y->row_inuse - x->row_inuse,
        (long long)y->row_slabs - x->row_slabs,
        (long long)(y->row_mem - x->row_mem),
        (long long)(y->row_allocs - x->row_allocs),
        (long long)(y->row_frees - x->row_frees),
        !x->row_name[0]   ? " new"
        : !y->row_name[0] ? " destroyed"
                          : "",
    };
}

/* The name of row `i` of both marks together, those of `b` first; NULL for a
 * row of `a` that is in `b` too. */
static const char *row_name(const struct mark *a, const struct mark *b,
                            size_t i)
{
    if (i < b->mark_rows)
        return b->mark_row[i].row_name;
    i -= b->mark_rows;
    if (find_row(b, a->mark_row[i].row_name)->row_name[0])
        return NULL;
    return a->mark_row[i].row_name;
}

static bool is_change(const struct change *c)
{
    return c->change_inuse || c->change_slabs || c->change_mem ||
           c->change_allocs || c->change_frees;
}

/* The next change in order of memory, most first, by looking for the largest
 * below the last one. False at the end. */
static bool next_change(const struct mark *a, const struct mark *b,
                        struct heap_place *at, struct change *out)
{
    struct heap_place best = {.place_begun = false};

    for (size_t i = 0; i < a->mark_rows + b->mark_rows; i++) {
        const char *name = row_name(a, b, i);
        struct change c;
        uint64_t key;

        if (!name)
            continue;
        c = change_of(a, b, name);
        key = (uint64_t)c.change_mem ^ 1ull << 63; /* negative ones last */
        if (!is_change(&c) || !heap_after(at, key, i) ||
            (best.place_begun && key <= best.place_key))
            continue;
        best = (struct heap_place){key, i, true};
        *out = c;
    }
    *at = best;
    return best.place_begun;
}

static void print_change(const struct change *c)
{
    heap_print_name(c->change_name, HEAP_NAME);
    kprintf(" %+9lld %+8lld %+11lld %+10lld %+10lld%s\n", c->change_inuse,
            c->change_slabs, c->change_mem, c->change_allocs, c->change_frees,
            c->change_note);
}

static void json_change(const struct change *c)
{
    kprintf("{\"cache\":");
    shell_json_string(c->change_name);
    kprintf(",\"inuse\":%lld,\"slabs\":%lld,\"mem\":%lld,\"allocs\":%lld,"
            "\"frees\":%lld}\n",
            c->change_inuse, c->change_slabs, c->change_mem, c->change_allocs,
            c->change_frees);
}

static void add_change(struct change *sum, const struct change *c)
{
    sum->change_inuse += c->change_inuse;
    sum->change_slabs += c->change_slabs;
    sum->change_mem += c->change_mem;
    sum->change_allocs += c->change_allocs;
    sum->change_frees += c->change_frees;
}

static void print_diff(const struct mark *a, const struct mark *b)
{
    struct change c, sum = {.change_name = "TOTAL", .change_note = ""};
    struct heap_place at = {0};
    char age[HEAP_CELL];

    kprintf("%-*s %9s %8s %11s %10s %10s\n", HEAP_NAME, "CACHE", "dINUSE",
            "dSLABS", "dMEM/B", "dALLOC", "dFREE");
    while (next_change(a, b, &at, &c)) {
        print_change(&c);
        add_change(&sum, &c);
    }
    print_change(&sum);
    kprintf("from %s to %s: %s\n", a->mark_label, b->mark_label,
            heap_age(b->mark_ms - a->mark_ms, age));
    if (a->mark_left_out || b->mark_left_out)
        kprintf("! not compared: %zu caches of the one, %zu of the other\n",
                a->mark_left_out, b->mark_left_out);
}

static const struct mark *mark_named(const char *label)
{
    const struct mark *m = find_mark(label);

    if (!m && strcmp(label, NOW) == 0) {
        take(&now, NOW);
        m = &now;
    }
    if (!m)
        shell_error("there is no mark '%.32s'; `mark` lists them", label);
    return m;
}

static int cmd_diff(char **argv)
{
    struct heap_place at = {0};
    const struct mark *a, *b;
    struct change c;
    bool json = shell_option('j');

    a = mark_named(argv[1]);
    b = a ? mark_named(argv[2] ?: NOW) : NULL;
    if (!b)
        return 1;
    if (a == &now || (b != &now && a > b))
        return shell_error("the older mark comes first; `mark` lists them");
    while (json && next_change(a, b, &at, &c))
        json_change(&c);
    if (json)
        return 0;
    print_diff(a, b);
    if (b == &now)
        debugcmd_print_new_callers(a->mark_us);
    return 0;
}

static void offer_marks(const struct shell_offer *o)
{
    for (size_t i = 0; i < marks_taken(); i++)
        shell_offer(o, marks[i].mark_label);
}

SHELL_COMMAND(diff, cmd_diff);
SHELL_WORDS(MARK, offer_marks);
