/*
 * SunOS 4.1.3: fast fits (Stephenson 1983).
 *
 * All free blocks are one binary tree. By address it is a search tree: left of
 * a node are lower addresses, right of it higher ones. By size it is a heap: no
 * node is larger than its parent.
 *
 *                   0x4000, 512
 *                  /           \
 *           0x2000, 256      0x5000, 32
 *           /         \
 *     0x1000, 64   0x3000, 128
 *
 * So the root is the largest free block, and says whether a request can be met.
 * From there the allocator goes down to smaller blocks while they are large
 * enough, and hands out the low end of the last. "Better fit" prefers the
 * smaller child; that is not best fit, for a better block may be below the
 * larger one.
 *
 * What is left keeps its node, which sinks below children that are larger now:
 *
 *     before   512        after   256    the subtrees of the node that sinks
 *             /   \              /   \   are merged by size along the edge
 *           256    32          64    128 between them; no address is compared
 *          /   \                       \
 *         64   128                     112
 *                                        \
 *                                         32
 *
 * A free goes down by address. On this way it meets both neighbours in memory,
 * if they are free, and takes them out of the tree; then the joined block goes
 * where its size belongs, and splits the tree that was there by address.
 *
 * Nothing is in an allocated block: its size comes with the free. The nodes are
 * in pages of their own, which stay.
 *
 * Sources: C. J. Stephenson, Fast Fits: New Methods for Dynamic Storage
 * Allocation (1983); the slab paper, section 5. That whole free pages return at
 * once is inferred from its figures: a heap that kept them would have grown
 * more in the spike.
 *
 * What the slab paper says against it: 25 us for an allocation and a free on a
 * SPARCstation-2, the slowest of four (the slab allocator: 3.8), and with a
 * large spread, because the tree is not balanced and its depth follows from the
 * history of all requests. Its fragmentation is the lowest after boot (7 %) and
 * grows with churn (27 % after kenbus; slab: 14 %). One lock guards all of it,
 * and every allocation constructs its object anew.
 */
#include "mm/others/sunos.h"
#include "mm/page.h"

enum sunos_policy sunos_policy = SUNOS_BETTER;
bool sunos_at_once = true;
bool sunos_inline;
struct sunos_node *sunos_root;

uint32_t sunos_laters;
size_t sunos_free_bytes;
struct sunos_stat sunos_stat;

static struct other_heap heap;
static struct sunos_node *spare; /* nodes without a block, by node_left */
static size_t spares;

/* Blocks are multiples of this. */
static size_t grain(void)
{
    return sunos_inline ? sizeof(struct sunos_node) : 8;
}

/* ---- nodes -------------------------------------------------------------- */

/* Makes sure of so many spare nodes. The lock is released to get a page; false
 * if there is none. */
static bool node_reserve(size_t nodes)
{
    MM_ASSERT(mm_lock_held(&heap.heap_lock));
    while (!sunos_inline && spares < nodes) {
        struct sunos_node *page = other_get_pages(&heap, 1, PAGE_SIZE);

        if (page == NULL)
            return false;
        for (size_t i = PAGE_SIZE / sizeof(*page); i-- > 0;) {
            page[i].node_left = spare;
            spare = &page[i];
        }
        spares += PAGE_SIZE / sizeof(*page);
        sunos_stat.stat_node_pages++;
        other_count_metadata(&heap, PAGE_SIZE);
    }
    return true;
}

static struct sunos_node *node_get(uintptr_t addr, size_t size)
{
    struct sunos_node *n = (struct sunos_node *)addr;

    if (!sunos_inline) {
        n = spare;
        spare = n->node_left;
        spares--;
    }
    n->node_addr = addr;
    n->node_size = size;
    sunos_stat.stat_nodes++;
    return n;
}

static void node_put(struct sunos_node *n)
{
    sunos_stat.stat_nodes--;
    if (sunos_inline)
        return;
    n->node_left = spare;
    spare = n;
    spares++;
}

/* ---- the tree ----------------------------------------------------------- */

static size_t weight(const struct sunos_node *n)
{
    return n == NULL ? 0 : n->node_size;
}

/* Puts a node where its size belongs: above all that are smaller. These are
 * split by its address, along one path down. */
static void tree_insert(struct sunos_node *n)
{
    struct sunos_node **link = &sunos_root;
    struct sunos_node **left = &n->node_left, **right = &n->node_right;
    struct sunos_node *t;

    while (weight(*link) >= n->node_size) {
        t = *link;
        link = n->node_addr < t->node_addr ? &t->node_left : &t->node_right;
    }
    t = *link;
    *link = n;
    while (t != NULL) {
        if (t->node_addr < n->node_addr) {
            *left = t;
            left = &t->node_right;
            t = *left;
        } else {
            *right = t;
            right = &t->node_left;
            t = *right;
        }
    }
    *left = *right = NULL;
}

/* A node has become smaller: larger descendants, which are merged along the
 * edge between its two trees, take its place. One of size 0 leaves the tree. */
static void tree_demote(struct sunos_node **link)
{
    struct sunos_node *n = *link;
    struct sunos_node *left = n->node_left, *right = n->node_right;

    while (MAX(weight(left), weight(right)) > n->node_size) {
        sunos_stat.stat_relinks++;
        if (weight(left) >= weight(right)) {
            *link = left;
            link = &left->node_right;
            left = *link;
        } else {
            *link = right;
            link = &right->node_left;
            right = *link;
        }
    }
    if (n->node_size == 0) {
        *link = NULL;
        node_put(n);
        return;
    }
    *link = n;
    n->node_left = left;
    n->node_right = right;
}

static void tree_delete(struct sunos_node **link)
{
    (*link)->node_size = 0;
    tree_demote(link);
}

/* The block for a request that the root is large enough for. */
static struct sunos_node **tree_fit(size_t size)
{
    struct sunos_node **link = &sunos_root;

    for (;;) {
        struct sunos_node **left = &(*link)->node_left;
        struct sunos_node **right = &(*link)->node_right;
        bool fits = weight(*right) >= size && sunos_policy == SUNOS_BETTER;

        sunos_stat.stat_visits++;
        if (weight(*left) >= size && (!fits || weight(*left) <= weight(*right)))
            link = left;
        else if (fits)
            link = right;
        else
            return link;
    }
}

/* ---- blocks ------------------------------------------------------------- */

/* Takes the free neighbours of a block out of the tree, and joins them: one
 * descent finds both. */
static void coalesce(uintptr_t *addr, size_t *size)
{
    struct sunos_node **link = &sunos_root;
    struct sunos_node *n;

    while ((n = *link) != NULL) {
        sunos_stat.stat_visits++;
        if (*addr + *size == n->node_addr) {
            *size += n->node_size;
            tree_delete(link);
            sunos_stat.stat_coalesced_right++;
        } else if (n->node_addr + n->node_size == *addr) {
            *addr = n->node_addr;
            *size += n->node_size;
            tree_delete(link);
            sunos_stat.stat_coalesced_left++;
        } else if (*addr < n->node_addr + n->node_size &&
                   n->node_addr < *addr + *size) {
            mm_panic("sunos: 0x%lx, %zu bytes: part of it is free already",
                     (unsigned long)*addr, *size);
        } else {
            link = *addr < n->node_addr ? &n->node_left : &n->node_right;
        }
    }
}

static void note_later(uintptr_t addr, size_t size)
{
    struct sunos_later *l = (struct sunos_later *)addr;

    l->later_next = sunos_laters;
    l->later_size = (uint32_t)(size / 8);
    sunos_laters = supply_number(heap.heap_supply, l);
}

static void insert_free(uintptr_t addr, uintptr_t end)
{
    if (addr >= end)
        return;
    if (sunos_inline || spare != NULL)
        tree_insert(node_get(addr, end - addr));
    else
        note_later(addr, end - addr);
}

/* Puts a block, joined with its free neighbours, into the tree. If `cut`, its
 * whole pages go back instead. Needs two spare nodes, or a part waits. */
static void give(uintptr_t addr, size_t size, bool cut)
{
    uintptr_t first, end;

    MM_ASSERT(mm_lock_held(&heap.heap_lock));
    coalesce(&addr, &size);
    first = ROUND_UP(addr, (uintptr_t)PAGE_SIZE);
    end = (addr + size) & ~(uintptr_t)PAGE_MASK;
    if (!cut || first >= end) {
        insert_free(addr, addr + size);
        return;
    }
    insert_free(addr, first);
    insert_free(end, addr + size);
    sunos_free_bytes -= end - first;
    other_put_pages(&heap, (void *)first, (end - first) >> PAGE_SHIFT);
}

/* Puts waiting blocks into the tree. Without spare nodes some wait again. */
static void give_laters(bool cut)
{
    uint32_t next = sunos_laters;

    sunos_laters = 0;
    while (next != 0) {
        struct sunos_later *l = supply_block(heap.heap_supply, next);

        next = l->later_next;
        give((uintptr_t)l, l->later_size * (size_t)8, cut);
    }
}

/* A mark in the descriptor of a page: the page has blocks. It is cleared when
 * the page goes back. */
static uintptr_t *has_blocks(const void *addr)
{
    return other_page(&heap, addr);
}

/* Gets pages, just enough for the request. The lock is released meanwhile, so
 * another task may take them first. They are counted only after the node is
 * reserved, so that the counts agree meanwhile. False: there is no memory. */
static bool grow(size_t size)
{
    size_t pages = PAGES_FOR(size);
    char *addr;
    bool enough;

    other_unlock(&heap);
    addr = supply_alloc(heap.heap_supply, pages, PAGE_SIZE);
    other_lock(&heap);
    if (addr == NULL)
        return false;
    enough = node_reserve(1);
    other_count_pages(&heap, (ptrdiff_t)pages);
    if (!enough) {
        other_put_pages(&heap, addr, pages);
        return false;
    }
    for (size_t i = 0; i < pages; i++)
        *has_blocks(addr + (i << PAGE_SHIFT)) = true;
    sunos_free_bytes += pages << PAGE_SHIFT;
    give((uintptr_t)addr, pages << PAGE_SHIFT, false);
    return true;
}

/* Ensures that there are a free block for the request and spare nodes. A later
 * free returns the pages of waiting blocks. */
static bool make_ready(size_t size, size_t nodes)
{
    do {
        give_laters(false);
    } while (sunos_laters != 0 && node_reserve(1));
    while (node_reserve(nodes)) {
        if (weight(sunos_root) >= size)
            return true;
        if (!grow(size))
            return false;
    }
    return false;
}

/* The low end of a free block; the rest keeps its node. */
static uintptr_t take_low(size_t size)
{
    struct sunos_node **link = tree_fit(size);
    struct sunos_node *n = *link;
    uintptr_t addr = n->node_addr;

    n->node_addr += size;
    n->node_size -= size;
    if (sunos_inline && n->node_size != 0) {
        *link = (struct sunos_node *)n->node_addr;
        **link = *n;
    }
    sunos_stat.stat_exact_fits += n->node_size == 0;
    tree_demote(link);
    sunos_free_bytes -= size;
    return addr;
}

/* The same at a multiple of `align`: takes more, and gives back what is before
 * and after. Takes two spare nodes. */
static uintptr_t take_aligned(size_t size, size_t align)
{
    size_t more = size + align - grain();
    uintptr_t addr = take_low(more);
    uintptr_t start = ROUND_UP(addr, (uintptr_t)align);

    sunos_free_bytes += more - size;
    if (start != addr)
        give(addr, start - addr, false);
    if (start + size != addr + more)
        give(start + size, addr + more - start - size, false);
    return start;
}

static void *block_get(size_t asked, size_t align, struct other_cache *c)
{
    size_t size = ROUND_UP(asked, grain());
    void *p = NULL;

    other_lock(&heap);
    if (align <= grain() && make_ready(size, 0))
        p = (void *)take_low(size);
    else if (align > grain() && make_ready(size + align - grain(), 2))
        p = (void *)take_aligned(size, align);
    if (p != NULL)
        other_count_alloc(&heap, c, asked, size, 0);
    else
        other_count_fail(&heap, c);
    other_end(&heap);
    return p;
}

/* Frees a block now or later. */
static void block_put(void *p, size_t asked, struct other_cache *c, bool now)
{
    size_t size = ROUND_UP(asked, grain());

    if (!*has_blocks(p))
        mm_panic("sunos: %p is not a block of %zu bytes", p, asked);
    other_lock(&heap);
    if (now)
        node_reserve(2);
    other_count_free(&heap, c, asked, size, 0);
    sunos_free_bytes += size;
    if (now)
        give((uintptr_t)p, size, sunos_at_once);
    else
        note_later((uintptr_t)p, size);
    other_end(&heap);
}

/* ---- the operations ----------------------------------------------------- */

static void sunos_init(struct supply *s)
{
    other_init(&heap, "sunos", s);
    sunos_stat = (struct sunos_stat){0};
    sunos_root = spare = NULL;
    spares = sunos_free_bytes = 0;
    sunos_laters = 0;
}

static void *sunos_alloc(size_t size)
{
    return size == 0 ? OTHER_NOTHING : block_get(size, 0, NULL);
}

static void sunos_free(void *p, size_t size)
{
    if (p != OTHER_NOTHING)
        block_put(p, size, NULL, true);
}

void sunos_free_later(void *p, size_t size)
{
    block_put(p, size, NULL, false);
}

static void *sunos_cache_alloc(struct other_cache *c)
{
    return other_construct(c, block_get(c->other_size, c->other_align, c));
}

static void sunos_cache_free(struct other_cache *c, void *obj)
{
    other_destroy(c, obj);
    block_put(obj, c->other_size, c, true);
}

/* ---- looking ------------------------------------------------------------ */

struct sunos_node **sunos_next(uintptr_t addr)
{
    struct sunos_node **link = &sunos_root, **found = NULL;
    size_t steps = 0;

    while (*link != NULL && steps++ <= sunos_stat.stat_nodes) {
        if ((*link)->node_addr < addr) {
            link = &(*link)->node_right;
        } else {
            found = link;
            link = &(*link)->node_left;
        }
    }
    return steps > sunos_stat.stat_nodes ? NULL : found;
}

/* Returns the whole pages of all free blocks, including waiting ones. Needs no
 * memory. */
static void sunos_pressure(void)
{
    struct sunos_node **link;
    uintptr_t addr = 0;

    other_lock(&heap);
    give_laters(true);
    while ((link = sunos_next(addr)) != NULL) {
        size_t size = (*link)->node_size;

        addr = (*link)->node_addr;
        tree_delete(link);
        give(addr, size, true);
        addr += size;
    }
    other_end(&heap);
}

static const char *sunos_check(void)
{
    return sunos_verify(&heap);
}

static void sunos_other_stat(struct other_stat *out)
{
    other_lock(&heap);
    other_stat(&heap, sunos_free_bytes, out);
    other_unlock(&heap);
}

const struct other_allocator sunos_allocator = {
    .op_name = "sunos",
    .op_init = sunos_init,
    .op_cache_alloc = sunos_cache_alloc,
    .op_cache_free = sunos_cache_free,
    .op_alloc = sunos_alloc,
    .op_free = sunos_free,
    .op_pressure = sunos_pressure,
    .op_stat = sunos_other_stat,
    .op_check = sunos_check,
};
