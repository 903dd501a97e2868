/*
 * cache -o: a row for each allocated or free object of a cache, or of all:
 * slabs in the order of the cache's list, objects in that of their addresses.
 */
#include "kernel/lib/printf.h"
#include "kernel/shell/cmd_debug.h"
#include "kernel/shell/shell.h"

#define WORDS 3 /* of an object that have room in a row */

struct objects {
    struct table objects_table;
    bool objects_used; /* those that are allocated, else free ones */
    uint32_t objects_most, objects_rows;
    const struct kmem_cache_stat *objects_cache;
};

/* A row. */
struct object {
    struct kmem_buf_stat object_stat;
    const char *object_cache, *object_state;
    bool object_bad;
    char object_shown[HEAP_CELL]; /* the address with its mark */
    uint64_t object_age; /* in microseconds; all ones: not known, as the next */
    uint32_t object_task;
    const char *object_caller;
};

static void print_object_words(const struct table *t, const void *row)
{
    uintptr_t addr = ((const struct object *)row)->object_stat.stat_buf;
    uintptr_t word;

    t->table_print(t->table_to, t->table_json ? "[" : "");
    for (unsigned i = 0; i < WORDS; i++, addr += sizeof(word))
        if (!heap_word(addr, &word))
            t->table_print(t->table_to, t->table_json ? "" : " unmapped");
        else if (t->table_json)
            t->table_print(t->table_to, "%s%lu", i ? "," : "",
                           (unsigned long)word);
        else
            t->table_print(t->table_to, " %08lx", (unsigned long)word);
    t->table_print(t->table_to, t->table_json ? "]" : "");
}

#define OBJECT(member, ...) COLUMN(struct object, object_##member, __VA_ARGS__)

static const struct column object_columns[] = {
    OBJECT(stat.stat_buf, NUMBER, 0, NULL, "addr"),
    OBJECT(shown, CHARS, -11, " ADDR", NULL),
    OBJECT(cache, STRING, -16, "CACHE", "cache"),
    OBJECT(stat.stat_slab, ADDRESS, -10, "SLAB", "slab"),
    OBJECT(stat.stat_index, NUMBER, 4, "IDX", "index"),
    OBJECT(state, STRING, -7, "STATE", "state"),
    OBJECT(bad, FLAG, 0, NULL, "bad"),
    COLUMN_BY(print_object_words, -26, "FIRST-WORDS", "words"),
    OBJECT(age, OPTIONAL, 0, NULL, "age_us"),
    OBJECT(task, OPTIONAL, 0, NULL, "task"),
    OBJECT(caller, STRING, 0, NULL, "caller"),
    {0},
};

/* A kmem_buf_fn_t. */
static bool visit_object(const struct kmem_buf_stat *b, void *arg)
{
    struct objects *o = arg;
    struct object row = {.object_stat = *b,
                         .object_cache = o->objects_cache->stat_name,
                         .object_state = heap_buf_state(b)->state_name,
                         .object_bad = heap_buf_bad(b, o->objects_cache),
                         .object_age = UINT64_MAX,
                         .object_task = UINT32_MAX};
    char caller[DEBUGCMD_CALLER];

    if ((b->stat_state != KMEM_BUF_FREE) != o->objects_used)
        return !shell_interrupted();
    snprintf(row.object_shown, HEAP_CELL, "%c0x%08lx",
             row.object_bad ? '!' : ' ', (unsigned long)b->stat_buf);
    if (o->objects_used && b->stat_audited) {
        row.object_age = debugcmd_ago(&b->stat_alloc);
        row.object_task = b->stat_alloc.trans_task;
        row.object_caller = debugcmd_caller(&b->stat_alloc, caller);
    }
    table_row(&o->objects_table, &row);
    return ++o->objects_rows < o->objects_most && !shell_interrupted();
}

int heap_print_objects(char **argv)
{
    struct objects o = {.objects_used = *shell_value('o') == 'a',
                        .objects_most = UINT32_MAX};
    struct kmem_cache_stat st;
    struct kmem_cache *cp, *only;

    if (!heap_number('n', &o.objects_most) ||
        !heap_cache_argument(argv[1], &only))
        return 1;
    o.objects_cache = &st;
    o.objects_table = shell_table(object_columns);
    heap_each (cp, only, &st) {
        if (o.objects_rows == o.objects_most)
            break;
        kmem_buf_walk(cp, visit_object, &o);
        if (!o.objects_table.table_json)
            heap_note_broken(cp);
    }
    if (!o.objects_table.table_json)
        kprintf(
            "%u row%s%s\n", (unsigned)o.objects_rows, plural(o.objects_rows),
            o.objects_rows == o.objects_most ? ", as many as asked for" : "");
    return 0;
}
