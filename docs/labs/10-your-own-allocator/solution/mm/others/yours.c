/*
 * Segregated fits: a page has blocks of one size.
 *
 * A request is rounded up to one of 38 sizes: each multiple of 16 up to 512
 * bytes, and from there on the largest that fit 7, 6, … 2 times into a page.
 * Each size has a list of the pages that have a free block:
 *
 *     size              pages with a free block
 *     16
 *     32                page, page
 *     …
 *     304               page, page, a page that is all free, at the end
 *     …
 *     2048              page
 *
 * Each free block of a page has the address of the next one. An allocation
 * takes the first free block of the first page. A free finds its page by the
 * address and adds the block to the page's list. What is known of a page is in
 * its descriptor, so an allocated block has no header. Larger requests get
 * whole pages.
 *
 * Good: both operations are short and do not search. A page that is all free
 * is returned, except one of each size, so that a client that allocates and
 * frees one block does not get and return a page each time; pressure returns
 * these, too. Sizes that are rare share nothing.
 *
 * Bad: each of 38 sizes has a page that is partly free. A page with one
 * long-lived block stays. Constructors run at each allocation.
 *
 * Sources: the sizes are those of no other allocator; pages of one size are
 * McKusick's and Karels's (bsd.c), pages that go back are the slab paper's.
 */
#include "mm/others/others.h"
#include "mm/page.h"

#define BLOCK_MOST 2048 /* larger requests get whole pages */

static struct other_heap heap;

#define SMALL_STEP 16
#define SMALL_MOST 512 /* a size for each multiple of SMALL_STEP, up to this */
#define SIZES      (SMALL_MOST / SMALL_STEP + 7)

struct block {
    struct block *block_next;
};

/* In the descriptor of a page. */
struct page_note {
    uintptr_t note_pages; /* of the large block that begins here, or 0 */
    struct list note_link;
    struct block *note_free;
    uint16_t note_used; /* allocated blocks */
    uint16_t note_size; /* number of their size; 0: there are no blocks */
};

struct size {
    struct list size_pages; /* with a free block */
    size_t size_block;
    unsigned size_blocks; /* of a page */
    unsigned size_spare;  /* pages that are all free: 0 or 1 */
};

static struct size sizes[SIZES];
static size_t free_bytes; /* in pages of blocks */

/* ---- whole pages -------------------------------------------------------- */

/* How many pages a large block has: the first word of the first one's
 * descriptor. */
static uintptr_t *run_of(const void *p)
{
    uintptr_t *info = supply_info(heap.heap_supply, p);

    if (info == NULL)
        mm_panic("yours: %p is not memory", p);
    return info;
}

static void *run_alloc(size_t asked, size_t size, struct other_cache *c)
{
    size_t pages = PAGES_FOR(size);
    void *p = supply_alloc(heap.heap_supply, pages, PAGE_SIZE);

    other_lock(&heap);
    if (p != NULL) {
        *run_of(p) = pages;
        other_count_pages(&heap, (ptrdiff_t)pages);
        other_count_alloc(&heap, c, asked, pages << PAGE_SHIFT, 0);
    } else {
        other_count_fail(&heap, c);
    }
    other_unlock(&heap);
    return p;
}

static void run_free(struct other_cache *c, void *p, size_t asked, size_t size)
{
    size_t pages = PAGES_FOR(size);

    other_lock(&heap);
    if (*run_of(p) != pages)
        mm_panic("yours: %p is not a block of %zu pages", p, pages);
    *run_of(p) = 0;
    other_count_free(&heap, c, asked, pages << PAGE_SHIFT, 0);
    other_count_pages(&heap, -(ptrdiff_t)pages);
    other_unlock(&heap);
    supply_free(heap.heap_supply, p, pages);
}

/* ---- blocks ------------------------------------------------------------- */

static unsigned size_of(size_t bytes)
{
    bytes = ROUND_UP(bytes, (size_t)SMALL_STEP);
    return bytes <= SMALL_MOST
               ? bytes / SMALL_STEP
               : SMALL_MOST / SMALL_STEP + 8 - PAGE_SIZE / bytes;
}

static void init_sizes(void)
{
    free_bytes = 0;
    for (unsigned i = 1; i < SIZES; i++) {
        size_t bytes = i * SMALL_STEP;

        if (bytes > SMALL_MOST)
            bytes = PAGE_SIZE / (SMALL_MOST / SMALL_STEP + 8 - i) / SMALL_STEP *
                    SMALL_STEP;
        sizes[i] = (struct size){.size_block = bytes,
                                 .size_blocks = PAGE_SIZE / bytes};
        list_init(&sizes[i].size_pages);
    }
}

static bool is_spare(const struct page_note *n)
{
    return n->note_used == 0;
}

/* A page of free blocks, the lowest first. The lock is released meanwhile. */
static void add_page(unsigned i)
{
    struct size *s = &sizes[i];
    struct page_note *n;
    char *page;

    other_unlock(&heap);
    page = supply_alloc(heap.heap_supply, 1, PAGE_SIZE);
    other_lock(&heap);
    if (page == NULL)
        return;
    n = supply_info(heap.heap_supply, page);
    n->note_size = (uint16_t)i;
    for (size_t k = s->size_blocks; k-- > 0;) {
        struct block *b = (struct block *)(page + k * s->size_block);

        b->block_next = n->note_free;
        n->note_free = b;
    }
    list_insert_after(&s->size_pages, &n->note_link);
    s->size_spare++;
    free_bytes += PAGE_SIZE;
    other_count_pages(&heap, 1);
}

static void *block_alloc(size_t asked, size_t size, struct other_cache *c)
{
    unsigned i = size_of(size);
    struct size *s = &sizes[i];
    struct block *b = NULL;

    other_lock(&heap);
    if (unlikely(list_empty(&s->size_pages)))
        add_page(i);
    if (likely(!list_empty(&s->size_pages))) {
        struct page_note *n =
            list_entry(s->size_pages.next, struct page_note, note_link);

        b = n->note_free;
        n->note_free = b->block_next;
        s->size_spare -= is_spare(n);
        n->note_used++;
        if (n->note_free == NULL)
            list_remove(&n->note_link);
        free_bytes -= s->size_block;
        other_count_alloc(&heap, c, asked, s->size_block, 0);
    } else {
        other_count_fail(&heap, c);
    }
    other_unlock(&heap);
    return b;
}

/* Forgets a page that is all free. The caller returns it without the lock. */
static void *remove_page(struct page_note *n)
{
    sizes[n->note_size].size_spare--;
    n->note_size = 0;
    list_remove(&n->note_link);
    free_bytes -= PAGE_SIZE;
    other_count_pages(&heap, -1);
    return supply_page(heap.heap_supply, n);
}

/* A block is free. Returns its page if that is to be returned, or NULL. */
static void *page_free_block(struct size *s, struct page_note *n,
                             struct block *b)
{
    bool was_full = n->note_free == NULL;

    b->block_next = n->note_free;
    n->note_free = b;
    n->note_used--;
    if (was_full)
        list_insert_after(&s->size_pages, &n->note_link);
    if (likely(!is_spare(n)))
        return NULL;
    if (s->size_spare++ != 0)
        return remove_page(n);
    list_remove(&n->note_link); /* last: it is used when no other is left */
    list_insert_before(&s->size_pages, &n->note_link);
    return NULL;
}

static void block_free(struct other_cache *c, void *p, size_t asked,
                       size_t size)
{
    struct page_note *n = supply_info(heap.heap_supply, p);
    unsigned i = size_of(size);
    void *page;

    if (n == NULL || n->note_size != i || n->note_used == 0)
        mm_panic("yours: %p is not a block for %zu bytes", p, size);
    other_lock(&heap);
    free_bytes += sizes[i].size_block;
    other_count_free(&heap, c, asked, sizes[i].size_block, 0);
    page = page_free_block(&sizes[i], n, p);
    other_unlock(&heap);
    if (unlikely(page != NULL))
        supply_free(heap.heap_supply, page, 1);
}

/* Only the last page of a list can be all free. */
static void yours_pressure(void)
{
    for (unsigned i = 1; i < SIZES; i++) {
        void *page = NULL;

        other_lock(&heap);
        if (sizes[i].size_spare != 0)
            page = remove_page(list_entry(sizes[i].size_pages.prev,
                                          struct page_note, note_link));
        other_unlock(&heap);
        if (page != NULL)
            supply_free(heap.heap_supply, page, 1);
    }
}

/* ---- what both are for -------------------------------------------------- */

/* A block of `size` bytes for a request of `asked`, of a cache or NULL. */
static void *allocate(size_t asked, size_t size, struct other_cache *c)
{
    if (size > BLOCK_MOST)
        return run_alloc(asked, size, c);
    return block_alloc(asked, size, c);
}

static void release(void *p, size_t asked, size_t size, struct other_cache *c)
{
    if (size > BLOCK_MOST) {
        run_free(c, p, asked, size);
        return;
    }
    block_free(c, p, asked, size);
}

/* ---- the operations ----------------------------------------------------- */

static void yours_init(struct supply *s)
{
    other_init(&heap, "yours", s);
    init_sizes();
}

static void *yours_alloc(size_t size)
{
    return size == 0 ? OTHER_NOTHING : allocate(size, size, NULL);
}

static void yours_free(void *p, size_t size)
{
    if (p != OTHER_NOTHING)
        release(p, size, size, NULL);
}

/* A block begins at a multiple of its size in a page, so one whose size is a
 * power of two is aligned to it. */
static size_t object_size(const struct other_cache *c)
{
    size_t size = MAX(c->other_size, c->other_align);

    return c->other_align > 8 ? (size_t)1 << other_power(size) : size;
}

static void *yours_cache_alloc(struct other_cache *c)
{
    void *obj = allocate(c->other_size, object_size(c), c);

    if (obj != NULL && c->other_ctor != NULL)
        c->other_ctor(obj, c->other_size);
    return obj;
}

static void yours_cache_free(struct other_cache *c, void *obj)
{
    if (c->other_dtor != NULL)
        c->other_dtor(obj, c->other_size);
    release(obj, c->other_size, object_size(c), c);
}

/* ---- looking ------------------------------------------------------------ */

static void yours_stat(struct other_stat *out)
{
    other_lock(&heap);
    other_stat(&heap, free_bytes, out);
    other_unlock(&heap);
}

/* The blocks that are free in a page; more than it has, if its list is not one
 * of its own blocks. */
static size_t count_blocks(const struct page_note *n)
{
    const struct size *s = &sizes[n->note_size];
    const char *page = supply_page(heap.heap_supply, n);
    size_t count = 0;

    for (const struct block *b = n->note_free; b != NULL; b = b->block_next) {
        size_t at = (size_t)((const char *)b - page);

        if (at >= PAGE_SIZE || at % s->size_block != 0 ||
            count++ == s->size_blocks)
            return s->size_blocks + 1;
    }
    return count;
}

/* Counts the pages that lists have. */
static const char *check_lists(size_t *listed)
{
    for (unsigned i = 1; i < SIZES; i++) {
        unsigned spare = 0;

        list_for_each (l, &sizes[i].size_pages) {
            const struct page_note *n =
                list_entry(l, struct page_note, note_link);

            if (n->note_size != i || n->note_free == NULL)
                return "a list has a page of another size, or a full one";
            spare += is_spare(n);
            if (++*listed > heap.heap_supply->supply_pages)
                return "a list does not end";
        }
        if (spare != sizes[i].size_spare || spare > 1)
            return "pages that are all free are not as many as are counted";
    }
    return NULL;
}

/* Adds up all pages. */
static const char *check_pages(size_t *held, size_t *free, size_t *open)
{
    const struct supply *s = heap.heap_supply;

    for (size_t i = 0; i < s->supply_pages; i++) {
        const struct page_note *n = (struct page_note *)s->supply_info[i];
        size_t blocks;

        *held += n->note_pages;
        if (n->note_size == 0)
            continue;
        if (n->note_size >= SIZES)
            return "a descriptor is not one of a page";
        blocks = count_blocks(n);
        if (blocks + n->note_used != sizes[n->note_size].size_blocks)
            return "blocks of a page are neither free nor allocated";
        *held += 1;
        *free += PAGE_SIZE - n->note_used * sizes[n->note_size].size_block;
        *open += n->note_free != NULL;
    }
    return NULL;
}

static const char *yours_check(void)
{
    size_t held = 0, free = 0, open = 0, listed = 0;
    const char *wrong;

    other_lock(&heap);
    wrong = check_pages(&held, &free, &open);
    if (wrong == NULL)
        wrong = check_lists(&listed);
    if (wrong == NULL && listed != open)
        wrong = "a page with a free block is on no list";
    if (wrong == NULL && held << PAGE_SHIFT != heap.heap_stat.stat_held)
        wrong = "pages with a descriptor are not as many as are held";
    if (wrong == NULL && free != free_bytes)
        wrong = "free bytes are not as many as are counted";
    if (wrong == NULL)
        wrong = other_check(&heap, free_bytes);
    other_unlock(&heap);
    return wrong;
}

const struct other_allocator yours_allocator = {
    .op_name = "yours",
    .op_init = yours_init,
    .op_cache_alloc = yours_cache_alloc,
    .op_cache_free = yours_cache_free,
    .op_alloc = yours_alloc,
    .op_free = yours_free,
    .op_pressure = yours_pressure,
    .op_stat = yours_stat,
    .op_check = yours_check,
};
