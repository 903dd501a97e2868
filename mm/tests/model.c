/*
 * The shadow model of a cache; model.h says what it is for.
 */
#include "mm/tests/model.h"

static size_t objects(const struct model *m)
{
    return m->model_geometry.objects;
}

static bool is_full(const struct model_slab *s)
{
    return s->model_free == 0;
}

static bool is_free(const struct model *m, const struct model_slab *s)
{
    return s->model_free == objects(m);
}

static size_t free_slabs(const struct model *m)
{
    size_t n = 0;

    for (size_t i = 0; i < m->model_slabs; i++)
        n += is_free(m, &m->model_slab[i]);
    return n;
}

/* The first slab with a free buffer; model_slabs if there is none. */
static size_t first_free(const struct model *m)
{
    size_t i = 0;

    while (i < m->model_slabs && is_full(&m->model_slab[i]))
        i++;
    return i;
}

static uintptr_t chunk(const struct model *m, const struct model_slab *s,
                       size_t k)
{
    return s->model_base + s->model_colour + k * m->model_geometry.chunk;
}

/* Moves the slab at `from` to `to`. */
static void move(struct model *m, size_t from, size_t to)
{
    struct model_slab s = m->model_slab[from];

    for (; from < to; from++)
        m->model_slab[from] = m->model_slab[from + 1];
    for (; from > to; from--)
        m->model_slab[from] = m->model_slab[from - 1];
    m->model_slab[to] = s;
}

/* S-32: checked when a slab was created or destroyed. */
static void rescale(struct model *m)
{
    size_t n = m->model_slabs * objects(m);
    size_t size = m->model_hash;
    size_t want = 1;

    if (size == 0 ||
        !(n > 2 * (size - 1) || (n < (size - 1) / 2 && size >= 128)))
        return;
    while (want * 8 <= 3 * n + 4)
        want *= 2;
    want *= 2;
    if (want < 64)
        want = 64;
    if (want > 2 * size || size > 2 * want)
        m->model_hash = want;
}

void model_init(struct model *m, struct kmem_cache *cp,
                struct test_supply *supply)
{
    memset(m, 0, sizeof(*m));
    m->model_cache = cp;
    m->model_supply = supply;
    m->model_align = cp->cache_align;
    m->model_geometry =
        test_geometry(cp->cache_size, cp->cache_align,
                      cp->cache_ctor != NULL || cp->cache_dtor != NULL);
    m->model_hash = m->model_geometry.large ? 64 : 0;
    m->model_allocs = test_stat(cp).stat_allocs;
    m->model_frees = test_stat(cp).stat_frees;
    m->model_fails = test_stat(cp).stat_fails;
    m->model_creates = test_stat(cp).stat_slab_creates;
    m->model_destroys = test_stat(cp).stat_slab_destroys;
    m->model_max_slabs = test_stat(cp).stat_max_slabs;
    m->model_next_colour = test_stat(cp).stat_colour_next;
    for (size_t i = 0; i < MODEL_SLABS; i++)
        m->model_slab[i].model_stack = m->model_stacks[i];
    if (objects(m) > MODEL_CHUNKS || test_stat(cp).stat_slabs != 0)
        KT_FAIL("%s cannot be modelled", cp->cache_name);
}

/* The slab that `obj` must be the first object of. */
static void grow(struct model *m, const void *obj)
{
    struct model_slab *s = &m->model_slab[m->model_slabs++];
    size_t n = objects(m);

    s->model_colour = m->model_next_colour;
    s->model_base = (uintptr_t)obj - s->model_colour;
    if (s->model_base % PAGE_SIZE != 0)
        KT_FAIL("%s: first object of a slab at %p, colour %zu",
                m->model_cache->cache_name, obj, s->model_colour);
    for (size_t k = 0; k < n; k++)
        s->model_stack[k] = (uint16_t)(n - 1 - k);
    s->model_free = n;
    m->model_creates++;
    m->model_max_slabs = MAX(m->model_max_slabs, m->model_slabs);
    m->model_next_colour += m->model_align;
    if (m->model_next_colour > m->model_geometry.colour_max)
        m->model_next_colour = 0;
    rescale(m);
}

static bool may_grow(const struct model *m)
{
    const struct test_supply *s = m->model_supply;

    return s == NULL || s->held + m->model_geometry.pages <= s->limit;
}

void *model_alloc(struct model *m)
{
    size_t i = first_free(m);
    bool expect = i < m->model_slabs || may_grow(m);
    void *obj = kmem_cache_alloc(m->model_cache, KM_NOSLEEP);
    struct model_slab *s;

    if ((obj != NULL) != expect)
        KT_FAIL("%s: got %p, should %sget an object",
                m->model_cache->cache_name, obj, expect ? "" : "not ");
    if (obj == NULL) {
        m->model_fails++;
        return NULL;
    }
    if (i == m->model_slabs)
        grow(m, obj);
    s = &m->model_slab[i];
    if (is_free(m, s))
        m->model_min = MIN(m->model_min, free_slabs(m) - 1);
    s->model_free--;
    m->model_allocs++;
    if ((uintptr_t)obj != chunk(m, s, s->model_stack[s->model_free]))
        KT_FAIL("%s: got %p, want 0x%llx", m->model_cache->cache_name, obj,
                (unsigned long long)chunk(m, s, s->model_stack[s->model_free]));
    return obj;
}

/* The slab that holds `obj`; model_slabs if none does. */
static size_t slab_of(const struct model *m, const void *obj)
{
    size_t i = 0;

    while (i < m->model_slabs && (uintptr_t)obj - m->model_slab[i].model_base >=
                                     m->model_geometry.pages * PAGE_SIZE)
        i++;
    return i;
}

void model_free(struct model *m, void *obj)
{
    size_t i = slab_of(m, obj);
    struct model_slab *s = &m->model_slab[i];
    bool full;

    if (i == m->model_slabs) {
        KT_FAIL("%s: %p is in no slab", m->model_cache->cache_name, obj);
        return;
    }
    kmem_cache_free(m->model_cache, obj);
    full = is_full(s);
    s->model_stack[s->model_free++] =
        (uint16_t)(((uintptr_t)obj - chunk(m, s, 0)) / m->model_geometry.chunk);
    m->model_frees++;
    if (is_free(m, s)) {
        move(m, i, m->model_slabs - 1);
    } else if (full) {
        size_t to = i + 1;

        while (to < m->model_slabs && is_full(&m->model_slab[to]))
            to++;
        move(m, i, to - 1);
    }
}

void model_update(struct model *m)
{
    m->model_limit = m->model_min;
    m->model_min = free_slabs(m);
}

static size_t reapable(const struct model *m, enum kmem_reap_mode mode)
{
    if (mode == KMEM_REAP_ALL || kmem_ws_interval == 0)
        return free_slabs(m);
    if (kmem_ws_interval == KMEM_WS_INFINITE)
        return 0;
    return MIN(m->model_limit, m->model_min);
}

void model_reaped(struct model *m, enum kmem_reap_mode mode)
{
    size_t n = reapable(m, mode);

    if (n == 0)
        return;
    m->model_slabs -= n;
    m->model_destroys += n;
    m->model_limit -= MIN(m->model_limit, n);
    m->model_min -= MIN(m->model_min, n);
    rescale(m);
}

void model_reap(struct model *m, enum kmem_reap_mode mode)
{
    size_t n = reapable(m, mode);
    size_t kept = free_slabs(m) - n;
    size_t slabs = kmem_cache_reap(m->model_cache, mode);

    if (slabs != n || m->model_cache->cache_last_reap_kept != kept)
        KT_FAIL("%s: reap gave %zu slabs, kept %u; want %zu, kept %zu",
                m->model_cache->cache_name, slabs,
                (unsigned)m->model_cache->cache_last_reap_kept, n, kept);
    model_reaped(m, mode);
}

size_t model_inuse(const struct model *m)
{
    size_t n = 0;

    for (size_t i = 0; i < m->model_slabs; i++)
        n += objects(m) - m->model_slab[i].model_free;
    return n;
}

static bool same(const struct model *m, const char *what, size_t got,
                 size_t want)
{
    if (got == want)
        return true;
    KT_FAIL("%s: %s is %zu (0x%zx), want %zu (0x%zx)",
            m->model_cache->cache_name, what, got, got, want, want);
    return false;
}

static bool compare_counts(const struct model *m)
{
    struct kmem_cache_stat s = test_stat(m->model_cache);
    size_t full = 0;

    for (size_t i = 0; i < m->model_slabs; i++)
        full += is_full(&m->model_slab[i]);
    return same(m, "slabs", s.stat_slabs, m->model_slabs) &&
           same(m, "in use", s.stat_inuse, model_inuse(m)) &&
           same(m, "full", s.stat_full_slabs, full) &&
           same(m, "T", s.stat_free_slabs, free_slabs(m)) &&
           same(m, "m", s.stat_ws_min, m->model_min) &&
           same(m, "L", s.stat_ws_limit, m->model_limit) &&
           same(m, "colour", s.stat_colour_next, m->model_next_colour) &&
           same(m, "allocs", s.stat_allocs, m->model_allocs) &&
           same(m, "frees", s.stat_frees, m->model_frees) &&
           same(m, "fails", s.stat_fails, m->model_fails) &&
           same(m, "creates", s.stat_slab_creates, m->model_creates) &&
           same(m, "destroys", s.stat_slab_destroys, m->model_destroys) &&
           same(m, "most slabs", s.stat_max_slabs, m->model_max_slabs) &&
           same(m, "buckets", s.stat_hash_size, m->model_hash);
}

/* The freelist of a slab, in order of allocation. */
static bool compare_freelist(const struct model *m, const struct model_slab *s,
                             const struct kmem_slab *sp)
{
    const struct kmem_bufctl *bcp = sp->slab_head;

    for (size_t i = s->model_free; i-- > 0; bcp = bcp->bufctl_next) {
        if (bcp == NULL || (uintptr_t)kmem_bufctl_buf(m->model_cache, bcp) !=
                               chunk(m, s, s->model_stack[i])) {
            KT_FAIL("%s: freelist of slab 0x%llx differs",
                    m->model_cache->cache_name,
                    (unsigned long long)s->model_base);
            return false;
        }
    }
    return same(m, "end of freelist", (uintptr_t)bcp, 0);
}

bool model_compare(const struct model *m)
{
    struct kmem_slab *sp = kmem_slab_next(&m->model_cache->cache_null);
    size_t first = first_free(m);

    if (!compare_counts(m))
        return false;
    for (size_t i = 0; i < m->model_slabs; i++, sp = kmem_slab_next(sp)) {
        const struct model_slab *s = &m->model_slab[i];

        if (!same(m, "base", (uintptr_t)sp->slab_base, s->model_base) ||
            !same(m, "slab colour", sp->slab_colour, s->model_colour) ||
            !same(m, "refcnt", sp->slab_refcnt, objects(m) - s->model_free) ||
            !same(m, "freelist pointer", m->model_cache->cache_freelist == sp,
                  i == first) ||
            !compare_freelist(m, s, sp))
            return false;
    }
    return same(m, "end of list", sp == &m->model_cache->cache_null, true);
}
