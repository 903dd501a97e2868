/*
 * The zoo's cages: caches that nobody else uses, and a few size classes of
 * kmem_alloc.
 *
 * A bug that nothing finds leaves its cage broken: in the plain layout, where
 * links lie in the buffers and nobody looks at them. So the page and the counts
 * are copied before, and put back after.
 */
#include "kernel/lib/string.h"
#include "tools/workshop/bugs/zoo_impl.h"
#include "mm/kmem_impl.h"
#include "mm/debug/leak.h"
#include "mm/kmem_stat.h"

static struct kmem_cache *cages[ZOO_CAGES];

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
        zoo_noticed("the destructor finds an object with a user");
}

static const struct {
    const char *name;
    size_t size;
    kmem_ctor_t *ctor;
    kmem_dtor_t *dtor;
} kinds[ZOO_CAGES] = {
    [ZOO_SNODE] = {"zoo_snode", sizeof(struct snode), NULL, NULL},
    [ZOO_CONN] = {"zoo_conn", sizeof(struct conn), conn_ctor, conn_dtor},
    [ZOO_FRAME] = {"zoo_frame", sizeof(struct frame), NULL, NULL},
};

/* Sizes that bugs ask kmem_alloc for. */
static const uint16_t class_sizes[] = {13, 336, 672, 2048};

#define PLACES (ZOO_CAGES + ARRAY_SIZE(class_sizes))

static struct kmem_cache *place(size_t i)
{
    return i < ZOO_CAGES ? cages[i]
                         : kmem_size_class(class_sizes[i - ZOO_CAGES]);
}

struct kmem_cache *zoo_cage(enum zoo_cage which)
{
    return cages[which];
}

bool zoo_is_plain(enum zoo_cage which)
{
    return (cages[which]->cache_flags & KMF_DEBUG) == 0;
}

unsigned zoo_modes(void)
{
    return cages[0] == NULL ? 0 : kmem_debug_modes(cages[0]);
}

/* ---- modes -------------------------------------------------------------- */

static bool make_cages(void)
{
    bool all = true;

    for (size_t i = 0; i < ZOO_CAGES; i++) {
        if (cages[i] == NULL)
            cages[i] = kmem_cache_create(kinds[i].name, kinds[i].size, 0,
                                         kinds[i].ctor, kinds[i].dtor);
        all = all && cages[i] != NULL;
    }
    return all;
}

static unsigned modes_before[PLACES];

int zoo_cages_open(unsigned modes)
{
    int error = make_cages() ? 0 : -KMEM_ENOMEM;

    for (size_t i = 0; i < PLACES && error == 0; i++) {
        modes_before[i] = kmem_debug_modes(place(i));
        if (modes != ZOO_AS_IT_IS)
            error = kmem_debug_set(place(i), modes);
    }
    return error;
}

void zoo_cages_close(void)
{
    for (size_t i = 0; i < PLACES; i++)
        if (place(i) != NULL)
            kmem_debug_set(place(i), modes_before[i]);
}

/* Another mode, and back: what is out goes to an elder. */
void zoo_cages_clean(void)
{
    for (size_t i = 0; i < ZOO_CAGES; i++) {
        unsigned modes = kmem_debug_modes(cages[i]);

        if (kmem_inuse(cages[i]) != 0) {
            kmem_debug_set(cages[i], modes ^ KMF_CHECK);
            kmem_debug_set(cages[i], modes);
        }
        kmem_cache_reap(cages[i], KMEM_REAP_ALL, NULL);
    }
}

/* ---- putting back ------------------------------------------------------- */

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

void zoo_cages_remember(void *a, void *b)
{
    remember(&memory[0], a);
    remember(&memory[1], b);
}

/* All but what does not belong to the slabs: the lock, the list of caches. */
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

void zoo_cages_mend(void)
{
    mend(&memory[0]);
    mend(&memory[1]);
}

/* ---- looking ------------------------------------------------------------ */

const char *zoo_cages_verify(void)
{
    const char *where;
    const char *why = NULL;

    for (size_t i = 0; i < PLACES && why == NULL; i++)
        why = kmem_cache_verify(place(i), &where);
    return why;
}

/* Addresses of lost buffers, each bit the other way round: a scan for pointers
 * does not see them. */
static struct {
    uintptr_t not_buf;
    enum zoo_cage cage;
} lost[8];
static size_t lost_count;

void zoo_lose(enum zoo_cage which, const void *buf)
{
    lost[lost_count].not_buf = ~(uintptr_t)buf;
    lost[lost_count++].cage = which;
}

static bool count_ours(const struct kmem_buf_stat *b, void *arg)
{
    for (size_t i = 0; i < ZOO_CAGES; i++)
        *(size_t *)arg += b->stat_cache == cages[i];
    return true;
}

size_t zoo_cages_leaks(void)
{
    struct kmem_leak_stat stat;
    size_t found = 0;

    return kmem_leak_scan(count_ours, &found, &stat) ? found : 0;
}

void zoo_cages_found(void)
{
    while (lost_count != 0) {
        lost_count--;
        kmem_cache_free(cages[lost[lost_count].cage],
                        (void *)~lost[lost_count].not_buf);
    }
}
