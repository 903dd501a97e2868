/*
 * Shared by the memory commands: see cmd_kmem.h.
 */
#include "kernel/shell/cmd_kmem.h"

#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/shell/shell.h"
#include "kernel/x86/paging.h"
#include "mm/debug/debug.h"
#include "mm/platform.h"
#include "mm/segkmem.h"

/* ---- sums --------------------------------------------------------------- */

void heap_add(struct heap_sum *sum, const struct kmem_cache_stat *st)
{
    sum->sum_caches++;
    sum->sum_inuse += st->stat_inuse;
    sum->sum_trapped += st->stat_trapped;
    sum->sum_total += st->stat_total;
    sum->sum_slabs += st->stat_slabs;
    sum->sum_full += st->stat_full_slabs;
    sum->sum_partial += st->stat_partial_slabs;
    sum->sum_free += st->stat_free_slabs;
    sum->sum_mem += st->stat_mem;
    sum->sum_used += (uint64_t)st->stat_inuse * st->stat_size;
    sum->sum_allocs += st->stat_allocs;
    sum->sum_frees += st->stat_frees;
    sum->sum_fails += st->stat_fails;
}

/* Adds the large allocations. Only their pages are known, so all bytes count as
 * used. */
static void add_large(struct heap_sum *sum)
{
    struct kmem_oversize_stat st;
    uint64_t mem;

    kmem_oversize_stat(&st);
    mem = (uint64_t)st.stat_pages * PAGE_SIZE;
    sum->sum_inuse += st.stat_inuse;
    sum->sum_mem += mem;
    sum->sum_used += mem;
    sum->sum_allocs += st.stat_allocs;
    sum->sum_frees += st.stat_frees;
    sum->sum_fails += st.stat_fails;
}

void heap_totals(struct heap_totals *t)
{
    struct kmem_cache_stat st;
    struct segkmem_stat seg;
    struct kmem_cache *cp;

    memset(t, 0, sizeof(*t));
    heap_all (cp, &st) {
        heap_add(&t->total_kind[st.stat_kind], &st);
        heap_add(&t->total_all, &st);
        if (st.stat_flags & KMEM_STAT_SUPPLY)
            t->total_own += st.stat_slab_bytes;
    }
    add_large(&t->total_large);
    add_large(&t->total_all);
    segkmem_stat(&seg);
    t->total_unmapped = (uint64_t)seg.stat_use[PAGE_UNMAPPED] * PAGE_SIZE;
    t->total_supplier = (uint64_t)seg.stat_pages * PAGE_SIZE;
}

bool heap_bad_row(const struct kmem_cache_stat *st)
{
    return st->stat_inuse > st->stat_total ||
           st->stat_total != st->stat_slabs * st->stat_slab_objects ||
           st->stat_allocs - st->stat_frees != st->stat_inuse ||
           st->stat_full_slabs + st->stat_partial_slabs + st->stat_free_slabs !=
               st->stat_slabs;
}

/* ---- order -------------------------------------------------------------- */

uint64_t heap_key_mem(const struct kmem_cache_stat *st)
{
    return st->stat_mem;
}

/* Puts a row, which was created after all others of the batch, in its place.
 * The last one of a full batch leaves it. */
static void add_row(struct heap_order *at, const struct heap_row *row)
{
    unsigned i = at->order_rows;

    if (i < HEAP_BATCH)
        at->order_rows++;
    else if (row->row_key > at->order_row[i - 1].row_key)
        i--;
    else
        return;
    for (; i > 0 && row->row_key > at->order_row[i - 1].row_key; i--)
        at->order_row[i] = at->order_row[i - 1];
    at->order_row[i] = *row;
}

/* Whether an earlier batch had this row. Keys may have changed since, so visits
 * are recorded; only for caches beyond HEAP_NOTED the key decides. */
static bool was_visited(const struct heap_order *at, const struct heap_row *row,
                        const struct heap_row *last)
{
    size_t i = row->row_index;

    if (i < HEAP_NOTED)
        return at->order_noted[i / 32] >> i % 32 & 1;
    return row->row_key > last->row_key ||
           (row->row_key == last->row_key && row->row_index <= last->row_index);
}

/* Finds the rows after those of the last batch. */
static void find_rows(struct heap_order *at, heap_key_t *key)
{
    struct heap_row last = {.row_key = UINT64_MAX};
    struct heap_row row = {.row_index = 0};
    struct kmem_cache_stat st;

    if (at->order_rows != 0)
        last = at->order_row[at->order_rows - 1];
    at->order_rows = at->order_visited = 0;
    heap_all (row.row_cache, &st) {
        row.row_key = key(&st);
        row.row_index++;
        if ((!at->order_only || at->order_only == row.row_cache) &&
            !was_visited(at, &row, &last))
            add_row(at, &row);
    }
}

struct kmem_cache *heap_next(struct heap_order *at, heap_key_t *key,
                             struct kmem_cache_stat *out)
{
    const struct heap_row *row;

    if (at->order_visited == at->order_rows)
        find_rows(at, key);
    if (at->order_rows == 0)
        return NULL;
    row = &at->order_row[at->order_visited++];
    if (row->row_index < HEAP_NOTED)
        at->order_noted[row->row_index / 32] |= 1u << row->row_index % 32;
    kmem_cache_stat(row->row_cache, out);
    return row->row_cache;
}

/* ---- numbers ------------------------------------------------------------ */

const char *heap_percent(uint64_t part, uint64_t whole, char buf[HEAP_CELL])
{
    unsigned permille =
        whole == 0 ? 0 : (unsigned)((part * 1000 + whole / 2) / whole);

    snprintf(buf, HEAP_CELL, "%u.%u", permille / 10, permille % 10);
    return buf;
}

const char *heap_age(uint64_t ms, char buf[HEAP_CELL])
{
    unsigned s = (unsigned)(ms / 1000);

    if (ms < 1000)
        snprintf(buf, HEAP_CELL, "%ums", (unsigned)ms);
    else if (s < 600)
        snprintf(buf, HEAP_CELL, "%u.%us", s, (unsigned)(ms % 1000) / 100);
    else if (s < 100 * 60)
        snprintf(buf, HEAP_CELL, "%um", s / 60);
    else if (s < 100 * 3600)
        snprintf(buf, HEAP_CELL, "%uh", s / 3600);
    else
        snprintf(buf, HEAP_CELL, "%ud", s / 86400);
    return buf;
}

size_t heap_header_bytes(const struct kmem_cache_stat *st)
{
    return st->stat_slab_pages * PAGE_SIZE -
           st->stat_slab_objects * st->stat_chunk - st->stat_slab_left;
}

uint32_t heap_random(uint32_t *state)
{
    uint32_t x = *state;

    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

/* ---- arguments ---------------------------------------------------------- */

bool heap_match(const char *name, const char *pattern)
{
    if (!pattern)
        return true;
    if (strchr(pattern, '*') || strchr(pattern, '?'))
        return glob_match(pattern, name);
    return strstr(name, pattern) != NULL;
}

struct kmem_cache *heap_cache_named(const char *name)
{
    struct kmem_cache *cp = kmem_cache_find(name);

    if (!cp)
        shell_error("no cache is called '%.20s'; `kmastat -z` lists them all",
                    name);
    return cp;
}

bool heap_cache_argument(const char *word, struct kmem_cache **cp)
{
    *cp = word ? heap_cache_named(word) : NULL;
    return !word || *cp;
}

static void offer_caches(const struct shell_offer *o)
{
    struct kmem_cache_stat st;
    struct kmem_cache *cp;

    heap_all (cp, &st)
        shell_offer(o, st.stat_name);
}

SHELL_WORDS(CACHE, offer_caches);
SHELL_WORDS(PATTERN, offer_caches);

/* "name" or "name+0x1c", as stacks have it. */
static bool place_of(const char *word, uintptr_t *addr)
{
    const char *plus = strchr(word, '+');
    size_t length = plus ? (size_t)(plus - word) : strlen(word);
    uint32_t offset = 0;
    char name[64];

    if (length >= sizeof(name) || (plus && !parse_u32(plus + 1, &offset)))
        return false;
    strlcpy(name, word, length + 1);
    *addr = symbol_address(name);
    if (*addr == 0)
        return false;
    *addr += offset;
    return true;
}

bool heap_is_address(const char *word, uintptr_t *addr)
{
    bool prefixed = word[0] == '0' && (word[1] | 32) == 'x';
    char hex[16];
    uint32_t value;

    if (place_of(word, addr))
        return true;
    if (snprintf(hex, sizeof(hex), "%s%s", prefixed ? "" : "0x", word) >=
            (int)sizeof(hex) ||
        !parse_u32(hex, &value))
        return false;
    *addr = value;
    return true;
}

bool heap_address(const char *word, uintptr_t *addr)
{
    bool is = heap_is_address(word, addr);

    if (!is)
        shell_error(
            "'%.24s' is no address; write one as 0xc0123456, or a symbol",
            word);
    return is;
}

/* There are thousands: only those that begin with what was typed, and not the
 * compiler's parts of functions, as kmain.cold. */
void heap_offer_symbols(const struct shell_offer *o, uint32_t n)
{
    for (const struct symbol *s = symbol_table;
         *o->offer_typed && s < symbol_table + n; s++)
        if (s->symbol_name && !strchr(s->symbol_name, '.'))
            shell_offer(o, s->symbol_name);
}

static void offer_symbols(const struct shell_offer *o)
{
    heap_offer_symbols(o, symbol_count);
}

SHELL_WORDS(SYMBOL, offer_symbols);

bool heap_number(char letter, uint32_t *n)
{
    const char *word = shell_value(letter);

    if (!word || (parse_u32(word, n) && *n != 0))
        return true;
    shell_error("-%c wants a number from 1 on, not '%.32s'", letter, word);
    return false;
}

/* ---- memory ------------------------------------------------------------- */

bool heap_word(uintptr_t addr, uintptr_t *word)
{
    if (!paging_readable(addr) || !paging_readable(addr + sizeof(*word) - 1))
        return false;
    memcpy(word, (const void *)addr, sizeof(*word));
    return true;
}

void heap_note_broken(struct kmem_cache *cp)
{
    const char *where;
    const char *broken = kmem_cache_verify(cp, &where);

    if (broken)
        kprintf("! %s: %s\n", where, broken);
}

/* ---- slabs -------------------------------------------------------------- */

size_t heap_slab_number(struct kmem_cache *cp, uintptr_t slab)
{
    struct kmem_slab_stat st;

    for (size_t n = 0; kmem_slab_stat(cp, n, &st); n++)
        if (st.stat_slab == slab)
            return n;
    return SIZE_MAX;
}

const struct heap_state *heap_buf_state(const struct kmem_buf_stat *b)
{
    static const struct heap_state used = {'#', "used", "in use"},
                                   free = {'.', "free", "free"},
                                   round = {'o', "round",
                                            "free, in a magazine"};

    return b->stat_in_magazine              ? &round
           : b->stat_state == KMEM_BUF_FREE ? &free
                                            : &used;
}

bool heap_buf_bad(const struct kmem_buf_stat *b,
                  const struct kmem_cache_stat *cache)
{
    return (cache->stat_flags & KMEM_STAT_LARGE) && b->stat_bufctl == 0;
}

char heap_object_cell(uintptr_t addr, bool used)
{
    struct kmem_buf_stat b;

    if (MM_MAGAZINES && used && kmem_buf_stat((const void *)addr, &b))
        return heap_buf_state(&b)->state_cell;
    return used ? '#' : '.';
}

const char *heap_state_name(enum kmem_slab_state state)
{
    static const char *const names[] = {
        [KMEM_SLAB_FULL] = "full",
        [KMEM_SLAB_PARTIAL] = "partial",
        [KMEM_SLAB_FREE] = "free",
    };

    return names[state];
}
