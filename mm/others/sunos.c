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
enum sunos_return sunos_return = SUNOS_AT_ONCE;
bool sunos_inline;
struct sunos_node *sunos_root;

/* A free block that waits, noted in its first bytes: in units of 8, so that
 * the smallest block has room for it. */
struct later {
    uint32_t later_next; /* from the begin of all pages, plus 1; 0: none */
    uint32_t later_size;
};

static struct other_heap heap;
static struct sunos_stat stat;
static struct sunos_node *spare; /* nodes without a block, by node_left */
static size_t spares;
static uint32_t laters;   /* the first block that waits */
static size_t free_bytes; /* in the tree, and of blocks that wait */

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
        struct sunos_node *page;

        other_unlock(&heap);
        page = supply_alloc(heap.heap_supply, 1, PAGE_SIZE);
        other_lock(&heap);
        if (page == NULL)
            return false;
        for (size_t i = PAGE_SIZE / sizeof(*page); i-- > 0;) {
            page[i].node_left = spare;
            spare = &page[i];
        }
        spares += PAGE_SIZE / sizeof(*page);
        stat.stat_node_pages++;
        other_count_pages(&heap, 1);
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
    stat.stat_nodes++;
    return n;
}

static void node_put(struct sunos_node *n)
{
    stat.stat_nodes--;
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
        stat.stat_relinks++;
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

        stat.stat_visits++;
        if (weight(*left) >= size && (!fits || weight(*left) <= weight(*right)))
            link = left;
        else if (fits)
            link = right;
        else
            return link;
    }
}

/* ---- blocks ------------------------------------------------------------- */

static _Noreturn void panic_free(uintptr_t addr, size_t size)
{
    mm_panic("sunos: 0x%lx, %zu bytes: part of it is free already",
             (unsigned long)addr, size);
}

/* Takes the free neighbours of a block out of the tree, and joins them: one
 * descent finds both. */
static void coalesce(uintptr_t *addr, size_t *size)
{
    struct sunos_node **link = &sunos_root;
    struct sunos_node *n;

    while ((n = *link) != NULL) {
        stat.stat_visits++;
        if (*addr + *size == n->node_addr) {
            *size += n->node_size;
            tree_delete(link);
            stat.stat_coalesced_right++;
        } else if (n->node_addr + n->node_size == *addr) {
            *addr = n->node_addr;
            *size += n->node_size;
            tree_delete(link);
            stat.stat_coalesced_left++;
        } else if (*addr < n->node_addr + n->node_size &&
                   n->node_addr < *addr + *size) {
            panic_free(*addr, *size);
        } else {
            link = *addr < n->node_addr ? &n->node_left : &n->node_right;
        }
    }
}

static void insert_free(uintptr_t addr, uintptr_t end)
{
    if (addr < end)
        tree_insert(node_get(addr, end - addr));
}

/* Whole pages on their way back to the supplier. */
struct run {
    char *run_at;
    size_t run_pages;
};

/* Puts a block into the tree. What whole pages it then is part of are cut out
 * into *back, unless that is NULL. Takes two spare nodes. */
static void give(uintptr_t addr, size_t size, struct run *back)
{
    uintptr_t first, end;

    MM_ASSERT(mm_lock_held(&heap.heap_lock));
    coalesce(&addr, &size);
    first = ROUND_UP(addr, (uintptr_t)PAGE_SIZE);
    end = (addr + size) & ~(uintptr_t)PAGE_MASK;
    if (back == NULL || first >= end) {
        insert_free(addr, addr + size);
        return;
    }
    insert_free(addr, first);
    insert_free(end, addr + size);
    back->run_at = (char *)first;
    back->run_pages = (end - first) >> PAGE_SHIFT;
    free_bytes -= end - first;
    other_count_pages(&heap, -(ptrdiff_t)back->run_pages);
}

static void run_return(const struct run *back)
{
    if (back->run_pages != 0)
        supply_free(heap.heap_supply, back->run_at, back->run_pages);
}

static void note_later(uintptr_t addr, size_t size)
{
    struct later *l = (struct later *)addr;

    l->later_next = laters;
    l->later_size = (uint32_t)(size / 8);
    laters =
        (uint32_t)((addr - (uintptr_t)heap.heap_supply->supply_base) / 8) + 1;
}

/* The blocks that wait go into the tree, as long as there are nodes. Their
 * pages return with a later free. */
static void give_laters(void)
{
    while (laters != 0 && node_reserve(1)) {
        uintptr_t addr =
            (uintptr_t)heap.heap_supply->supply_base + (laters - 1) * 8u;
        const struct later *l = (const struct later *)addr;

        laters = l->later_next;
        give(addr, l->later_size * (size_t)8, NULL);
    }
}

/* Gets pages, just enough for the request. The lock is released meanwhile, so
 * another task may take them first. False: there is no memory. */
static bool grow(size_t size)
{
    size_t pages = PAGES_FOR(size);
    char *addr;

    other_unlock(&heap);
    addr = supply_alloc(heap.heap_supply, pages, PAGE_SIZE);
    other_lock(&heap);
    if (addr == NULL)
        return false;
    if (!node_reserve(1)) {
        other_unlock(&heap);
        supply_free(heap.heap_supply, addr, pages);
        other_lock(&heap);
        return false;
    }
    free_bytes += pages << PAGE_SHIFT;
    other_count_pages(&heap, (ptrdiff_t)pages);
    give((uintptr_t)addr, pages << PAGE_SHIFT, NULL);
    return true;
}

/* Makes sure of a free block for the request, and of spare nodes. */
static bool make_ready(size_t size, size_t nodes)
{
    give_laters();
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
    stat.stat_exact_fits += n->node_size == 0;
    tree_demote(link);
    free_bytes -= size;
    return addr;
}

/* The same at a multiple of `align`: takes more, and gives back what is before
 * and after. Takes two spare nodes. */
static uintptr_t take_aligned(size_t size, size_t align)
{
    size_t more = size + align - grain();
    uintptr_t addr = take_low(more);
    uintptr_t start = ROUND_UP(addr, (uintptr_t)align);

    free_bytes += more - size;
    if (start != addr)
        give(addr, start - addr, NULL);
    if (start + size != addr + more)
        give(start + size, addr + more - start - size, NULL);
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
    other_unlock(&heap);
    return p;
}

/* Frees a block now, or, without memory for a node, later. */
static void block_put(void *p, size_t asked, struct other_cache *c, bool now)
{
    size_t size = ROUND_UP(asked, grain());
    struct run back = {0};

    other_lock(&heap);
    now = now && node_reserve(2);
    other_count_free(&heap, c, asked, size, 0);
    free_bytes += size;
    if (now)
        give((uintptr_t)p, size, sunos_return == SUNOS_AT_ONCE ? &back : NULL);
    else
        note_later((uintptr_t)p, size);
    other_unlock(&heap);
    run_return(&back);
}

/* ---- the operations ----------------------------------------------------- */

static void sunos_init(struct supply *s)
{
    other_init(&heap, "sunos", s);
    stat = (struct sunos_stat){0};
    sunos_root = spare = NULL;
    spares = free_bytes = 0;
    laters = 0;
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
    void *obj = block_get(c->other_size, c->other_align, c);

    if (obj != NULL && c->other_ctor != NULL)
        c->other_ctor(obj, c->other_size);
    return obj;
}

static void sunos_cache_free(struct other_cache *c, void *obj)
{
    if (c->other_dtor != NULL)
        c->other_dtor(obj, c->other_size);
    block_put(obj, c->other_size, c, true);
}

/* ---- looking ------------------------------------------------------------ */

/* The link to the first node at or above an address; NULL: there is none, or
 * the tree is damaged. Under the lock. */
static struct sunos_node **tree_next(uintptr_t addr, size_t *depth)
{
    struct sunos_node **link = &sunos_root, **found = NULL;
    size_t steps = 0;

    while (*link != NULL && steps++ <= stat.stat_nodes) {
        if ((*link)->node_addr < addr) {
            link = &(*link)->node_right;
        } else {
            found = link;
            *depth = steps;
            link = &(*link)->node_left;
        }
    }
    return steps > stat.stat_nodes ? NULL : found;
}

/* For SUNOS_PRESSURE: returns the whole pages of all free blocks. */
static void sunos_pressure(void)
{
    struct sunos_node **link;
    uintptr_t addr = 0;
    size_t depth;

    other_lock(&heap);
    while (node_reserve(1) && (link = tree_next(addr, &depth)) != NULL) {
        size_t size = (*link)->node_size;
        struct run back = {0};

        addr = (*link)->node_addr;
        tree_delete(link);
        give(addr, size, &back);
        addr += size;
        other_unlock(&heap);
        run_return(&back);
        other_lock(&heap);
    }
    other_unlock(&heap);
}

static const char *check_node(const struct sunos_node *n, uintptr_t before)
{
    if (n->node_size == 0 || n->node_size % grain() != 0)
        return "a free block has a size that no block has";
    if (MAX(weight(n->node_left), weight(n->node_right)) > n->node_size)
        return "a node is larger than its parent";
    if (n->node_addr <= before)
        return "free blocks overlap, or neighbours are not joined";
    return NULL;
}

/* All nodes by address: each is where a search finds it, so that the tree is
 * ordered by address. With different sizes there is one such tree. */
static const char *check_tree(size_t *bytes)
{
    struct sunos_node **link;
    uintptr_t end = 0;
    size_t nodes = 0, depth;
    const char *wrong = NULL;

    while (wrong == NULL && (link = tree_next(end, &depth)) != NULL) {
        wrong = check_node(*link, end);
        end = (*link)->node_addr + (*link)->node_size;
        *bytes += (*link)->node_size;
        nodes++;
    }
    if (wrong == NULL && nodes != stat.stat_nodes)
        wrong = "a search does not find every node of the tree";
    return wrong;
}

static size_t later_bytes(void)
{
    const char *base = heap.heap_supply->supply_base;
    size_t bytes = 0;

    for (uint32_t i = laters; i != 0;) {
        const struct later *l = (const struct later *)(base + (i - 1) * 8ul);

        bytes += l->later_size * (size_t)8;
        i = l->later_next;
    }
    return bytes;
}

static const char *sunos_check(void)
{
    const char *wrong;
    size_t bytes = 0;

    other_stop(&heap);
    wrong = check_tree(&bytes);
    if (wrong == NULL && bytes + later_bytes() != free_bytes)
        wrong = "free bytes are not as many as are counted";
    if (wrong == NULL)
        wrong = other_check(&heap, free_bytes);
    other_resume(&heap);
    return wrong;
}

static void sunos_other_stat(struct other_stat *out)
{
    other_lock(&heap);
    other_stat(&heap, free_bytes, out);
    other_unlock(&heap);
}

void sunos_stat(struct sunos_stat *out)
{
    struct sunos_node **link;
    uintptr_t at = 0;
    size_t depth = 0;

    other_lock(&heap);
    *out = stat;
    out->stat_largest = weight(sunos_root);
    while ((link = tree_next(at, &depth)) != NULL) {
        at = (*link)->node_addr + 1;
        out->stat_depth = MAX(out->stat_depth, depth);
    }
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
