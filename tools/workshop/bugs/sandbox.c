/*
 * Sandboxes: caches that only planted bugs use, and a few size classes of
 * kmem_alloc.
 *
 * A bug that nothing finds leaves its sandbox damaged: in the plain layout the
 * links are in the buffers, and no check reads them. So the page and the counts
 * are copied before a run and restored after it.
 */
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "tools/workshop/bugs/bugs_impl.h"
#include "mm/debug/debug_impl.h"
#include "mm/inspect/kmem_stat.h"

static struct kmem_cache *sandboxes[BUGS_SANDBOXES];

/* The constructed state, and what a destructor finds when it is broken. */
static void conn_ctor(void *obj, size_t size)
{
    struct conn *c = obj;

    memset(c, 0, size);
    list_init(&c->conn_link);
}

static void conn_dtor(void *obj, size_t size)
{
    const struct conn *c = obj;

    (void)size;
    if (c->conn_users != 0)
        bugs_note("the destructor finds an object with a user");
}

static const struct {
    const char *name;
    size_t size;
    kmem_ctor_t *ctor;
    kmem_dtor_t *dtor;
} kinds[BUGS_SANDBOXES] = {
    [BUGS_SNODE] = {"bugs_snode", sizeof(struct snode), NULL, NULL},
    [BUGS_CONN] = {"bugs_conn", sizeof(struct conn), conn_ctor, conn_dtor},
    [BUGS_FRAME] = {"bugs_frame", sizeof(struct frame), NULL, NULL},
};

/* Sizes that bugs ask kmem_alloc for. */
static const uint16_t class_sizes[] = {13, 336, 672, 2048};

#define PLACES (BUGS_SANDBOXES + ARRAY_SIZE(class_sizes))

static struct kmem_cache *place(size_t i)
{
    return i < BUGS_SANDBOXES
               ? sandboxes[i]
               : kmem_size_class(class_sizes[i - BUGS_SANDBOXES]);
}

struct kmem_cache *bugs_sandbox(enum bugs_sandbox which)
{
    return sandboxes[which];
}

bool bugs_is_plain(enum bugs_sandbox which)
{
    return (sandboxes[which]->cache_flags & KMF_MODES) == 0;
}

unsigned bugs_modes(void)
{
    return sandboxes[0] == NULL ? 0 : kmem_debug_modes(sandboxes[0]);
}

/* ---- modes -------------------------------------------------------------- */

/* Renames a sandbox's cache, in which leaked objects remain; the sandbox gets a
 * new cache. */
static void abandon(size_t i)
{
    static unsigned number;

    mm_lock(&kmem_list_lock);
    snprintf(sandboxes[i]->cache_name, sizeof(sandboxes[i]->cache_name),
             "bugs_left_%u", ++number);
    mm_unlock(&kmem_list_lock);
    sandboxes[i] = NULL;
}

static bool make_sandboxes(void)
{
    bool all = true;

    for (size_t i = 0; i < BUGS_SANDBOXES; i++) {
        if (sandboxes[i] != NULL && kmem_inuse(sandboxes[i]) != 0)
            abandon(i);
        if (sandboxes[i] == NULL)
            sandboxes[i] = kmem_cache_create(kinds[i].name, kinds[i].size, 0,
                                             kinds[i].ctor, kinds[i].dtor);
        all = all && sandboxes[i] != NULL;
    }
    return all;
}

static unsigned modes_before[PLACES];

/* A size class with objects of others keeps its modes; few bugs use one. */
static int set_modes(size_t i, unsigned modes)
{
    int error = kmem_debug_set(place(i), modes);

    if (error != -KMEM_EBUSY || i < BUGS_SANDBOXES)
        return error;
    mm_print("%s keeps its modes, having %u allocated objects\n",
             place(i)->cache_name, (unsigned)kmem_inuse(place(i)));
    return 0;
}

int bugs_open(unsigned modes)
{
    int error = 0;

    if (!make_sandboxes())
        return -KMEM_ENOMEM;
    for (size_t i = 0; i < PLACES; i++)
        modes_before[i] = kmem_debug_modes(place(i));
    if (modes == BUGS_AS_IT_IS)
        return 0;
    for (size_t i = 0; i < PLACES && error == 0; i++)
        error = set_modes(i, modes);
    if (error != 0)
        bugs_close();
    return error;
}

/* (A sandbox with an object left keeps its modes.) */
void bugs_close(void)
{
    for (size_t i = 0; i < PLACES; i++)
        if (place(i) != NULL)
            kmem_debug_set(place(i), modes_before[i]);
}

/* Sandboxes without an object, in the modes that they are in. */
void bugs_sandboxes_clean(void)
{
    unsigned modes = bugs_modes();

    make_sandboxes();
    for (size_t i = 0; i < BUGS_SANDBOXES; i++) {
        kmem_debug_set(sandboxes[i], modes);
        kmem_cache_reap(sandboxes[i], KMEM_REAP_ALL);
    }
}

/* ---- repair ------------------------------------------------------------- */

static struct memory {
    void *page;
    struct kmem_cache *owner;
    struct kmem_cache cache;
    uint8_t bytes[PAGE_SIZE];
} memory[2];

static void remember(struct memory *m, void *buf)
{
    struct kmem_buf_stat b;

    if (buf == NULL || !kmem_buf_stat(buf, &b) ||
        (b.stat_cache->cache_flags & KMF_HASH) != 0)
        return;
    m->owner = b.stat_cache;
    m->cache = *m->owner;
    m->page = (void *)((uintptr_t)buf & ~(uintptr_t)PAGE_MASK);
    memcpy(m->bytes, m->page, PAGE_SIZE);
}

void bugs_sandboxes_remember(void *a, void *b)
{
    remember(&memory[0], a);
    remember(&memory[1], b);
}

/* Restores the slabs' state: not the lock, not the list of caches. */
static void mend(struct memory *m)
{
    struct kmem_cache *cp = m->owner;

    if (m->page == NULL)
        return;
    mm_lock(&cp->cache_lock);
    memcpy(m->page, m->bytes, PAGE_SIZE);
    cp->cache_freelist = m->cache.cache_freelist;
    cp->cache_null = m->cache.cache_null;
    cp->cache_allocs = m->cache.cache_allocs;
    cp->cache_frees = m->cache.cache_frees;
    cp->cache_free_slabs = m->cache.cache_free_slabs;
    cp->cache_ws_min = m->cache.cache_ws_min;
    cp->cache_full_slabs = m->cache.cache_full_slabs;
    mm_unlock(&cp->cache_lock);
    memset(m, 0, sizeof(*m)); /* or it would point to buffers */
}

void bugs_sandboxes_repair(void)
{
    mend(&memory[0]);
    mend(&memory[1]);
}

/* ---- checks ------------------------------------------------------------- */

const char *bugs_sandboxes_verify(void)
{
    const char *where;
    const char *why = NULL;

    for (size_t i = 0; i < PLACES && why == NULL; i++)
        why = kmem_cache_verify(place(i), &where);
    return why;
}

/* Addresses of leaked buffers, all bits inverted, so that a scan for pointers
 * does not see them. */
static struct {
    uintptr_t not_buf;
    struct kmem_cache *cache; /* a sandbox, or abandoned */
} lost[8];
static size_t lost_count;

void bugs_lose(enum bugs_sandbox which, const void *buf)
{
    lost[lost_count].not_buf = ~(uintptr_t)buf;
    lost[lost_count++].cache = sandboxes[which];
}

static bool count_ours(const struct kmem_buf_stat *b, void *arg)
{
    for (size_t i = 0; i < BUGS_SANDBOXES; i++)
        *(size_t *)arg += b->stat_cache == sandboxes[i];
    return true;
}

size_t bugs_sandboxes_leaks(void)
{
    struct kmem_leak_stat stat;
    size_t found = 0;

    return kmem_leak_scan(count_ours, &found, &stat) ? found : 0;
}

void bugs_sandboxes_found(void)
{
    while (lost_count != 0) {
        lost_count--;
        kmem_cache_free(lost[lost_count].cache,
                        (void *)~lost[lost_count].not_buf);
    }
}
