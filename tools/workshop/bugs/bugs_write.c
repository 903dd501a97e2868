/*
 * Planted bugs: wrong stores. After a buffer's end, before its start, into
 * freed memory, into the allocator's data.
 */
#include "kernel/lib/string.h"
#include "tools/workshop/bugs/bugs_impl.h"
#include "mm/debug/debug_impl.h"

BUGS_INLINE struct snode *node_new(const char *name)
{
    struct snode *n = kmem_cache_alloc(bugs_sandbox(BUGS_SNODE), KM_SLEEP);

    n->next = NULL;
    n->key = 1;
    strlcpy(n->name, name, sizeof(n->name));
    n->seen = 0;
    return n;
}

/* Allocates two objects, which checks free buffers, and frees them. */
static void allocate_again(void)
{
    struct snode *first, *second;

    bugs_step(BUGS_AT_ALLOC);
    first = node_new("again");
    second = node_new("again");
    bugs_step(BUGS_NEVER);
    node_free(second);
    node_free(first);
}

/* ---- after it was freed ------------------------------------------------- */

void bug_write_after_free(void)
{
    struct snode *n = node_new("victim");

    node_free(n);
    bugs_will_write(n, &n->key, 0x34);
    n->key = 0x34; /* culprit: write-after-free */
    allocate_again();
}

void bug_byte_after_free(void)
{
    struct snode *n = node_new("victim");

    node_free(n);
    bugs_will_write(n, &n->name[9], 'X');
    n->name[9] = 'X'; /* culprit: byte-after-free */
    allocate_again();
}

/* In the small layout the last word is the freelist's link. One allocation is
 * safe: it returns this buffer. The next would follow the link. */
void bug_link_after_free(void)
{
    struct snode *n = node_new("victim");

    node_free(n);
    bugs_sandboxes_remember(n, NULL);
    bugs_will_write(n, &n->seen, 1);
    n->seen = 1; /* culprit: link-after-free */
    bugs_step(BUGS_AT_ALLOC);
    n = node_new("again");
    bugs_look();
    if (!bugs_is_plain(BUGS_SNODE))
        node_free(n);
}

/* An array that grows moves: pointers into it are stale then. */
struct vector {
    uint32_t *v_items;
    size_t v_room;
};

static void vector_grow(struct vector *v)
{
    size_t bytes = v->v_room * sizeof(*v->v_items);
    uint32_t *items = kmem_alloc(2 * bytes, KM_SLEEP);

    memcpy(items, v->v_items, bytes);
    kmem_free(v->v_items, bytes);
    v->v_items = items;
    v->v_room *= 2;
}

void bug_stale_realloc(void)
{
    struct vector v = {.v_items = kmem_zalloc(336, KM_SLEEP), .v_room = 84};
    uint32_t *first = &v.v_items[0];
    uint32_t *before = v.v_items;

    vector_grow(&v);
    bugs_will_write(before, first, 7);
    *first = 7; /* culprit: stale-realloc */
    bugs_step(BUGS_AT_ALLOC);
    kmem_free(kmem_alloc(336, KM_SLEEP), 336);
    kmem_free(v.v_items, v.v_room * sizeof(*v.v_items));
}

/* It is freed, but still on the list: its neighbour's removal writes to it. */
struct member {
    struct list member_link;
    uint32_t member_data[6];
};

void bug_dangling_list(void)
{
    struct kmem_cache *cache = bugs_sandbox(BUGS_SNODE);
    struct member *a = kmem_cache_alloc(cache, KM_SLEEP);
    struct member *b = kmem_cache_alloc(cache, KM_SLEEP);
    struct list *prev, *next;

    list_init(&a->member_link);
    list_insert_after(&a->member_link, &b->member_link);
    prev = b->member_link.prev;
    next = b->member_link.next;
    kmem_cache_free(cache, a);
    bugs_will_write(a, &prev->next, (uintptr_t)next);
    prev->next = next; /* culprit: dangling-list */
    next->prev = prev;
    allocate_again();
    kmem_cache_free(cache, b);
}

static struct snode root;

/* Two users, one counted: the first put frees it while the other uses it. */
static void node_put(struct snode *n)
{
    if (--n->key == 0)
        node_free(n);
}

void bug_early_put(void)
{
    struct snode *n = node_new("shared");
    struct snode *mine = n; /* and no n->key++ */

    node_put(n);
    bugs_will_write(mine, &mine->next, (uintptr_t)&root);
    mine->next = &root; /* culprit: early-put */
    allocate_again();
}

/* ---- past the end, before the start ------------------------------------- */

void bug_off_by_one(void)
{
    struct snode *n = node_new("victim");
    uint8_t *bytes = (uint8_t *)n;

    bugs_will_write(n, bytes + sizeof(*n), 0);
    for (size_t i = 0; i <= sizeof(*n); i++)
        bytes[i] = 0; /* culprit: off-by-one */
    bugs_step(BUGS_AT_FREE);
    node_free(n);
    allocate_again();
}

/* The length of a string does not include its NUL. */
void bug_string_end(void)
{
    static const char text[] = "thirteen char";
    size_t length = strlen(text);
    char *copy = kmem_alloc(length, KM_SLEEP);

    bugs_will_write(copy, copy + length, 0);
    for (size_t i = 0; i < length; i++)
        copy[i] = text[i];
    bugs_hide(copy);
    copy[length] = '\0'; /* culprit: string-end */
    bugs_step(BUGS_AT_FREE);
    kmem_free(copy, length);
}

/* The source is larger than the target. */
void bug_too_long(void)
{
    struct snode *n = node_new("victim");
    uint32_t *words = (uint32_t *)n;

    bugs_will_write(n, words + 8, 0x64646464);
    for (size_t i = 0; i < 12; i++)
        words[i] = 0x64646464; /* culprit: too-long */
    bugs_step(BUGS_AT_FREE);
    node_free(n);
    allocate_again();
}

/* A number written from its last digit on, and one digit too many. The
 * neighbour before it is in use: its last byte changes. */
void bug_underrun(void)
{
    struct snode *before = node_new("neighbour");
    char *digits = (char *)node_new("");
    char *p = digits + 8;

    bugs_hide(p);
    bugs_will_write(digits, digits - 1, '7');
    for (int i = 0; i < 9; i++)
        *--p = '7'; /* culprit: underrun */
    bugs_step(BUGS_AT_FREE);
    kmem_cache_free(bugs_sandbox(BUGS_SNODE), digits);
    bugs_step(BUGS_NEVER);
    before->seen = 0;
    node_free(before);
}

#define IN_A_SLAB 127

/* A list of `n` nodes, the newest first. */
static struct snode *nodes_new(int n)
{
    struct snode *all = NULL;

    while (n-- != 0) {
        struct snode *node = node_new("one of many");

        node->next = all;
        all = node;
    }
    return all;
}

static void nodes_free(struct snode *all)
{
    while (all != NULL) {
        struct snode *next = all->next;

        node_free(all);
        all = next;
    }
}

/* The last of a small slab: after it is the slab's data. */
void bug_last_in_slab(void)
{
    struct snode *all = nodes_new(IN_A_SLAB);
    struct snode *last = all;

    bugs_sandboxes_remember(last, NULL);
    bugs_will_write(last, &last[1].next, 0);
    last[1].next = NULL; /* culprit: last-in-slab */
    if (bugs_is_plain(BUGS_SNODE))
        bugs_look(); /* the first free would follow the slab's links */
    else
        bugs_step(BUGS_AT_FREE);
    nodes_free(all);
    bugs_step(bugs_is_plain(BUGS_SNODE) ? BUGS_NEVER : BUGS_AT_ALLOC);
    all = nodes_new(IN_A_SLAB + 1);
    bugs_step(BUGS_NEVER);
    nodes_free(all);
}

/* The product does not fit 32 bits: there is room for one. */
struct reading {
    uint32_t reading_time;
    uint32_t reading_value[511];
};

static struct reading *readings_new(size_t n)
{
    return kmem_alloc(n * sizeof(struct reading), KM_SLEEP);
}

void bug_overflow(void)
{
    struct reading *r = readings_new((1u << 21) + 1);
    struct reading *mine = kmem_alloc(sizeof(*r), KM_SLEEP);

    bugs_will_write(r, &r[1].reading_time, 99);
    if (mine == r + 1 || !bugs_is_plain(BUGS_SNODE))
        r[1].reading_time = 99; /* culprit: overflow */
    bugs_step(BUGS_AT_FREE);
    kmem_free(r, sizeof(*r));
    bugs_step(BUGS_NEVER);
    kmem_free(mine, sizeof(*r));
}

/* ---- the allocator's data ----------------------------------------------- */

/* A buffer that has just been freed. */
static bool free_victim(struct kmem_buf_stat *b)
{
    struct snode *n = node_new("victim");

    node_free(n);
    bugs_sandboxes_remember(n, NULL);
    return kmem_buf_stat(n, b);
}

/* A wild pointer hits the control block of a free buffer, which is the buffer's
 * own last word in the small layout. */
void bug_wild_freelist(void)
{
    struct snode *stays = node_new("neighbour");
    struct kmem_buf_stat b;
    struct snode *n;
    uint32_t *wild;

    if (!free_victim(&b))
        return;
    wild = (uint32_t *)b.stat_bufctl;
    bugs_hide(wild);
    *wild = 0x10; /* culprit: wild-freelist */
    bugs_step(BUGS_AT_ALLOC);
    n = node_new("again");
    if (!bugs_is_plain(BUGS_SNODE)) {
        node_free(node_new("again"));
        node_free(n);
    }
    bugs_look(); /* in the plain layout the next would follow the link */
    node_free(stays);
}

/* The same for an allocated buffer; in the small layout it has none. */
void bug_wild_bufctl(void)
{
    struct snode *n = node_new("victim");
    struct kmem_buf_stat b;
    uint32_t *wild = &n->seen;

    if (!kmem_buf_stat(n, &b))
        return;
    if (b.stat_bufctl != 0)
        wild = (uint32_t *)&((struct kmem_bufctl *)b.stat_bufctl)->bufctl_slab;
    bugs_hide(wild);
    *wild = 0x10; /* culprit: wild-bufctl */
    bugs_step(BUGS_AT_FREE);
    node_free(n);
}

/* And for the slab's data: more buffers allocated than the slab has. */
void bug_wild_slab(void)
{
    struct snode *stays = node_new("neighbour");
    struct kmem_buf_stat b;
    uint32_t *wild;

    if (!free_victim(&b))
        return;
    wild = &((struct kmem_slab *)b.stat_slab)->slab_refcnt;
    bugs_hide(wild);
    *wild = 0x10000; /* culprit: wild-slab */
    bugs_step(BUGS_AT_ALLOC);
    node_free(node_new("again"));
    bugs_look();
    node_free(stays);
}
