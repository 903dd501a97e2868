/*
 * Caches of slabs: see slabs.h.
 */
#include "mm/others/slabs.h"
#include "kernel/lib/string.h"
#include "mm/page.h"

/* ---- caches ------------------------------------------------------------- */

void slabs_init(struct slabs *all, const char *name, struct supply *s,
                const struct slabs_ops *ops)
{
    other_init(&all->heap, name, s);
    all->ops = ops;
    mm_lock_init(&all->lock, "list of caches", LOCK_RANK_CACHES);
    list_init(&all->caches);
    list_init(&all->back);
}

void slabs_caches_lock(struct slabs *all)
{
    other_enter(&all->heap);
    other_share_part(&all->lock);
}

void slabs_caches_unlock(struct slabs *all)
{
    other_unshare_part(&all->lock);
    other_leave(&all->heap);
}

void slabs_add(struct slabs *all, struct slabs_cache *k)
{
    mm_lock_init(&k->lock, all->heap.heap_name, LOCK_RANK_SET);
    list_init(&k->partial);
    slabs_caches_lock(all);
    list_insert_before(&all->caches, &k->link);
    slabs_caches_unlock(all);
}

void slabs_remove(struct slabs *all, struct slabs_cache *k)
{
    slabs_caches_lock(all);
    MM_ASSERT(k->slabs == 0);
    list_remove(&k->link);
    slabs_caches_unlock(all);
}

static void each_cache(struct slabs *all, const struct slabs_cache *only,
                       slabs_fn *fn, unsigned cpu)
{
    other_share_part(&all->lock);
    list_for_each (l, &all->caches) {
        struct slabs_cache *k = list_entry(l, struct slabs_cache, link);

        if (only != NULL && only != k)
            continue;
        other_share_part(&k->lock);
        fn(k, cpu);
        other_unshare_part(&k->lock);
    }
    other_unshare_part(&all->lock);
}

void slabs_each(struct slabs *all, struct slabs_cache *only, slabs_fn *fn)
{
    unsigned cpu = other_enter(&all->heap);

    each_cache(all, only, fn, cpu);
    slabs_leave(all);
}

struct each {
    struct slabs *each_all;
    struct slabs_cache *each_only;
    slabs_fn *each_fn;
};

static void each_here(unsigned cpu, void *arg)
{
    const struct each *each = arg;

    each_cache(each->each_all, each->each_only, each->each_fn, cpu);
}

void slabs_each_cpu(struct slabs *all, struct slabs_cache *only, slabs_fn *fn)
{
    struct each each = {all, only, fn};

    other_each_cpu(&all->heap, each_here, &each);
    slabs_return(all);
}

/* ---- slabs -------------------------------------------------------------- */

void slabs_objects(const struct slabs_cache *k, char *first, unsigned num,
                   void (*fn)(void *obj, size_t size))
{
    for (unsigned i = 0; fn != NULL && i < num; i++)
        fn(first + i * k->size, k->object);
}

/* The bytes of a slab that has come, or less than 0. */
static void count(struct other_heap *h, const struct slabs_cache *k,
                  ptrdiff_t bytes, ptrdiff_t room)
{
    MM_ASSERT(other_shares(h, &k->lock));
    other_count_external(h, room);
    other_count_metadata(h, bytes - room);
    other_count_pages(h, bytes / (ptrdiff_t)PAGE_SIZE);
}

void slabs_grow(struct slabs *all, struct slabs_cache *k, struct slab *s,
                size_t bytes, size_t room)
{
    s->cache = k;
    k->slabs++;
    other_share(&all->heap);
    count(&all->heap, k, (ptrdiff_t)bytes, (ptrdiff_t)room);
    other_unshare(&all->heap);
}

void slabs_discard(struct slabs *all, struct slab *s, size_t bytes, size_t room)
{
    s->cache->slabs--;
    other_share(&all->heap);
    count(&all->heap, s->cache, -(ptrdiff_t)bytes, -(ptrdiff_t)room);
    list_insert_before(&all->back, &s->link);
    other_unshare(&all->heap);
}

/* A slab to return, with what never changes of its cache. NULL: there is
 * none. */
static struct slab *next_back(struct slabs *all, struct slabs_cache *k)
{
    struct slab *s = NULL;

    mm_lock(&all->heap.heap_lock);
    if (!list_empty(&all->back)) {
        s = list_entry(all->back.next, struct slab, link);
        list_remove(&s->link);
        memcpy(k, s->cache, offsetof(struct slabs_cache, link));
        s->cache = NULL;
    }
    mm_unlock(&all->heap.heap_lock);
    return s;
}

__attribute__((noinline)) void slabs_return(struct slabs *all)
{
    struct slabs_cache k;
    struct slab *s;

    while ((s = next_back(all, &k)) != NULL)
        all->ops->destroy(s, &k);
}

/* ---- looking ------------------------------------------------------------ */

bool slabs_see(struct slabs_view *v, const void *obj)
{
    size_t offset = (size_t)((const char *)obj - v->first);
    size_t i = offset / v->size;

    if (offset % v->size != 0 || i >= v->num || v->seen[i / 8] & 1 << i % 8)
        return false;
    v->seen[i / 8] |= (uint8_t)(1 << i % 8);
    v->free++;
    return true;
}

static const char *check_slab(struct slabs *all, struct slab *s,
                              struct slabs_sum *sum, size_t *listed)
{
    struct slabs_view v = {0};

    all->ops->look(s, &v);
    *listed += v.listed;
    sum->slabs++;
    sum->objects += v.num - v.free;
    sum->free += v.room - (v.num - v.free) * v.size;
    return v.wrong;
}

/* All slabs that there are. */
static const char *check_slabs(struct slabs *all, struct slabs_sum *sum)
{
    const struct supply *pages = all->heap.heap_supply;
    const char *wrong = NULL;
    size_t listed = 0;

    for (size_t i = 0; wrong == NULL && i < pages->supply_pages; i++) {
        struct slab *s = (struct slab *)pages->supply_info[i];

        if (s->cache != NULL)
            wrong = check_slab(all, s, sum, &listed);
    }
    if (wrong == NULL && listed != sum->listed)
        wrong = "a slab is on no list, and no processor has it";
    if (wrong == NULL && sum->slabs != sum->counted)
        wrong = "slabs are not as many as counted";
    return wrong;
}

/* Slabs that others are about to return are not counted any more. */
static void add_back(struct slabs *all, struct slabs_sum *sum)
{
    list_for_each (l, &all->back) {
        struct slabs_view v = {0};

        all->ops->look(list_entry(l, struct slab, link), &v);
        sum->listed++;
        sum->counted++;
        sum->free -= v.room;
    }
}

static const char *check_caches(struct slabs *all, struct slabs_sum *sum)
{
    const char *wrong = NULL;

    list_for_each (l, &all->caches) {
        struct slabs_cache *k = list_entry(l, struct slabs_cache, link);

        sum->counted += k->slabs;
        wrong = all->ops->check(k, sum);
        if (wrong != NULL)
            break;
    }
    return wrong;
}

const char *slabs_check(struct slabs *all)
{
    struct slabs_sum sum = {0};
    const char *wrong;
    struct other_stat st;

    other_stop(&all->heap);
    st = other_total(&all->heap);
    wrong = check_caches(all, &sum);
    add_back(all, &sum);
    if (wrong == NULL)
        wrong = check_slabs(all, &sum);
    if (wrong == NULL &&
        sum.objects + all->heap.heap_whole != st.stat_allocs - st.stat_frees)
        wrong = "objects are neither free nor allocated";
    if (wrong == NULL && sum.free != st.stat_external)
        wrong = "free bytes are not as many as counted";
    if (wrong == NULL)
        wrong = other_check(&all->heap, sum.free);
    other_resume(&all->heap);
    return wrong;
}
