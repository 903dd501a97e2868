/*
 * Tests of lab 4: constructors, the front end, the back end (tasks 4.1 to 4.3),
 * with small objects of 500 bytes, eight in a slab.
 */
#include "docs/labs/04-caches/tests/common.h"
#include "tools/workshop/stress/fail.h"

#define SIZE  500
#define CHUNK 504
#define PER   8
#define SLABS 3

static void *object(const struct kmem_slab *sp, size_t i)
{
    return (char *)sp->slab_base + sp->slab_colour + i * CHUNK;
}

/* ---- 4.1 constructors --------------------------------------------------- */

#define BUILT_SIZE  200
#define BUILT_CHUNK 208 /* with the word for the link */
#define BUILT_PER   19

static struct {
    size_t ctors[BUILT_PER];
    size_t dtors[BUILT_PER];
    size_t stray;     /* calls with another address */
    size_t size;      /* the size at the last call */
    size_t wrong;     /* calls with another size */
    size_t dtor_late; /* destroyed after its page went back */
} built;

static void count(size_t *calls, const void *obj, size_t size)
{
    size_t offset = (uintptr_t)obj & PAGE_MASK;

    if (size != BUILT_SIZE) {
        built.wrong++;
        built.size = size;
    }
    built.dtor_late += lab4_pages.out == 0;
    if (offset % BUILT_CHUNK != 0 || offset / BUILT_CHUNK >= BUILT_PER)
        built.stray++;
    else
        calls[offset / BUILT_CHUNK]++;
}

static void ctor(void *obj, size_t size)
{
    count(built.ctors, obj, size);
    memset(obj, 'c', MIN(size, (size_t)BUILT_SIZE));
}

static void dtor(void *obj, size_t size)
{
    count(built.dtors, obj, size);
}

/* Each object once, and no other address. */
static void check_calls(const char *what, const size_t *calls)
{
    for (size_t i = 0; i < BUILT_PER; i++)
        if (calls[i] != 1) {
            KT_FAIL("the %s ran %zu times on object %zu of %u, want once", what,
                    calls[i], i, BUILT_PER);
            break;
        }
    if (built.stray != 0)
        KT_FAIL("the %s got %zu addresses at which no object begins", what,
                built.stray);
    if (built.wrong != 0)
        KT_FAIL("the %s got the size %zu, want %u, the object's", what,
                built.size, BUILT_SIZE);
}

LAB_TEST(4, construct, LAB_PAGES)
{
    struct kmem_cache *cp = lab4_cache_of(BUILT_SIZE, 8, ctor, NULL);
    struct kmem_slab *sp;
    size_t linked = 0;

    memset(&built, 0, sizeof(built));
    sp = kmem_slab_create(cp, 0);
    KT_REQUIRE(sp != NULL);
    check_calls("constructor", built.ctors);
    for (const struct kmem_bufctl *b = sp->slab_head;
         b != NULL && linked <= BUILT_PER; b = b->bufctl_next)
        linked++;
    if (linked != BUILT_PER)
        KT_FAIL("the freelist has %zu buffers after construction, want %u",
                linked, BUILT_PER);
    lab4_pages_back(&sp, 1);
}

LAB_TEST(4, destruct, LAB_PAGES)
{
    struct kmem_cache *cp = lab4_cache_of(BUILT_SIZE, 8, NULL, dtor);
    struct kmem_slab *sp;

    memset(&built, 0, sizeof(built));
    sp = kmem_slab_create(cp, 0);
    KT_REQUIRE(sp != NULL);
    for (size_t i = 0; i < BUILT_PER; i++)
        KT_EQ(built.dtors[i], 0);
    kmem_slab_destroy(cp, sp);
    check_calls("destructor", built.dtors);
    KT_EQ(built.dtor_late, 0);
    lab4_pages_left();
}

/* ---- 4.2 the front end -------------------------------------------------- */

/* The next object must be number i of the slab. */
static bool take(struct kmem_cache *cp, struct kmem_slab *sp, size_t i)
{
    void *obj = kmem_cache_alloc(cp, KM_NOSLEEP);

    LAB4_UNLOCKED("kmem_cache_alloc");
    if (obj == object(sp, i)) {
        memset(obj, 0x5a, SIZE);
        return true;
    }
    KT_FAIL("kmem_cache_alloc gave 0x%llx, want 0x%llx: the first free buffer "
            "of the slab under the freelist pointer, buffer %zu",
            KT_PTR(obj), KT_PTR(object(sp, i)), i);
    return false;
}

LAB_TEST(4, take, LAB_PAGES)
{
    struct kmem_cache *cp = lab4_cache(SIZE, 8);
    struct kmem_slab *slab[SLABS];

    lab4_irq_on();
    KT_REQUIRE(lab4_slabs(cp, slab, SLABS));
    lab_guard("cache_allocs", &cp->cache_allocs, lab_spin_held);
    lab_guard("cache_freelist", &cp->cache_freelist, lab_spin_held);
    lab_guard("slab_head", &slab[0]->slab_head, lab_spin_held);
    for (size_t i = 0; i < SLABS * PER; i++) {
        const struct kmem_slab *next =
            i + 1 == SLABS * PER ? &cp->cache_null : slab[(i + 1) / PER];

        if (!take(cp, slab[i / PER], i % PER))
            break;
        KT_EQ(slab[i / PER]->slab_refcnt, i % PER + 1);
        KT_EQ(cp->cache_allocs, i + 1);
        if (cp->cache_freelist != next)
            KT_FAIL("after object %zu the freelist pointer is not at the first "
                    "slab with a free buffer",
                    i);
    }
    KT_EQ(cp->cache_full_slabs, SLABS);
    KT_EQ(cp->cache_free_slabs, 0);
    lab4_pages_back(slab, SLABS);
}

/* Allocates all objects of the slabs, without the code under test. */
static void take_all(struct kmem_cache *cp, struct kmem_slab **slab, size_t n)
{
    for (size_t i = 0; i < n * PER; i++) {
        mm_lock(&cp->cache_lock);
        kmem_slab_take(cp);
        mm_unlock(&cp->cache_lock);
        memset(object(slab[i / PER], i % PER), 0x5a, SIZE);
    }
}

/* Whether the client's bytes of an object are as take_all wrote them. */
static bool intact(const void *obj)
{
    const uint8_t *byte = obj;

    for (size_t i = 0; i < SIZE; i++)
        if (byte[i] != 0x5a)
            return false;
    return true;
}

/* Frees an object as kmem_cache_free does, or as magazines do. */
static void give(struct kmem_cache *cp, struct kmem_slab *sp, size_t i,
                 bool front)
{
    char *obj = object(sp, i);

    if (front) {
        kmem_cache_free(cp, obj);
        LAB4_UNLOCKED("kmem_cache_free");
    } else {
        mm_lock(&cp->cache_lock);
        KT_TRUE(kmem_give(cp, obj));
        mm_unlock(&cp->cache_lock);
    }
    if (sp->slab_head != (void *)(obj + CHUNK - sizeof(void *)))
        KT_FAIL("after buffer %zu was freed, its last word is not the head of "
                "its slab's freelist",
                i);
    if (!intact(obj))
        KT_FAIL("freeing buffer %zu changed the object itself", i);
}

LAB_TEST(4, give, LAB_PAGES)
{
    struct kmem_cache *cp = lab4_cache(SIZE, 8);
    struct kmem_slab *slab[SLABS];
    static const uint8_t order[PER] = {3, 0, 7, 1, 6, 2, 5, 4};

    lab4_irq_on();
    KT_REQUIRE(lab4_slabs(cp, slab, SLABS));
    take_all(cp, slab, SLABS);
    lab_guard("cache_frees", &cp->cache_frees, lab_spin_held);
    lab_guard("cache_freelist", &cp->cache_freelist, lab_spin_held);
    lab_guard("slab_head", &slab[1]->slab_head, lab_spin_held);
    for (size_t i = 0; i < PER; i++) {
        give(cp, slab[1], order[i], i % 2 != 0);
        KT_EQ(slab[1]->slab_refcnt, PER - 1 - i);
        KT_EQ(cp->cache_frees, i + 1);
        if (cp->cache_freelist != slab[1])
            KT_FAIL("the freelist pointer is not at the slab that got "
                    "a buffer back");
    }
    KT_EQ(cp->cache_full_slabs, SLABS - 1);
    KT_EQ(cp->cache_free_slabs, 1);
    KT_EQ(slab[0]->slab_refcnt, PER);
    lab4_pages_back(slab, SLABS);
}

/* Random allocations and frees on three slabs: no buffer is allocated twice. */
LAB_TEST(4, traffic, LAB_PAGES)
{
    struct kmem_cache *cp = lab4_cache(SIZE, 8);
    struct kmem_slab *slab[SLABS];
    uint32_t *out[SLABS * PER];
    uint32_t random = 4;
    size_t n = 0;

    lab4_irq_on();
    KT_REQUIRE(lab4_slabs(cp, slab, SLABS));
    for (uint32_t i = 0; i < 20000; i++) {
        random = random * 1103515245 + 12345;
        if (n < SLABS * PER && (n == 0 || (random & 0x10000) != 0)) {
            out[n] = kmem_cache_alloc(cp, KM_NOSLEEP);
            KT_REQUIRE(out[n] != NULL);
            out[n][0] = out[n][SIZE / 4 - 1] = (uintptr_t)out[n];
            n++;
        } else {
            size_t k = (random >> 17) % n;
            uint32_t *obj = out[k];

            KT_REQUIRE(obj[0] == (uintptr_t)obj &&
                       obj[SIZE / 4 - 1] == (uintptr_t)obj);
            obj[0] = 0;
            kmem_cache_free(cp, obj);
            out[k] = out[--n];
        }
        KT_REQUIRE(kmem_inuse(cp) == n);
    }
    while (n > 0)
        kmem_cache_free(cp, out[--n]);
    KT_EQ(cp->cache_free_slabs, SLABS);
    lab4_pages_back(slab, SLABS);
}

/* ---- 4.3 the back end --------------------------------------------------- */

/* The cache's free slabs, in list order. Returns how many there are, at most
 * `max`. */
static size_t list_slabs(const struct kmem_cache *cp, struct kmem_slab **slab,
                         size_t max)
{
    const struct list *head = &cp->cache_null.slab_link;
    size_t n = 0;

    for (struct list *l = head->next; l != head && n < max; l = l->next)
        slab[n++] = list_entry(l, struct kmem_slab, slab_link);
    return n;
}

/* Calls kmem_cache_grow, which must return this, with the cache not busy
 * afterwards. */
static void grow(struct kmem_cache *cp, bool want)
{
    bool grown = kmem_cache_grow(cp);

    LAB4_UNLOCKED("kmem_cache_grow");
    if (grown != want)
        KT_FAIL("kmem_cache_grow returns %s, want %s", grown ? "true" : "false",
                want ? "true" : "false");
    if (cp->cache_holds != 0 || kmem_transfers != 0)
        KT_FAIL(
            "after kmem_cache_grow cache_holds is %u and kmem_transfers %u, "
            "want 0 and 0",
            (unsigned)cp->cache_holds, (unsigned)kmem_transfers);
}

LAB_TEST(4, grow, LAB_PAGES)
{
    struct kmem_cache *cp = lab4_cache(SIZE, 8);
    struct kmem_slab *slab[SLABS + 1] = {NULL};
    struct kmem_slab *first;

    lab4_irq_on();
    lab_guard("cache_holds", &cp->cache_holds, lab_spin_held);
    lab_guard("cache_freelist", &cp->cache_freelist, lab_spin_held);
    lab_guard("cache_slabs", &cp->cache_slabs, lab_spin_held);
    lab_guard("cache_max_slabs", &cp->cache_max_slabs, lab_spin_held);
    grow(cp, true);
    KT_REQUIRE(list_slabs(cp, slab, SLABS + 1) == 1);
    first = slab[0];
    KT_TRUE(cp->cache_freelist == first);
    take_all(cp, &first, 1);
    KT_TRUE(cp->cache_freelist == &cp->cache_null);
    grow(cp, true);
    grow(cp, true);
    KT_REQUIRE(list_slabs(cp, slab, SLABS + 1) == SLABS);
    if (slab[0] != first)
        KT_FAIL("a new slab is not at the list's tail");
    if (cp->cache_freelist != slab[1])
        KT_FAIL("the freelist pointer is not at the first slab with a free "
                "buffer");
    KT_EQ(cp->cache_slabs, SLABS);
    KT_EQ(cp->cache_slab_creates, SLABS);
    KT_EQ(cp->cache_max_slabs, SLABS);
    KT_EQ(cp->cache_free_slabs, SLABS - 1);
    lab_unguard();
    cp->cache_max_slabs = SLABS + 2; /* as if it had had more once */
    grow(cp, true);
    if (cp->cache_max_slabs != SLABS + 2)
        KT_FAIL("the cache once had %u slabs; after it has grown to %u, "
                "cache_max_slabs is %u, want %u: the most at any time",
                SLABS + 2, SLABS + 1, (unsigned)cp->cache_max_slabs, SLABS + 2);
    KT_REQUIRE(list_slabs(cp, slab, SLABS + 1) == SLABS + 1);
    lab4_pages_back(slab, SLABS + 1);
}

LAB_TEST(4, grow_unlocked, LAB_PAGES)
{
    struct kmem_cache *cp = lab4_cache(SIZE, 8);
    struct kmem_slab *slab[2] = {NULL};

    lab4_irq_on();
    lab4_pages.limit = 1;
    lab_guard("cache_colour", &cp->cache_colour, lab_spin_held);
    lab_guard("kmem_transfers", &kmem_transfers, lab_spin_held);
    grow(cp, true);
    grow(cp, false);
    if (lab4_pages.locked != 0)
        KT_FAIL("pages were requested with the cache's lock held: a supplier "
                "may take long, and may call the allocator");
    if (lab4_pages.idle != 0)
        KT_FAIL("cache_holds was 0 while pages were requested: the cache could "
                "be destroyed meanwhile");
    if (lab4_pages.still != 0)
        KT_FAIL(
            "pages were requested without kmem_transfer_begin: `verify` would "
            "meanwhile find pages that no cache has");
    KT_EQ(cp->cache_slabs, 1);
    KT_EQ(cp->cache_slab_creates, 1);
    KT_EQ(cp->cache_free_slabs, 1);
    lab_unguard();
    lab4_pages.limit = 2;
    cp->cache_holds = 1; /* another task holds the cache, and moves pages */
    kmem_transfers = 1;
    KT_TRUE(kmem_cache_grow(cp));
    if (cp->cache_holds != 1 || kmem_transfers != 1)
        KT_FAIL("another task held the cache and was moving pages; after "
                "kmem_cache_grow cache_holds is %u and kmem_transfers %u, "
                "want 1 and 1",
                (unsigned)cp->cache_holds, (unsigned)kmem_transfers);
    cp->cache_holds = kmem_transfers = 0;
    KT_REQUIRE(list_slabs(cp, slab, 2) == 2);
    lab4_pages_back(slab, 2);
}

/* A mode is set while the cache grows. The first allocation in this mode, which
 * shows that it is one, fails. */
static void grow_into_mode(struct kmem_cache *cp)
{
    lab4_pages.limit++;
    lab4_pages.mode = KMF_WATCH;
    kmem_fail_set(KMEM_FAIL_SLAB, 1);
    if (kmem_cache_alloc(cp, KM_NOSLEEP) != NULL)
        KT_FAIL("a mode was set while the cache grew, and yet the new slab's "
                "buffer was taken without it");
    LAB4_UNLOCKED("an allocation in a mode");
    kmem_fail_set(KMEM_FAIL_NONE, 0);
}

LAB_TEST(4, grow_and_take, LAB_PAGES)
{
    struct kmem_cache *cp = lab4_cache(SIZE, 8);
    struct kmem_slab *slab[3] = {NULL};

    lab4_irq_on();
    lab4_pages.limit = 2;
    lab_guard("cache_allocs", &cp->cache_allocs, lab_spin_held);
    for (size_t i = 0; i < 2 * PER; i++) {
        void *obj = kmem_cache_alloc(cp, KM_NOSLEEP);

        LAB4_UNLOCKED("an allocation that had to grow");
        KT_REQUIRE(obj != NULL);
        KT_EQ(cp->cache_slabs, i / PER + 1);
        if (obj != object(kmem_slab_of(obj), i % PER)) {
            KT_FAIL("an allocation that had to grow gave 0x%llx, want 0x%llx, "
                    "the first free buffer of its slab",
                    KT_PTR(obj), KT_PTR(object(kmem_slab_of(obj), i % PER)));
            return;
        }
        memset(obj, 0x5a, SIZE);
    }
    KT_TRUE(kmem_cache_alloc(cp, KM_NOSLEEP) == NULL);
    LAB4_UNLOCKED("an allocation that failed");
    KT_EQ(cp->cache_fails, 1);
    KT_EQ(kmem_inuse(cp), 2 * PER);
    lab_unguard();
    grow_into_mode(cp);
    KT_EQ(kmem_inuse(cp), 2 * PER);
    KT_REQUIRE(list_slabs(cp, slab, 3) == 3);
    lab4_pages_back(slab, 3);
}
