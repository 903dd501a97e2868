/*
 * Caches of slabs: see slabs.h.
 */
#include "mm/others/slabs.h"
#include "kernel/lib/string.h"
#include "mm/page.h"

const size_t slabs_size[SLABS_CLASSES] = {
    8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, SLABS_MAX};

/* ---- caches ------------------------------------------------------------- */

void slabs_init(struct slabs *all, const char *name, struct supply *s,
                const struct slabs_ops *ops)
{
    *all = (struct slabs){.ops = ops};
    other_init(&all->heap, name, s);
    mm_lock_init(&all->lock, "list of caches", LOCK_RANK_CACHES);
    list_init(&all->caches);
    list_init(&all->back);
    for (unsigned i = ops->first; i < SLABS_CLASSES; i++) {
        struct other_cache c = {.other_size = slabs_size[i],
                                .other_align = MIN(slabs_size[i], ops->align)};

        all->class[i] = ops->create(&c);
        if (all->class[i] == NULL)
            mm_panic("%s: no memory for its caches", name);
    }
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

void *slabs_record(struct slabs *all, const struct other_cache *c, size_t bytes)
{
    struct slabs_cache *k = supply_record(all->heap.heap_supply, bytes);

    if (k == NULL)
        return NULL;
    k->object = c->other_size;
    k->ctor = c->other_ctor;
    k->dtor = c->other_dtor;
    k->record = bytes;
    k->users = 1;
    mm_lock_init(&k->lock, all->heap.heap_name, LOCK_RANK_SET);
    list_init(&k->partial);
    return k;
}

void slabs_add(struct slabs *all, struct slabs_cache *k)
{
    slabs_caches_lock(all);
    list_insert_before(&all->caches, &k->link);
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

/* Returns what is free of one cache, or of all: NULL. */
static void shrink(struct slabs *all, struct slabs_cache *only)
{
    slabs_each_cpu(all, only, all->ops->flush);
    slabs_each(all, only, all->ops->trim);
}

void slabs_pressure(struct slabs *all)
{
    shrink(all, NULL);
    if (all->ops->remove != NULL) /* that may have freed objects */
        shrink(all, NULL);
}

void slabs_destroy(struct slabs *all, struct slabs_cache *k)
{
    bool last;

    slabs_caches_lock(all);
    last = --k->users == 0;
    slabs_caches_unlock(all);
    if (!last)
        return;
    shrink(all, k);
    slabs_caches_lock(all);
    MM_ASSERT(k->slabs == 0);
    list_remove(&k->link);
    slabs_caches_unlock(all);
    supply_record_free(all->heap.heap_supply, k, k->record);
}

/* ---- slabs -------------------------------------------------------------- */

/* Calls fn, unless it is NULL, for each object of a slab. */
static void each_object(const struct slab *s, const struct slabs_cache *k,
                        void (*fn)(void *obj, size_t size))
{
    for (unsigned i = 0; fn != NULL && i < s->num; i++)
        fn(s->first + i * k->size, k->object);
}

/* Bytes of its pages: a slab of the least order has fewer objects. */
static size_t bytes_of_slab(const struct slab *s, const struct slabs_cache *k)
{
    return s->num == k->num ? slabs_bytes(k)
                            : (size_t)PAGE_SIZE << slabs_order(k->size);
}

struct slab *slabs_new(struct slabs *all, const struct slabs_cache *k,
                       unsigned order, size_t colour)
{
    size_t bytes = (size_t)PAGE_SIZE << order;
    char *at = supply_alloc(all->heap.heap_supply, bytes >> PAGE_SHIFT, bytes);
    struct slab *s;

    if (at == NULL)
        return NULL;
    s = other_page(&all->heap, at);
    for (size_t i = PAGE_SIZE; i < bytes; i += PAGE_SIZE) {
        struct slab *page = other_page(&all->heap, at + i);

        page->head = s;
    }
    s->first = at + colour;
    s->num = (uint16_t)(order == k->order ? k->num : bytes / k->size);
    each_object(s, k, k->ctor);
    return s;
}

void slabs_delete(struct slabs *all, struct slab *s,
                  const struct slabs_cache *k)
{
    struct supply *pages = all->heap.heap_supply;

    each_object(s, k, k->dtor);
    supply_free(pages, supply_page(pages, s),
                bytes_of_slab(s, k) >> PAGE_SHIFT);
}

/* Bytes of objects, and of the gaps around them. */
static size_t room_of(const struct slab *s)
{
    return bytes_of_slab(s, s->cache) - s->cache->index;
}

/* Counts a slab that has come, 1, or that goes: -1. */
static void count(struct slabs *all, const struct slab *s, ptrdiff_t sign)
{
    struct slabs_cache *k = s->cache;
    ptrdiff_t room = (ptrdiff_t)room_of(s), index = (ptrdiff_t)k->index;

    MM_ASSERT(other_shares(&all->heap, &k->lock));
    k->slabs += (size_t)sign;
    other_count_external(&all->heap, sign * room);
    other_count_metadata(&all->heap, sign * index);
    other_count_pages(&all->heap, sign * (room + index) / (ptrdiff_t)PAGE_SIZE);
}

void slabs_discard(struct slabs *all, struct slab *s)
{
    OTHER_ADD(all->returned, 1);
    other_share(&all->heap);
    count(all, s, -1);
    list_insert_before(&all->back, &s->link);
    other_unshare(&all->heap);
}

void *slabs_grow(struct slabs *all, struct slabs_cache *k)
{
    struct slab *s;
    unsigned cpu;

    other_leave(&all->heap);
    s = all->ops->make(k);
    cpu = other_enter(&all->heap);
    if (s != NULL) {
        other_share_part(&k->lock);
        OTHER_ADD(all->grown, 1);
        s->cache = k;
        other_share(&all->heap);
        count(all, s, 1);
        other_unshare(&all->heap);
        all->ops->add(k, cpu, s);
        other_unshare_part(&k->lock);
    }
    return all->ops->get(k, cpu);
}

/* A slab to return, with what never changes of its cache. NULL: there is
 * none. */
static struct slab *next_back(struct slabs *all, struct slabs_cache *k)
{
    struct slab *s = NULL;

    mm_lock(&all->heap.heap_lock);
    if (!list_empty(&all->back)) {
        s = slabs_slab(all->back.next);
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

    while ((s = next_back(all, &k)) != NULL) {
        if (all->ops->remove != NULL)
            all->ops->remove(s, &k);
        slabs_delete(all, s, &k);
    }
}

/* ---- mistakes of clients ------------------------------------------------ */

void slabs_no_object(const struct slabs *all, const struct slabs_cache *k,
                     const void *obj)
{
    mm_panic("%s: %p is not an object of %zu bytes", all->heap.heap_name, obj,
             k->object);
}

void slabs_freed_twice(const struct slabs *all, const struct slabs_cache *k,
                       const void *obj)
{
    mm_panic("%s: %p, %zu bytes: it is free already", all->heap.heap_name, obj,
             k->object);
}

/* ---- looking ------------------------------------------------------------ */

size_t slabs_check_list(struct slabs_cache *k, struct list *list,
                        int (*unused)(const struct slab *s,
                                      const struct list *list),
                        struct slabs_sum *sum)
{
    size_t n = 0;

    list_for_each (l, list) {
        const struct slab *s = slabs_slab(l);
        int free = n == k->slabs || s->cache != k ? -1 : unused(s, list);

        if (free < 0) {
            slabs_expect(sum, false, "a list has a slab of another list");
            break;
        }
        n++;
        sum->unused += (size_t)free;
    }
    sum->listed += n;
    return n;
}

bool slabs_see(struct slabs_view *v, const void *obj, const char *wrong)
{
    size_t offset = (size_t)((const char *)obj - v->slab->first);
    size_t i = offset / v->slab->cache->size;

    if (offset % v->slab->cache->size != 0 || i >= v->slab->num ||
        v->seen[i / 8] & 1 << i % 8) {
        v->wrong = wrong;
        return false;
    }
    v->seen[i / 8] |= (uint8_t)(1 << i % 8);
    v->free++;
    return true;
}

/* All slabs that there are. */
static void check_slabs(struct slabs *all, struct slabs_sum *sum)
{
    const struct supply *pages = all->heap.heap_supply;
    size_t listed = 0;

    for (size_t i = 0; sum->wrong == NULL && i < pages->supply_pages; i++) {
        const struct slab *s = (struct slab *)pages->supply_info[i];
        struct slabs_view v = {.slab = s};

        if (s->cache == NULL)
            continue;
        all->ops->look(&v);
        slabs_expect(sum, v.wrong == NULL, v.wrong);
        listed += !v.unlisted;
        sum->slabs++;
        sum->objects += s->num - v.free;
        sum->free += room_of(s) - (s->num - v.free) * s->cache->size;
    }
    slabs_expect(sum, listed == sum->listed,
                 "a slab is on no list, and no processor has it");
    slabs_expect(sum, sum->slabs == sum->counted,
                 "slabs are not as many as counted");
}

/* Those that others are about to return are not counted any more. */
static void check_caches(struct slabs *all, struct slabs_sum *sum)
{
    list_for_each (l, &all->back) {
        sum->listed++;
        sum->counted++;
        sum->free -= room_of(slabs_slab(l));
    }
    list_for_each (l, &all->caches) {
        struct slabs_cache *k = list_entry(l, struct slabs_cache, link);

        sum->counted += k->slabs;
        sum->unused = 0;
        all->ops->check(k, sum);
    }
}

const char *slabs_check(struct slabs *all)
{
    struct slabs_sum sum = {0};
    const char *wrong;
    struct other_stat st;

    other_stop(&all->heap);
    st = other_total(&all->heap);
    check_caches(all, &sum);
    check_slabs(all, &sum);
    slabs_expect(&sum,
                 sum.objects + all->heap.heap_whole ==
                     st.stat_allocs - st.stat_frees,
                 "objects are neither free nor allocated");
    slabs_expect(&sum, sum.free == st.stat_external,
                 "free bytes are not as many as counted");
    wrong = sum.wrong ?: other_check(&all->heap, sum.free);
    other_resume(&all->heap);
    return wrong;
}
