/*
 * The verifier finds each invariant of section 11 when it is broken: a
 * structure is changed, the verifier names the violation, and finds none after
 * the repair.
 *
 * Tests: mm/inspect/kmem_verify.c
 */
#include "mm/inspect/kmem_walk.h"
#include "mm/tests/kmem_test.h"

/* Four slabs: full, full, partial (2 allocated), free. */
static struct kmem_cache *make(size_t size, size_t *n)
{
    struct kmem_cache *cp = kmem_cache_create("t_verify", size, 0, NULL, NULL);

    KT_REQUIRE(cp != NULL);
    *n = cp->cache_slab_chunks;
    test_alloc(cp, 0, 4 * *n);
    test_free(cp, 3 * *n, 4 * *n);
    test_free(cp, 2 * *n + 2, 3 * *n);
    TEST_VERIFY(cp);
    return cp;
}

static void end(struct kmem_cache *cp)
{
    test_free(cp, 0, 2 * cp->cache_slab_chunks + 2);
    TEST_VERIFY(cp);
    test_destroy(cp);
}

static void check_geometry(size_t size)
{
    size_t n;
    struct kmem_cache *cp = make(size, &n);

    TEST_POKE(cp, cp->cache_align, 24, "alignment is not a power of two");
    TEST_POKE(cp, cp->cache_align, 4, "alignment is not a power of two");
    TEST_POKE(cp, cp->cache_align, 0, "alignment is not a power of two");
    TEST_POKE(cp, cp->cache_chunk, size - 8,
              "chunk is smaller than the object");
    TEST_POKE(cp, cp->cache_chunk, cp->cache_chunk + 4,
              "chunk is not a multiple of the alignment");
    TEST_POKE(cp, cp->cache_slab_chunks, n + 1,
              "chunks and colour do not fit the slab");
    TEST_POKE(cp, cp->cache_slab_chunks, 0,
              "chunks and colour do not fit the slab");
    TEST_POKE(cp, cp->cache_colour_max, cp->cache_colour_max + 8,
              "chunks and colour do not fit the slab");
    TEST_POKE(cp, cp->cache_colour_max, cp->cache_colour_max + 512,
              "chunks and colour do not fit the slab");
    TEST_POKE(cp, cp->cache_colour, cp->cache_colour_max + 8,
              "next colour is out of range");
    TEST_POKE(cp, cp->cache_colour, 4, "next colour is out of range");
    end(cp);
}

KTEST(kmem_verify, geometry)
{
    check_geometry(200);
    check_geometry(1000);
}

static void check_slab(size_t size)
{
    size_t n;
    struct kmem_cache *cp = make(size, &n);
    struct kmem_slab *sp = test_slab(cp, 2);
    struct page *p = virt_to_page(sp->slab_base);

    TEST_POKE(cp, sp->slab_cache, kmem_slab_cache,
              "slab belongs to another cache");
    TEST_POKE(cp, sp->slab_base, (char *)sp->slab_base + 8,
              "slab base is not page aligned");
    TEST_POKE(cp, p->page_owner, kmem_slab_cache,
              "slab pages are not marked as the cache's");
    TEST_POKE(cp, p->page_state, PAGE_HASH,
              "slab pages are not marked as the cache's");
    TEST_POKE(cp, sp->slab_chunks, (uint16_t)(n - 1),
              "slab has another number of chunks");
    TEST_POKE(cp, sp->slab_colour, (uint16_t)(cp->cache_colour_max + 8),
              "slab colour is out of range");
    TEST_POKE(cp, sp->slab_colour, 4, "slab colour is out of range");
    TEST_POKE(cp, sp->slab_colour, 1, "slab colour is out of range");
    TEST_POKE(cp, sp->slab_refcnt, (uint32_t)n + 1,
              "reference count exceeds the chunks");
    TEST_POKE(cp, sp->slab_refcnt, 0x80000000u,
              "reference count exceeds the chunks");
    TEST_POKE(cp, sp->slab_refcnt, 1,
              "freelist does not match the reference count");
    TEST_POKE(cp, sp->slab_refcnt, 3,
              "freelist does not match the reference count");
    TEST_POKE(cp, sp->slab_head, NULL,
              "freelist does not match the reference count");
    end(cp);
}

KTEST(kmem_verify, slabs)
{
    check_slab(200);
    check_slab(1000);
}

KTEST(kmem_verify, where_a_slab_is_broken)
{
    size_t n;
    struct kmem_cache *cp = make(200, &n);
    struct kmem_slab *sp = test_slab(cp, 1);

    sp->slab_refcnt++;
    TEST_VERIFY_AT(cp, "slab %p", (void *)sp);
    sp->slab_refcnt--;
    end(cp);
}

KTEST(kmem_verify, header_of_a_small_slab)
{
    size_t n;
    struct kmem_cache *cp = make(200, &n);
    struct kmem_slab *sp = test_slab(cp, 0);

    TEST_POKE(cp, sp->slab_base, (char *)sp->slab_base + PAGE_SIZE,
              "slab data is not at the end of its page");
    end(cp);
}

KTEST(kmem_verify, pages_of_a_large_slab)
{
    size_t n;
    struct kmem_cache *cp = make(1500, &n); /* three pages */
    struct kmem_slab *sp = test_slab(cp, 0);
    struct page *p = virt_to_page(sp->slab_base);
    struct page last = page_array[page_count - 1];

    TEST_POKE(cp, p[2].page_owner, NULL,
              "slab pages are not marked as the cache's");
    TEST_POKE(cp, sp->slab_base,
              mm_phys_to_virt((page_count - 1) << PAGE_SHIFT),
              "slab pages are not marked as the cache's");
    TEST_POKE(cp, sp->slab_base, mm_phys_to_virt(page_count << PAGE_SHIFT),
              "slab pages are not marked as the cache's");
    if (last.page_owner == NULL) { /* else another cache would miss its page */
        page_array[page_count - 1].page_owner = cp;
        page_array[page_count - 1].page_state = PAGE_SLAB;
        TEST_POKE(cp, sp->slab_base,
                  mm_phys_to_virt((page_count - 1) << PAGE_SHIFT),
                  "slab pages are not marked as the cache's");
        page_array[page_count - 1] = last;
    }
    end(cp);
}

/* ---- freelists ---------------------------------------------------------- */

static void check_freelist(size_t size)
{
    size_t n;
    struct kmem_cache *cp = make(size, &n);
    struct kmem_slab *sp = test_slab(cp, 2);
    struct kmem_bufctl *first = sp->slab_head;
    struct kmem_bufctl *second = first->bufctl_next;
    const char *what = "freelist does not match the reference count";

    TEST_POKE(cp, second->bufctl_next, first, what); /* a circle */
    TEST_POKE(cp, first->bufctl_next, first, what);  /* a smaller one */
    TEST_POKE(cp, first->bufctl_next, NULL, what);   /* cut short */
    TEST_POKE(cp, second->bufctl_next, test_slab(cp, 3)->slab_head, what);
    TEST_POKE(cp, second->bufctl_next, (void *)((char *)second + 1), what);
    TEST_POKE(cp, second->bufctl_next, (void *)sp, what);
    TEST_POKE(cp, second->bufctl_next,
              (void *)((char *)first + n * cp->cache_chunk), what);
    TEST_POKE(cp, second->bufctl_next, (void *)&n, what);
    TEST_POKE(cp, sp->slab_head, (void *)&n, what);
    end(cp);
}

KTEST(kmem_verify, freelists)
{
    check_freelist(200);
    check_freelist(600);
}

KTEST(kmem_verify, addresses_of_free_large_buffers)
{
    size_t n;
    struct kmem_cache *cp = make(600, &n);
    struct kmem_bufctl *bcp = test_slab(cp, 2)->slab_head;
    const char *what = "freelist does not match the reference count";

    TEST_POKE(cp, bcp->bufctl_addr, (char *)bcp->bufctl_addr + 8, what);
    TEST_POKE(cp, bcp->bufctl_addr, test_obj[0], what);
    TEST_POKE(cp, bcp->bufctl_addr, bcp->bufctl_next->bufctl_addr, what);
    TEST_POKE(cp, bcp->bufctl_addr, NULL, what);
    TEST_POKE(cp, bcp->bufctl_addr, kmem_slab_chunk(test_slab(cp, 2), n), what);
    end(cp);
}

/* ---- the slab list ------------------------------------------------------ */

static void check_list(size_t size)
{
    size_t n;
    struct kmem_cache *cp = make(size, &n);
    struct kmem_slab *sp[4];

    for (size_t i = 0; i < 4; i++)
        sp[i] = test_slab(cp, i);
    TEST_POKE(cp, sp[1]->slab_link.next, &sp[3]->slab_link,
              "slab list links disagree");
    TEST_POKE(cp, sp[2]->slab_link.prev, &sp[0]->slab_link,
              "slab list links disagree");
    TEST_POKE(cp, sp[2]->slab_link.prev, NULL, "slab list links disagree");
    TEST_POKE(cp, sp[2]->slab_link.next, &sp[2]->slab_link,
              "slab list links disagree");
    TEST_POKE(cp, sp[3]->slab_link.next, &sp[0]->slab_link,
              "slab list links disagree");
    TEST_POKE(cp, cp->cache_null.slab_link.prev, &sp[0]->slab_link,
              "slab list links disagree");
    TEST_POKE(cp, cp->cache_slabs, 3, "slab list is longer than its count");
    TEST_POKE(cp, cp->cache_slabs, 5, "slab list is shorter than its count");
    end(cp);
}

KTEST(kmem_verify, slab_list)
{
    check_list(200);
    check_list(1000);
}

KTEST(kmem_verify, slab_list_with_an_invalid_link)
{
    size_t n;
    struct kmem_cache *cp = make(200, &n);
    struct list local = {&local, &local};

    TEST_POKE(cp, test_slab(cp, 3)->slab_link.next, &local,
              "slab list has an invalid link");
    TEST_POKE(cp, cp->cache_null.slab_link.next, NULL,
              "slab list has an invalid link");
    TEST_POKE(cp, cp->cache_null.slab_link.next,
              (struct list *)((char *)cp->cache_null.slab_link.next + 1),
              "slab list has an invalid link");
    TEST_POKE(cp, test_slab(cp, 1)->slab_link.next, mm_phys_to_virt(64),
              "slab list has an invalid link");
    end(cp);
}

KTEST(kmem_verify, large_slab_list_with_an_invalid_link)
{
    size_t n;
    struct kmem_cache *cp = make(1000, &n);
    struct list local = {&local, &local};
    struct list **link = &test_slab(cp, 1)->slab_link.next;

    TEST_POKE(cp, *link, &local, "slab list has an invalid link");
    TEST_POKE(cp, *link, mm_phys_to_virt(64), "slab list has an invalid link");
    TEST_POKE(cp, *link, (struct list *)test_obj[0],
              "slab list has an invalid link");
    TEST_POKE(cp, *link, NULL, "slab list has an invalid link");
    end(cp);
}

/* Moves the slab at `from` to the end of the list. */
static void to_tail(struct kmem_cache *cp, struct kmem_slab *sp)
{
    list_remove(&sp->slab_link);
    list_insert_before(&cp->cache_null.slab_link, &sp->slab_link);
}

KTEST(kmem_verify, order_of_the_slab_list)
{
    size_t n;
    struct kmem_cache *cp = make(200, &n);
    struct kmem_slab *full = test_slab(cp, 1);
    struct kmem_slab *partial = test_slab(cp, 2);
    struct kmem_slab *free = test_slab(cp, 3);

    to_tail(cp, partial); /* free before partial */
    TEST_VERIFY_SAYS(cp, "slab list is out of order");
    to_tail(cp, free);
    TEST_VERIFY(cp);
    to_tail(cp, full); /* anything before full */
    TEST_VERIFY_SAYS(cp, "slab list is out of order");
    to_tail(cp, partial);
    to_tail(cp, free);
    TEST_VERIFY(cp);
    end(cp);
}

KTEST(kmem_verify, counts)
{
    size_t n;
    struct kmem_cache *cp = make(200, &n);

    TEST_POKE(cp, cp->cache_slab_creates, 5,
              "slabs are not those created less destroyed");
    TEST_POKE(cp, cp->cache_slab_destroys, 1,
              "slabs are not those created less destroyed");
    TEST_POKE(cp, cp->cache_max_slabs, 3,
              "most slabs ever is less than those there are");
    TEST_POKE(cp, cp->cache_allocs, cp->cache_allocs + 1,
              "objects in use are not allocations less frees");
    TEST_POKE(cp, cp->cache_frees, cp->cache_frees + 1,
              "objects in use are not allocations less frees");
    TEST_POKE(cp, cp->cache_full_slabs, 1, "count of full slabs is wrong");
    TEST_POKE(cp, cp->cache_free_slabs, 2, "count of free slabs (T) is wrong");
    TEST_POKE(cp, cp->cache_ws_min, 2, "working set: m exceeds T");
    TEST_POKE(cp, cp->cache_freelist, test_slab(cp, 3),
              "freelist pointer is not the first free slab");
    TEST_POKE(cp, cp->cache_freelist, &cp->cache_null,
              "freelist pointer is not the first free slab");
    TEST_POKE(cp, cp->cache_freelist, test_slab(cp, 1),
              "freelist pointer is not the first free slab");
    end(cp);
}

KTEST(kmem_verify, freelist_pointer_of_an_exhausted_cache)
{
    struct kmem_cache *cp = kmem_cache_create("t_verify", 500, 0, NULL, NULL);

    KT_REQUIRE(cp != NULL);
    test_alloc(cp, 0, cp->cache_slab_chunks);
    TEST_POKE(cp, cp->cache_freelist, test_slab(cp, 0),
              "freelist pointer is not the first free slab");
    test_free(cp, 0, cp->cache_slab_chunks);
    test_destroy(cp);
}

/* ---- the hash table ----------------------------------------------------- */

KTEST(kmem_verify, hash_chains)
{
    size_t n;
    struct kmem_cache *cp = make(600, &n);
    struct kmem_bufctl **bucket = kmem_hash_bucket(cp, test_obj[0]);
    struct kmem_bufctl *bcp = *bucket;
    struct kmem_bufctl **other =
        &cp->cache_hash[((size_t)(bucket - cp->cache_hash) + 1) & 63];

    TEST_POKE(cp, *bucket, (void *)&n, "hash chain has an invalid link");
    TEST_POKE(cp, *bucket, (void *)test_obj[0],
              "hash chain has an invalid link");
    TEST_POKE(cp, *bucket, NULL, "hash holds less than the objects in use");
    TEST_POKE(cp, *other, bcp, "bufctl is in the wrong hash bucket");
    TEST_POKE(cp, bcp->bufctl_slab, (void *)&n,
              "bufctl points to a slab of another cache");
    TEST_POKE(cp, bcp->bufctl_slab, NULL,
              "bufctl points to a slab of another cache");
    TEST_POKE(cp, bcp->bufctl_slab->slab_cache, kmem_slab_cache,
              "slab belongs to another cache");
    TEST_POKE(cp, bcp->bufctl_slab, test_slab_of(kmem_bufctl_cache, bcp),
              "bufctl points to a slab of another cache");
    TEST_POKE(cp, bcp->bufctl_slab, test_slab(cp, 3),
              "bufctl's address is no chunk of its slab");
    TEST_POKE(cp, bcp->bufctl_addr, (char *)bcp->bufctl_addr + 1,
              "bufctl's address is no chunk of its slab");
    end(cp);
}

/* The right bucket and a multiple of the chunk, but beyond the slab; and a
 * slab of another cache. */
KTEST(kmem_verify, hash_entries_of_other_slabs)
{
    size_t n;
    struct kmem_cache *cp = make(512, &n);
    struct kmem_cache *other = kmem_cache_create("t_other", 512, 0, NULL, NULL);
    KT_REQUIRE(other != NULL);
    struct kmem_bufctl *bcp = *kmem_hash_bucket(cp, test_obj[0]);
    struct kmem_slab copy = *bcp->bufctl_slab;
    void *obj = kmem_cache_alloc(other, KM_SLEEP);

    TEST_POKE(cp, bcp->bufctl_addr, (char *)bcp->bufctl_addr + (64 << 9),
              "bufctl's address is no chunk of its slab");
    TEST_POKE(cp, bcp->bufctl_slab, test_slab(other, 0),
              "bufctl points to a slab of another cache");
    TEST_POKE(cp, bcp->bufctl_slab, &copy,
              "bufctl points to a slab of another cache");
    kmem_cache_free(other, obj);
    test_destroy(other);
    end(cp);
}

/* The chunk after the last, in the bucket of its address. */
KTEST(kmem_verify, hash_entry_at_the_end_of_its_slab)
{
    size_t n;
    struct kmem_cache *cp = make(512, &n);
    struct kmem_bufctl **from = kmem_hash_bucket(cp, test_obj[0]);
    struct kmem_bufctl *bcp = *from;
    struct kmem_bufctl *rest = bcp->bufctl_next;
    void *addr = bcp->bufctl_addr;
    struct kmem_bufctl **to;

    *from = rest;
    bcp->bufctl_addr = kmem_slab_chunk(bcp->bufctl_slab, n);
    to = kmem_hash_bucket(cp, bcp->bufctl_addr);
    bcp->bufctl_next = *to;
    *to = bcp;
    TEST_VERIFY_SAYS(cp, "bufctl's address is no chunk of its slab");
    *to = bcp->bufctl_next;
    bcp->bufctl_addr = addr;
    bcp->bufctl_next = rest;
    *from = bcp;
    TEST_VERIFY(cp);
    end(cp);
}

/* A chain that runs in a circle ends at the count of objects. */
KTEST(kmem_verify, hash_chain_in_a_circle)
{
    size_t n;
    struct kmem_cache *cp = make(600, &n);
    struct kmem_bufctl *last = *kmem_hash_bucket(cp, test_obj[0]);

    while (last->bufctl_next != NULL)
        last = last->bufctl_next;
    TEST_POKE(cp, last->bufctl_next, last,
              "hash holds more than the objects in use");
    end(cp);
}

/* A free buffer on a chain: its bufctl is taken off the freelist for it. */
KTEST(kmem_verify, free_buffer_in_the_hash_table)
{
    size_t n;
    struct kmem_cache *cp = make(600, &n);
    struct kmem_slab *sp = test_slab(cp, 2);
    struct kmem_bufctl *bcp = sp->slab_head;
    struct kmem_bufctl *next = bcp->bufctl_next;
    struct kmem_bufctl **bucket = kmem_hash_bucket(cp, bcp->bufctl_addr);

    sp->slab_head = next;
    bcp->bufctl_next = *bucket;
    *bucket = bcp;
    TEST_VERIFY_SAYS(cp, "freelist does not match the reference count");
    *bucket = bcp->bufctl_next;
    bcp->bufctl_next = next;
    sp->slab_head = bcp;
    TEST_VERIFY(cp);
    end(cp);
}

/* ---- the whole heap ----------------------------------------------------- */

KTEST(kmem_verify, sums_with_the_supplier)
{
    static const struct {
        enum page_state use;
        const char *what;
    } cases[] = {
        {PAGE_SLAB, "slab pages of all caches are not segkmem's"},
        {PAGE_HASH, "hash pages of all caches are not segkmem's"},
        {PAGE_OVERSIZE, "oversize pages are not segkmem's"},
    };

    TEST_VERIFY(NULL);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        void *lost = kmem_getpages(1, cases[i].use, NULL);
        struct segkmem_stat seg;
        const char *where;
        char text[96];

        KT_REQUIRE(lost != NULL);
        TEST_VERIFY_SAYS(NULL, cases[i].what);
        segkmem_stat(&seg);
        snprintf(text, sizeof(text),
                 "segkmem: %zu slab, %zu hash, %zu oversize pages",
                 seg.stat_use[PAGE_SLAB], seg.stat_use[PAGE_HASH],
                 seg.stat_use[PAGE_OVERSIZE]);
        kmem_verify(&where);
        KT_EQ(strcmp(where, text), 0);
        kmem_freepages(lost, 1);
        TEST_VERIFY(NULL);
    }
}

KTEST(kmem_verify, a_broken_cache_breaks_the_heap)
{
    size_t n;
    struct kmem_cache *cp = make(200, &n);
    struct kmem_cache *last = kmem_cache_create("t_last", 8, 0, NULL, NULL);

    KT_REQUIRE(last != NULL);
    cp->cache_full_slabs++;
    TEST_VERIFY_SAYS(NULL, "count of full slabs is wrong");
    cp->cache_full_slabs--;
    TEST_VERIFY(NULL);
    last->cache_full_slabs++;
    TEST_VERIFY_SAYS(NULL, "count of full slabs is wrong");
    last->cache_full_slabs--;
    TEST_POKE(NULL, kmem_cache_cache.cache_full_slabs,
              kmem_cache_cache.cache_full_slabs + 1, /* the first cache */
              "count of full slabs is wrong");
    test_destroy(last);
    end(cp);
}
