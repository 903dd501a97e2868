/*
 * why: which objects keep nearly free slabs from being destroyed. The paper's
 * section 3.4 expects that they are few; `why` names them.
 *
 * Of a cache: the partial slabs with the fewest objects in use per page, a few
 * of them. Of a slab: all its objects.
 */
#include "drivers/console.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/shell/cmd_debug.h"
#include "kernel/shell/shell.h"
#include "mm/platform.h"

#define SLABS_SHOWN   8
#define OBJECTS_SHOWN 8 /* of each */

/* Partial slabs by objects in use, fewest first. */
struct nearly_free {
    size_t near_count;
    size_t near_partial; /* of the cache, in all */
    struct {
        size_t number; /* in list order */
        struct kmem_slab_stat st;
    } near_slab[SLABS_SHOWN];
};

static struct nearly_free near;
static uint8_t map[HEAP_MAP_BITS / 8];

/* Puts a slab at its place among the few that are kept. */
static void consider(size_t number, const struct kmem_slab_stat *st)
{
    size_t i = near.near_count;

    while (i > 0 && near.near_slab[i - 1].st.stat_refcnt > st->stat_refcnt)
        i--;
    if (i == SLABS_SHOWN)
        return;
    near.near_count = MIN(near.near_count + 1, (size_t)SLABS_SHOWN);
    memmove(&near.near_slab[i + 1], &near.near_slab[i],
            (near.near_count - 1 - i) * sizeof(near.near_slab[0]));
    near.near_slab[i].number = number;
    near.near_slab[i].st = *st;
}

static void find_nearly_free(struct kmem_cache *cp,
                             const struct kmem_cache_stat *cache)
{
    struct kmem_slab_stat st;

    memset(&near, 0, sizeof(near));
    for (size_t n = 0; n < cache->stat_slabs && kmem_slab_stat(cp, n, &st); n++)
        if (st.stat_state == KMEM_SLAB_PARTIAL) {
            near.near_partial++;
            consider(n, &st);
        }
}

/* ---- rows --------------------------------------------------------------- */

static void print_head(bool json)
{
    if (!json)
        kprintf(" %-10s %7s %-10s %6s  %s\n", "SLAB", "USED/N", "OBJ", "AGE",
                "CALLER");
}

static void json_object(const struct kmem_slab_stat *st, uintptr_t obj,
                        const struct kmem_buf_stat *buf)
{
    char caller[DEBUGCMD_CALLER];

    kprintf("{\"slab\":%lu,\"used\":%zu,\"objects\":%zu,\"obj\":%lu,"
            "\"age_us\":%llu,\"task\":%u,\"caller\":",
            (unsigned long)st->stat_slab, st->stat_refcnt, st->stat_chunks,
            (unsigned long)obj,
            (unsigned long long)(buf->stat_audited
                                     ? debugcmd_ago(&buf->stat_alloc)
                                     : 0),
            (unsigned)buf->stat_alloc.trans_task);
    shell_json_string(debugcmd_caller(&buf->stat_alloc, caller));
    kprintf("}\n");
}

static void print_object(const struct kmem_slab_stat *st, uintptr_t obj,
                         const struct kmem_buf_stat *buf, bool first)
{
    char caller[DEBUGCMD_CALLER];
    char age[HEAP_CELL];

    if (first)
        kprintf("%c0x%08lx %3zu/%-3zu", st->stat_bad ? '!' : ' ',
                (unsigned long)st->stat_slab, st->stat_refcnt, st->stat_chunks);
    else
        kprintf("%19s", "");
    kprintf(" 0x%08lx %6s  %s\n", (unsigned long)obj,
            debugcmd_age(&buf->stat_alloc, age),
            debugcmd_caller(&buf->stat_alloc, caller));
}

/* The objects in use of one slab; returns how many it showed. */
static size_t show_slab(struct kmem_cache *cp, size_t number,
                        const struct kmem_slab_stat *st, size_t most, bool json)
{
    struct kmem_cache_stat cache;
    struct kmem_buf_stat buf;
    size_t n = kmem_slab_map(cp, number, map, HEAP_MAP_BITS);
    size_t shown = 0;

    kmem_cache_stat(cp, &cache);
    for (size_t i = 0; i < MIN(n, (size_t)HEAP_MAP_BITS); i++) {
        uintptr_t obj = st->stat_base + st->stat_colour + i * cache.stat_chunk;

        if (!heap_map_used(map, i) || heap_object_cell(cp, obj, true) == 'o' ||
            shown++ >= most)
            continue;
        memset(&buf, 0, sizeof(buf));
        kmem_buf_stat((const void *)obj, &buf);
        if (json)
            json_object(st, obj, &buf);
        else
            print_object(st, obj, &buf, shown == 1);
    }
    if (shown > most && !json)
        kprintf("%19s and %zu more\n", "", shown - most);
    return shown;
}

/* ---- the command -------------------------------------------------------- */

static void why_cache(struct kmem_cache *cp, const struct kmem_cache_stat *st,
                      bool json)
{
    size_t objects = 0;

    print_head(json);
    find_nearly_free(cp, st);
    for (size_t i = 0; i < near.near_count && !shell_interrupted(); i++)
        objects += show_slab(cp, near.near_slab[i].number,
                             &near.near_slab[i].st, OBJECTS_SHOWN, json);
    if (json)
        return;
    if (near.near_count == 0)
        kprintf("(no slab of %s is partial)\n", st->stat_name);
    else
        kprintf(
            "%zu of %zu partial slabs; %zu frees would release %zu page%s\n",
            near.near_count, near.near_partial, objects,
            near.near_count * st->stat_slab_pages,
            plural(near.near_count * st->stat_slab_pages));
}

/* The slab that holds an address, or whose kmem_slab is there. */
static struct kmem_cache *find_slab(uintptr_t addr, struct kmem_slab_stat *st)
{
    struct kmem_cache *cp;
    size_t index;

    for (cp = kmem_cache_first(); cp; cp = kmem_cache_next(cp)) {
        size_t n = heap_slab_number(cp, addr);

        if (n != SIZE_MAX && kmem_slab_stat(cp, n, st))
            return cp;
    }
    if (addr < (uintptr_t)mm_phys_to_virt(0))
        return NULL;
    return kmem_slab_lookup((const void *)addr, st, &index);
}

static int why_slab(const char *word, bool json)
{
    struct kmem_slab_stat st;
    struct kmem_cache *cp;
    uintptr_t addr;

    if (!heap_address(word, &addr))
        return 1;
    cp = find_slab(addr, &st);
    if (!cp)
        return shell_error("'%.32s' is no cache and no slab's address; "
                           "`slabs` lists them",
                           word);
    print_head(json);
    if (show_slab(cp, heap_slab_number(cp, st.stat_slab), &st, HEAP_MAP_BITS,
                  json) == 0 &&
        !json)
        kprintf("(nothing: all its objects are free)\n");
    return 0;
}

static int cmd_why(char **argv)
{
    struct kmem_cache_stat st;
    struct kmem_cache *cp;
    bool json;

    json = shell_option('j');
    cp = kmem_cache_find(argv[1]);
    if (!cp)
        return why_slab(argv[1], json);
    kmem_cache_stat(cp, &st);
    why_cache(cp, &st, json);
    return 0;
}

SHELL_COMMAND(why, cmd_why);
