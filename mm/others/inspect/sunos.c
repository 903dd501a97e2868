/*
 * Every invariant of the allocator of SunOS (mm/others/sunos.c), as code.
 */
#include "mm/others/sunos.h"
#include "mm/others/inspect/verify.h"

static size_t free_size(const struct sunos_node *n)
{
    return n == NULL ? 0 : n->node_size;
}

static const char *verify_node(const struct sunos_node *n, uintptr_t before)
{
    size_t grain = sunos_inline ? sizeof(*n) : 8;

    if (n->node_size == 0 || n->node_size % grain != 0)
        return "a free block has a size that no block has";
    if (MAX(free_size(n->node_left), free_size(n->node_right)) > n->node_size)
        return "a node is larger than its parent";
    if (n->node_addr <= before)
        return "free blocks overlap, or neighbours are not joined";
    return NULL;
}

/* All nodes by address: each is where a search finds it, so that the tree is
 * ordered by address. With different sizes there is one such tree. */
static const char *verify_tree(struct other_verify *v)
{
    struct sunos_node **link;
    uintptr_t end = 0;
    size_t nodes = 0;

    while ((link = sunos_next(end)) != NULL) {
        const struct sunos_node *n = *link;
        const char *wrong = verify_node(n, end);

        if (wrong != NULL)
            return wrong;
        other_found(v, (const void *)n->node_addr, n->node_size);
        end = n->node_addr + n->node_size;
        nodes++;
    }
    return nodes == sunos_stat.stat_nodes
               ? NULL
               : "a search does not find every node of the tree";
}

static const char *verify_laters(struct other_verify *v)
{
    const struct supply *s = v->verify_heap->heap_supply;
    const struct sunos_later *l;
    size_t bytes = 0;

    for (uint32_t n = sunos_laters; n != 0; n = l->later_next) {
        l = supply_block(s, n);
        if (supply_info(s, l) == NULL || l->later_size == 0 ||
            (bytes += l->later_size * (size_t)8) > sunos_free_bytes)
            return "blocks that wait are not as many as are counted";
        if (!other_found(v, l, l->later_size * (size_t)8))
            return "a block that waits is free already";
    }
    return NULL;
}

static const char *sunos_verify_list(struct other_verify *v, unsigned i)
{
    return i == 0 ? verify_tree(v) : verify_laters(v);
}

static const char *sunos_verify_counts(struct other_verify *v)
{
    return v->verify_free == sunos_free_bytes
               ? NULL
               : "free bytes are not as many as are counted";
}

static const struct other_verify_ops sunos_ops = {
    .verify_lists = 2,
    .verify_list = sunos_verify_list,
    .verify_counts = sunos_verify_counts,
};

const char *sunos_verify(struct other_heap *h)
{
    return other_verify(h, &sunos_ops, NULL);
}

static size_t depth_of(const struct sunos_node *n)
{
    size_t left, right;

    if (n == NULL)
        return 0;
    left = depth_of(n->node_left);
    right = depth_of(n->node_right);
    return 1 + MAX(left, right);
}

size_t sunos_depth(void)
{
    return depth_of(sunos_root);
}
