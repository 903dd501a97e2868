/*
 * slabtop: the traffic of the slab caches, live, on both consoles.
 *
 * A screen is written over the last one from the top, each line erased after
 * its end, so that nothing flickers on a serial line; it is 24 lines high, as
 * terminals are at least. Between two screens the shell waits for a key, and
 * all other tasks run.
 */
#include "tools/workshop/observe/slabtop.h"
#include "drivers/console.h"
#include "drivers/pit.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/cmd_task.h"
#include "kernel/shell/shell.h"
#include "kernel/shell/words.h"
#include "mm/buddy_stat.h"
#include "mm/segkmem.h"

#define WIDTH       79 /* of a line that is erased after its end */
#define ROWS        18 /* of caches on a screen */
#define NAME        20
#define BAR         10
#define BATCH       8 /* tasks counted at once */
#define DEFAULT_MS  2000
#define DELAY_MAX_S 3600
#define KEY_MS      10 /* between two looks for a key */
#define REVERSE     "\033[7m"
#define BAR_HEAD    "  SHARE"
#define NORMAL      "\033[0m"

enum output {
    DISPLAY,
    PLAIN,
    JSON
};

struct view {
    enum output view_output;
    enum slabtop_order view_order;
    uint32_t view_ms;
    uint32_t view_looks; /* left; 0: no end */
    size_t view_first;   /* of the rows, on a screen */
};

struct slabtop_table slabtop_table;

static const struct {
    const char *order_word; /* of -s; its first letter is the key */
    const char *order_name;
} orders[SLABTOP_ORDERS] = {
    [SLABTOP_BY_MEM] = {"mem", "memory"},
    [SLABTOP_BY_ALLOC] = {"alloc", "allocs"},
    [SLABTOP_BY_FREE] = {"free", "frees"},
    [SLABTOP_BY_GROW] = {"grow", "grows"},
    [SLABTOP_BY_HIT] = {"hit", "hits"},
    [SLABTOP_BY_NAME] = {"name", "name"},
};

/* ---- lines -------------------------------------------------------------- */

static void put(const struct view *v, const char *text)
{
    if (v->view_output == DISPLAY)
        console_echo(text, strlen(text));
    else
        console_write(text, strlen(text));
}

/* A line, without what is longer than the screen is wide. */
static void line(const struct view *v, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void line(const struct view *v, const char *fmt, ...)
{
    char text[WIDTH + 1];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    put(v, text);
    put(v, v->view_output == DISPLAY ? "\033[K\n" : "\n");
}

/* ---- the head ----------------------------------------------------------- */

static unsigned count_tasks(void)
{
    struct task_stat st[BATCH];
    unsigned tasks = 0;
    pid_t last = -1;
    size_t n;

    while ((n = task_stats(last, st, BATCH)) > 0) {
        tasks += (unsigned)n;
        last = st[n - 1].stat_pid;
    }
    return tasks;
}

/* "12.3" MiB of so many pages. */
static const char *mib(size_t pages, char buf[HEAP_CELL])
{
    size_t tenths = (pages * 10 + 128) / 256;

    snprintf(buf, HEAP_CELL, "%zu.%zu", tenths / 10, tenths % 10);
    return buf;
}

static void print_times(const struct view *v)
{
    uint32_t s = (uint32_t)(slabtop_table.table_at_ms / 1000);
    char since[HEAP_CELL] = "boot";

    if (slabtop_table.table_ms < slabtop_table.table_at_ms)
        snprintf(since, sizeof(since), "%u.%02u s ago",
                 slabtop_table.table_ms / 1000,
                 slabtop_table.table_ms % 1000 / 10);
    line(v, "up %u:%02u:%02u   %u tasks   %zu caches%s   rates since %s",
         s / 3600, s / 60 % 60, s % 60, count_tasks(),
         slabtop_table.table_rows - 1,
         slabtop_table.table_rows == SLABTOP_ROWS ? " or more" : "", since);
}

static void print_memory(const struct view *v)
{
    char a[HEAP_CELL], b[HEAP_CELL];
    struct segkmem_stat seg;
    struct buddy_stat st;

    segkmem_stat(&seg);
    buddy_stat(&st);
    line(v, "pages: %zu free of %zu (%s of %s MiB)", st.stat_free_pages,
         st.stat_total_pages, mib(st.stat_free_pages, a),
         mib(st.stat_total_pages, b));
    line(v,
         "slabs: %zu pages (%s MiB), hash %zu, oversize %zu; "
         "%zu objects in %zu slabs",
         seg.stat_use[PAGE_SLAB], mib(seg.stat_use[PAGE_SLAB], a),
         seg.stat_use[PAGE_HASH], seg.stat_use[PAGE_OVERSIZE],
         slabtop_table.table_sum.row_inuse, slabtop_table.table_sum.row_slabs);
}

/* The keys; the one of the order in force stands out. */
static void print_keys(const struct view *v)
{
    if (v->view_output != DISPLAY)
        return;
    for (unsigned i = 0; i < SLABTOP_ORDERS; i++) {
        put(v, i == v->view_order ? REVERSE : "");
        put(v, (char[]){orders[i].order_word[0], ' ', '\0'});
        put(v, orders[i].order_name);
        put(v, NORMAL " ");
    }
    put(v, "  up down   space now   q quit\033[K\n");
}

/* ---- rows --------------------------------------------------------------- */

/* The share in the total of what the rows are ordered by, as a bar: blanks in
 * reverse look alike on every terminal. */
static void print_bar(const struct view *v, const struct slabtop_row *row)
{
    uint64_t whole = slabtop_value(&slabtop_table.table_sum, v->view_order);
    uint64_t part = slabtop_value(row, v->view_order);
    char bar[BAR + 1];
    size_t n;

    if (v->view_output != DISPLAY || row == &slabtop_table.table_sum ||
        whole == 0)
        return;
    n = (size_t)((part * BAR + whole / 2) / whole);
    memset(bar, ' ', sizeof(bar));
    bar[MIN(n, (size_t)BAR)] = '\0';
    put(v, "  " REVERSE);
    put(v, bar);
    put(v, NORMAL);
}

static const char *tenths(uint64_t rate, char buf[HEAP_CELL])
{
    if (rate >= 10000)
        return heap_count((rate + 5) / 10, 8, buf);
    return heap_percent((unsigned)rate, buf);
}

static void print_row(const struct view *v, const struct slabtop_row *row)
{
    char allocs[HEAP_CELL], frees[HEAP_CELL], grows[HEAP_CELL];
    char mem[HEAP_CELL], hit[HEAP_CELL] = "-";
    char text[WIDTH + 1];
    const uint64_t *delta = row->row_delta;

    if (slabtop_hit(row) >= 0)
        heap_percent((unsigned)slabtop_hit(row), hit);
    snprintf(text, sizeof(text), "%-*.*s %9s %9s %9s %9s %6s", NAME, NAME,
             row->row_name,
             tenths(slabtop_rate(delta[SLABTOP_ALLOCS], slabtop_table.table_ms),
                    allocs),
             tenths(slabtop_rate(delta[SLABTOP_FREES], slabtop_table.table_ms),
                    frees),
             tenths(slabtop_rate(delta[SLABTOP_GROWS], slabtop_table.table_ms),
                    grows),
             heap_count(row->row_mem / 1024, 9, mem), hit);
    put(v, text);
    print_bar(v, row);
    put(v, v->view_output == DISPLAY ? "\033[K\n" : "\n");
}

static void print_head(const struct view *v)
{
    char head[WIDTH + 2];

    snprintf(head, sizeof(head), "%-*s %9s %9s %9s %9s %6s", NAME, "CACHE",
             "ALLOC/s", "FREE/s", "GROW/s", "MEM/K", "HIT%");
    if (v->view_output != DISPLAY) {
        put(v, head);
        put(v, "\n");
        return;
    }
    put(v, REVERSE);
    put(v, head);
    put(v, BAR_HEAD);
    for (size_t n = strlen(head) + strlen(BAR_HEAD); n < WIDTH + 1; n++)
        put(v, " ");
    put(v, NORMAL "\n");
}

/* The rows from `first` on, `max` at most. Returns how many there are. */
static size_t print_rows(const struct view *v, size_t first, size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < slabtop_table.table_rows; i++) {
        const struct slabtop_row *row = slabtop_row(&slabtop_table, i);

        if (slabtop_idle(row))
            continue;
        if (n >= first && n - first < max)
            print_row(v, row);
        n++;
    }
    return n;
}

static void print_screen(struct view *v)
{
    bool screen = v->view_output == DISPLAY;
    size_t rows;

    put(v, screen ? "\033[H" : "");
    print_times(v);
    print_memory(v);
    print_keys(v);
    print_head(v);
    print_row(v, &slabtop_table.table_sum);
    rows = print_rows(v, v->view_first, screen ? ROWS : SIZE_MAX);
    if (v->view_first + ROWS > rows)
        v->view_first = rows > ROWS ? rows - ROWS : 0;
    put(v, screen ? "\033[J" : "\n");
}

/* ---- JSON --------------------------------------------------------------- */

/* The members that a row and the sum of all rows have. */
static void json_counts(const struct slabtop_row *row)
{
    kprintf(",\"allocs\":%llu,\"frees\":%llu,\"grows\":%llu,\"mem\":%llu,"
            "\"inuse\":%zu,\"slabs\":%zu}\n",
            (unsigned long long)row->row_delta[SLABTOP_ALLOCS],
            (unsigned long long)row->row_delta[SLABTOP_FREES],
            (unsigned long long)row->row_delta[SLABTOP_GROWS],
            (unsigned long long)row->row_mem, row->row_inuse, row->row_slabs);
}

static void json_table(void)
{
    struct segkmem_stat seg;
    struct buddy_stat st;

    segkmem_stat(&seg);
    buddy_stat(&st);
    kprintf("{\"at_ms\":%llu,\"ms\":%u,\"tasks\":%u,\"free_pages\":%zu,"
            "\"total_pages\":%zu,\"supplier_pages\":%zu",
            (unsigned long long)slabtop_table.table_at_ms,
            slabtop_table.table_ms, count_tasks(), st.stat_free_pages,
            st.stat_total_pages, seg.stat_pages);
    json_counts(&slabtop_table.table_sum);
    for (size_t i = 0; i < slabtop_table.table_rows; i++) {
        kprintf("{\"cache\":");
        shell_json_string(slabtop_row(&slabtop_table, i)->row_name);
        json_counts(slabtop_row(&slabtop_table, i));
    }
}

/* ---- keys --------------------------------------------------------------- */

static void show(struct view *v)
{
    slabtop_sort(&slabtop_table, v->view_order);
    if (v->view_output == JSON)
        json_table();
    else
        print_screen(v);
}

/* Acts on a key; false if it means to leave. Sets *now to look at once. */
static bool act(struct view *v, int key, bool *now)
{
    *now = key == ' ';
    if (key == KEY_DOWN || key == KEY_UP)
        v->view_first += key == KEY_DOWN ? 1 : v->view_first > 0 ? SIZE_MAX : 0;
    for (unsigned i = 0; i < SLABTOP_ORDERS; i++)
        if (key == orders[i].order_word[0]) {
            v->view_order = i;
            v->view_first = 0;
        }
    if (key != KEY_NONE && !*now && key != 'q' && v->view_output == DISPLAY)
        show(v);
    return key != 'q';
}

/* Waits for a key until `end_ms` and returns whether there is one. */
static bool wait_key(uint64_t end_ms)
{
    while (!console_key_pending() && timer_ms() < end_ms)
        sched_sleep_ms(KEY_MS);
    return console_key_pending();
}

/* Waits until the next look is due. False: the user wants to leave. */
static bool pause(struct view *v)
{
    uint64_t end = slabtop_table.table_at_ms + v->view_ms;
    bool at_once = false;

    while (!at_once && timer_ms() < end) {
        bool key = wait_key(end);

        if (shell_interrupted())
            return false;
        if (key && !act(v, console_trykey(), &at_once))
            return false;
    }
    return true;
}

static void watch(struct view *v)
{
    slabtop_begin(&slabtop_table, timer_ms());
    for (;;) {
        show(v);
        if (v->view_looks != 0 && --v->view_looks == 0)
            return;
        if (!pause(v))
            return;
        slabtop_look(&slabtop_table, timer_ms());
    }
}

/* ---- the command -------------------------------------------------------- */

/* Milliseconds from seconds with up to three decimals. False: invalid. */
static bool parse_delay(const char *word, uint32_t *ms)
{
    uint32_t unit = 1000;

    *ms = 0;
    if (*word < '0' || *word > '9')
        return false;
    for (; *word >= '0' && *word <= '9' && *ms <= DELAY_MAX_S * 1000; word++)
        *ms = *ms * 10 + (uint32_t)(*word - '0') * 1000;
    if (*word == '.')
        for (word++; *word >= '0' && *word <= '9' && unit > 1; word++)
            *ms += (uint32_t)(*word - '0') * (unit /= 10);
    return *word == '\0' && *ms >= 10 && *ms <= DELAY_MAX_S * 1000;
}

static enum slabtop_order order_of(const char *word)
{
    unsigned i = 0;

    while (word && strcmp(word, orders[i].order_word) != 0)
        i++;
    return i;
}

/* Returns 1 after an error. */
static int parse(struct view *v)
{
    const char *delay = shell_value('d');

    if (!heap_number('n', &v->view_looks))
        return 1;
    if (delay && !parse_delay(delay, &v->view_ms))
        return shell_error("'%.16s' is no delay; 0.01 to %u seconds are", delay,
                           DELAY_MAX_S);
    v->view_order = order_of(shell_value('s'));
    v->view_output = shell_option('j')   ? JSON
                     : shell_option('b') ? PLAIN
                                         : DISPLAY;
    return 0;
}

/* ---- the display -------------------------------------------------------- */

static bool display; /* the second screen is shown */

/* An empty screen without a cursor. On a terminal without a second screen the
 * end leaves the cursor below the text. */
static void display_begin(void)
{
    static const char begin[] = "\033[?1049h\033[H\033[2J\033[?25l";

    display = true;
    console_echo(begin, sizeof(begin) - 1);
}

/* A panic ends the display too. */
static void display_end(const void *arg)
{
    static const char end[] = "\033[0m\033[25;1H\n\033[?25h\033[?1049l";

    (void)arg;
    if (!display)
        return;
    display = false;
    console_echo(end, sizeof(end) - 1);
}

HOOK(HOOK_PANIC, display_end);

/* ---- the command -------------------------------------------------------- */

static int cmd_slabtop(char **argv)
{
    struct view v = {.view_ms = DEFAULT_MS};

    (void)argv;
    if (parse(&v) != 0 || !taskcmd_alive())
        return 1;
    if (v.view_output == DISPLAY)
        display_begin();
    watch(&v);
    display_end(NULL);
    return 0;
}

SHELL_COMMAND(slabtop, cmd_slabtop);
