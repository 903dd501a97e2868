/*
 * Lab 3, A slab: the layout of small objects, the list of slabs, the size of
 * slabs, each without a working allocator; the last test uses the running
 * kernel.
 */
#include "docs/labs/03-slab/tests/heap.h"
#include "kernel/lib/string.h"
#include "tools/workshop/ktest/failures.h"
#include "tools/workshop/labs/seed.h"

#define WORD sizeof(void *)
#define ROOM (PAGE_SIZE - sizeof(struct kmem_slab)) /* for buffers in a page */

/* What follows from the seed. */
enum {
    RANDOM = 30,
    COLOURED,
    FEW,
    ALONE,
    FULL_SLABS,
    SMALLEST
};

/* ---- 3.1: the layout in numbers ----------------------------------------- */

/* The chunk must be the smallest sufficient multiple of the alignment. */
static bool expect_chunk(size_t size, size_t align, bool constructed)
{
    size_t room = size + (constructed ? WORD : 0);
    size_t chunk = heap_geometry(size, align, constructed)->cache_chunk;
    size_t want = room;

    while (want % align != 0)
        want++;
    if (chunk == want)
        return true;
    KT_FAIL("objects of %zu bytes, alignment %zu, %s: the chunk is %zu, want "
            "%zu",
            size, align, constructed ? "constructed" : "not constructed", chunk,
            want);
    return false;
}

LAB_TEST(3, chunk, LAB_EARLY)
{
    for (size_t align = KMEM_ALIGN_MIN; align <= 256; align *= 2)
        for (size_t size = 1; size <= 256; size++)
            if (!expect_chunk(size, align, false))
                return;
}

LAB_TEST(3, chunk_constructed, LAB_EARLY)
{
    for (size_t align = KMEM_ALIGN_MIN; align <= 256; align *= 2)
        for (size_t size = 1; size + WORD <= 256; size++)
            if (!expect_chunk(size, align, true))
                return;
}

static bool expect_geometry(const struct kmem_cache *cp, bool constructed)
{
    if (cp->cache_slab_pages != 1 ||
        cp->cache_slab_chunks != ROOM / cp->cache_chunk) {
        KT_FAIL("a slab of chunks of %zu bytes has %zu pages and %zu of them; "
                "want 1 page and %zu",
                cp->cache_chunk, cp->cache_slab_pages, cp->cache_slab_chunks,
                ROOM / cp->cache_chunk);
        return false;
    }
    if (cp->cache_bufctl + WORD == cp->cache_chunk &&
        (!constructed || cp->cache_bufctl >= cp->cache_size))
        return true;
    KT_FAIL("objects of %zu bytes, %s, in chunks of %zu: the link is at byte "
            "%ld of a buffer; want %zu, and no byte of a constructed object",
            cp->cache_size, constructed ? "constructed" : "not constructed",
            cp->cache_chunk, (long)cp->cache_bufctl, cp->cache_chunk - WORD);
    return false;
}

LAB_TEST(3, geometry, LAB_EARLY)
{
    for (size_t size = 1; size <= 500; size++) {
        bool constructed = size % 2 == 0;

        if (!expect_geometry(heap_geometry(size, 8, constructed), constructed))
            return;
    }
}

/* ---- 3.2: the list through the buffers ---------------------------------- */

static struct kmem_slab *new_slab(size_t chunk, size_t chunks, size_t colour)
{
    struct kmem_slab *sp;

    heap_cache_make(chunk, chunks);
    sp = kmem_slab_create(&heap_cache, colour);
    if (sp == NULL)
        KT_FAIL("the machine has too little memory for this test");
    return sp;
}

/* The freelist must have all buffers in order, from the first to the last. */
static bool expect_links(const struct kmem_slab *sp)
{
    const struct kmem_bufctl *bcp = sp->slab_head;
    size_t chunk = heap_cache.cache_chunk;
    size_t first = sp->slab_colour + chunk - WORD;

    for (size_t i = 0; i < sp->slab_chunks; i++) {
        size_t want = first + i * chunk;
        size_t got = (uintptr_t)bcp - (uintptr_t)sp->slab_base;

        if (got != want) {
            KT_FAIL("buffers of %zu bytes, %u of them, from byte %u on: link "
                    "%zu of the freelist is at byte %ld of the page; want %zu",
                    chunk, (unsigned)sp->slab_chunks, (unsigned)sp->slab_colour,
                    i, (long)got, want);
            return false;
        }
        bcp = bcp->bufctl_next;
    }
    if (bcp != NULL)
        KT_FAIL("the freelist does not end after the last buffer");
    return bcp == NULL;
}

LAB_TEST(3, freelist, LAB_EARLY)
{
    for (size_t chunk = 8; chunk <= 512; chunk += 8) {
        struct kmem_slab *sp = new_slab(chunk, ROOM / chunk, 0);

        if (sp == NULL || !expect_links(sp))
            return;
    }
}

LAB_TEST(3, freelist_colour, LAB_EARLY)
{
    size_t chunk = 200 + 8 * lab_pick(COLOURED, 26);

    for (size_t colour = 0; colour <= 64; colour += 8) {
        struct kmem_slab *sp = new_slab(chunk, (ROOM - colour) / chunk, colour);

        if (sp == NULL || !expect_links(sp))
            return;
    }
}

LAB_TEST(3, freelist_few, LAB_EARLY)
{
    size_t chunk = 304 + 8 * lab_pick(FEW, 26);

    for (size_t chunks = 1; chunks <= 4; chunks++) {
        struct kmem_slab *sp = new_slab(chunk, chunks, 0);

        if (sp == NULL || !expect_links(sp))
            return;
    }
}

/* Whether byte `at` of the page is in a link; other bytes belong to the
 * client. */
static bool is_link(size_t at, size_t chunk, size_t chunks)
{
    return at < chunk * chunks && at % chunk >= chunk - WORD;
}

LAB_TEST(3, freelist_alone, LAB_EARLY)
{
    const size_t chunk = 24 + 8 * lab_pick(ALONE, 13);
    const size_t chunks = ROOM / chunk;
    struct kmem_slab *sp = new_slab(chunk, chunks, 0);
    const uint8_t *page;

    if (sp == NULL || !expect_links(sp))
        return;
    page = sp->slab_base;
    for (size_t i = 0; i < ROOM; i++)
        if (!is_link(i, chunk, chunks) && page[i] != HEAP_FILL) {
            KT_FAIL("byte %zu of the page was written, byte %zu of a buffer: "
                    "only the last word of a buffer is the allocator's",
                    i, i % chunk);
            return;
        }
}

/* ---- 3.3: taking and giving --------------------------------------------- */

/* Before the slabs that a test is about, unless they are to be alone. */
#define FULL (1 + lab_pick(FULL_SLABS, HEAP_FULL))

static void expect_slab(const struct kmem_slab *sp, uint32_t refcnt,
                        const struct kmem_bufctl *head)
{
    if (sp->slab_refcnt != refcnt)
        KT_FAIL("slab %s counts %u allocated buffers; want %u", heap_name(sp),
                (unsigned)sp->slab_refcnt, (unsigned)refcnt);
    if (sp->slab_head != head)
        KT_FAIL("the freelist of slab %s does not begin with the right buffer",
                heap_name(sp));
}

LAB_TEST(3, take, LAB_EARLY)
{
    struct kmem_bufctl *second;

    heap_list_make(FULL, "310");
    second = heap_slab[1].slab_head->bufctl_next;
    KT_TRUE(heap_take() != NULL);
    expect_slab(&heap_slab[1], 2, second);
    KT_EQ(heap_cache.cache_allocs, 1);
    KT_EQ(heap_cache.cache_frees, 0);
    heap_expect_list("ABC");
}

LAB_TEST(3, take_first, LAB_EARLY)
{
    heap_list_make(FULL, "300");
    KT_TRUE(heap_take() != NULL);
    KT_EQ(heap_slab[1].slab_refcnt, 1);
    KT_TRUE(heap_cache.cache_ws_min <= 1); /* as kmem_ws_take leaves it */
    heap_expect_list("ABC");
    KT_TRUE(heap_take() != NULL);
    KT_EQ(heap_cache.cache_free_slabs, 1);
}

LAB_TEST(3, take_last, LAB_EARLY)
{
    heap_list_make(FULL, "321");
    KT_TRUE(heap_take() != NULL);
    expect_slab(&heap_slab[1], 3, NULL);
    heap_expect_list("ABC");
    heap_list_make(0, "2");
    KT_TRUE(heap_take() != NULL);
    heap_expect_list("A");
}

static bool give_locked(struct kmem_bufctl *bcp, struct kmem_slab *sp)
{
    if (heap_give(sp, bcp))
        return true;
    KT_FAIL("the lock of the cache was released");
    return false;
}

LAB_TEST(3, give, LAB_EARLY)
{
    struct kmem_bufctl out = {0};
    struct kmem_bufctl *head;

    heap_list_make(FULL, "320");
    head = heap_slab[1].slab_head;
    KT_TRUE(heap_give(&heap_slab[1], &out));
    expect_slab(&heap_slab[1], 1, &out);
    KT_EQ(KT_PTR(out.bufctl_next), KT_PTR(head));
    KT_EQ(heap_cache.cache_frees, 1);
    KT_EQ(heap_cache.cache_allocs, 0);
    heap_expect_list("ABC");
}

LAB_TEST(3, give_keeps_lock, LAB_EARLY)
{
    struct kmem_bufctl out = {0};

    heap_list_make(FULL, "2");
    give_locked(&out, &heap_slab[0]);
}

/* ---- 3.4: the three parts of the list ----------------------------------- */

/* A buffer of a full slab was freed. */
static void free_of_full(size_t i)
{
    static struct kmem_bufctl back;

    back.bufctl_next = NULL;
    heap_slab[i].slab_head = &back;
    heap_slab[i].slab_refcnt--;
    kmem_slab_to_front(&heap_cache, &heap_slab[i]);
}

LAB_TEST(3, to_front, LAB_EARLY)
{
    heap_list_make(FULL, "33320");
    free_of_full(0);
    heap_expect_list("BCADE");
    free_of_full(1);
    heap_expect_list("CBADE");
    free_of_full(2);
    heap_expect_list("CBADE");
}

/* In an exhausted cache: the freelist pointer is at the list's end. */
LAB_TEST(3, to_front_exhausted, LAB_EARLY)
{
    heap_list_make(FULL, "333");
    free_of_full(1);
    heap_expect_list("ACB");
    heap_list_make(0, "3");
    free_of_full(0);
    heap_expect_list("A");
}

/* The last allocated buffer of a slab was freed. */
static void free_last(size_t i)
{
    heap_slab[i].slab_refcnt = 0;
    kmem_slab_to_tail(&heap_cache, &heap_slab[i]);
}

LAB_TEST(3, to_tail, LAB_EARLY)
{
    heap_list_make(FULL, "31120");
    free_last(2);
    heap_expect_list("ABDEC");
    free_last(1);
    heap_expect_list("ADECB");
    free_last(3);
    heap_expect_list("AECBD");
}

LAB_TEST(3, to_tail_last, LAB_EARLY)
{
    heap_list_make(FULL, "331");
    free_last(2);
    heap_expect_list("ABC");
    heap_list_make(0, "1");
    free_last(0);
    heap_expect_list("A");
}

/* ---- 3.3 and 3.4 together ----------------------------------------------- */

#define HELD (HEAP_SLABS * HEAP_BUFFERS)

/* Full slabs first, then partial ones, then free ones. */
static bool expect_sorted(void)
{
    int part = 0;

    list_for_each (l, &heap_cache.cache_null.slab_link) {
        const struct kmem_slab *sp = list_entry(l, struct kmem_slab, slab_link);
        int is = sp->slab_refcnt == 0              ? 2
                 : sp->slab_refcnt == HEAP_BUFFERS ? 0
                                                   : 1;

        if (is < part) {
            KT_FAIL(
                "slab %s, with %u of %u buffers allocated, comes after slabs "
                "with fewer",
                heap_name(sp), (unsigned)sp->slab_refcnt, HEAP_BUFFERS);
            return false;
        }
        part = is;
    }
    return true;
}

/* A slab of a single buffer is full or free: its free moves it to the front,
 * and then to the tail. */
static void give_single_buffers(void)
{
    static struct kmem_bufctl single[2];

    heap_list_make(FULL, "33");
    for (size_t i = 0; i < ARRAY_SIZE(single); i++)
        heap_slab[i].slab_refcnt = heap_slab[i].slab_chunks = 1;
    give_locked(&single[0], &heap_slab[0]);
    heap_expect_list("BA");
    give_locked(&single[1], &heap_slab[1]);
    heap_expect_list("AB");
    if (ktest_failures() != 0)
        KT_FAIL("those were slabs of a single buffer, A freed first");
}

LAB_TEST(3, lists, LAB_EARLY)
{
    static struct kmem_bufctl *bcp[HELD];
    static struct kmem_slab *of[HELD];

    give_single_buffers();
    if (ktest_failures() != 0)
        return;
    heap_list_make(0, "00000000");
    random_begin(RANDOM);
    for (size_t i = 0; i < 20000; i++) {
        size_t k = random_below(HELD);

        if (bcp[k] != NULL) {
            if (!give_locked(bcp[k], of[k]))
                return;
            bcp[k] = NULL;
        } else {
            of[k] = heap_cache.cache_freelist;
            bcp[k] = heap_take();
        }
        if (!expect_sorted() || ktest_failures() != 0)
            return;
    }
}

/* ---- 3.5: one eighth ---------------------------------------------------- */

static size_t waste(size_t pages, size_t front, size_t chunk)
{
    return (pages * PAGE_SIZE - front) % chunk;
}

/* An object fits into the slab, and at most 1/part of it is unused. */
static bool is_good(size_t pages, size_t front, size_t chunk, size_t part)
{
    size_t bytes = pages * PAGE_SIZE;

    return bytes >= front + chunk && waste(pages, front, chunk) * part <= bytes;
}

static bool expect_eighth(size_t front, size_t chunk)
{
    size_t pages = kmem_large_pages(front, chunk);

    if (pages <= 1024 && is_good(pages, front, chunk, 8))
        return true;
    KT_FAIL("chunks of %zu bytes from byte %zu on: a slab of %zu pages leaves "
            "%zu bytes unused, more than 1/8, or holds none",
            chunk, front, pages, waste(pages, front, chunk));
    return false;
}

LAB_TEST(3, eighth, LAB_EARLY)
{
    for (size_t chunk = 512; chunk <= KIB(40); chunk += 8)
        if (!expect_eighth(0, chunk))
            return;
    for (size_t chunk = KIB(40); chunk <= KIB(1024); chunk += 1000)
        if (!expect_eighth(0, chunk))
            return;
}

/* The fewest pages of which at most 1/part is unused, up to `most`; 0 if there
 * are none. */
static size_t fewest(size_t front, size_t chunk, size_t part, size_t most)
{
    for (size_t pages = 1; pages <= most; pages++)
        if (is_good(pages, front, chunk, part))
            return pages;
    return 0;
}

static bool expect_pages(size_t front, size_t chunk, size_t want)
{
    size_t got = kmem_large_pages(front, chunk);

    if (got == want)
        return true;
    KT_FAIL("chunks of %zu bytes from byte %zu on: %zu pages with %zu bytes "
            "unused; want %zu pages with %zu",
            chunk, front, got, waste(got, front, chunk), want,
            waste(want, front, chunk));
    return false;
}

/* If no small slab leaves at most 1/16 unused, 1/8 of the whole slab counts. */
LAB_TEST(3, eighth_front, LAB_EARLY)
{
    for (size_t front = 8; front <= 2 * PAGE_SIZE; front *= 2)
        for (size_t chunk = 512; chunk <= KIB(20); chunk += 8)
            if (!expect_eighth(front, chunk) ||
                (fewest(front, chunk, 16, 8) == 0 &&
                 !expect_pages(front, chunk, fewest(front, chunk, 8, 1024))))
                return;
}

LAB_TEST(3, sixteenth, LAB_EARLY)
{
    for (size_t chunk = 512; chunk <= KIB(40); chunk += 8) {
        size_t want = fewest(0, chunk, 16, 8);

        if (!expect_pages(0, chunk,
                          want != 0 ? want : fewest(0, chunk, 8, 1024)))
            return;
    }
}

/* ---- all of it ---------------------------------------------------------- */

#define OBJECTS 300

static void *object[OBJECTS];

static void set_up(void *obj, size_t size)
{
    memset(obj, 'c', size);
}

static bool is_set_up(const char *obj, size_t size)
{
    size_t n = 0;

    while (n < size && obj[n] == 'c')
        n++;
    return n == size;
}

static bool use_some(struct kmem_cache *cp, size_t size)
{
    for (size_t i = 0; i < 3000; i++) {
        size_t k = random_below(OBJECTS);

        if (object[k] != NULL) {
            kmem_cache_free(cp, object[k]);
            object[k] = NULL;
            continue;
        }
        object[k] = kmem_cache_alloc(cp, KM_SLEEP);
        if (is_set_up(object[k], size))
            continue;
        KT_FAIL("an object of %zu bytes is not as its constructor left it",
                size);
        return false;
    }
    return true;
}

static bool is_intact(struct kmem_cache *cp)
{
    const char *where;
    const char *broken = kmem_cache_verify(cp, &where);

    if (broken != NULL)
        KT_FAIL("%s: %s", where, broken);
    return broken == NULL;
}

static void free_all(struct kmem_cache *cp)
{
    for (size_t k = 0; k < OBJECTS; k++)
        if (object[k] != NULL)
            kmem_cache_free(cp, object[k]);
    memset(object, 0, sizeof(object));
}

LAB_TEST(3, stress, LAB_UP)
{
    random_begin(RANDOM);
    for (size_t size = 12 + lab_pick(SMALLEST, 4); size < 6000;
         size = size * 5 / 2) {
        struct kmem_cache *cp =
            kmem_cache_create("lab3", size, 0, set_up, NULL);
        bool good;

        KT_REQUIRE(cp != NULL);
        good = use_some(cp, size) && is_intact(cp);
        free_all(cp);
        good = good && is_intact(cp);
        kmem_cache_destroy(cp);
        if (!good)
            return;
    }
}
