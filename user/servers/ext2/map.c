/*
 * The blocks of a file: 12 numbers in the inode, then trees of indirect blocks
 * of one, two and three levels.
 *
 *     i_block[0 … 11] ──> blocks 0 … 11
 *     i_block[12] ──> numbers ──> n blocks
 *     i_block[13] ──> numbers ──> numbers ──> n * n blocks
 *     i_block[14] ──> numbers ──> numbers ──> numbers ──> n * n * n blocks
 *
 * A number is checked before it is used; 0 is a hole.
 */
#include "user/servers/ext2/impl.h"

/* The path to a block: a slot of the inode, and the index in each indirect
 * block. */
struct way {
    uint32_t way_slot;
    uint32_t way_depth;
    uint32_t way_index[3];
};

#define SIZE_MAX_BYTES 0x7fffffffu

static uint32_t power(uint32_t base, uint32_t n)
{
    uint32_t p = 1;

    while (n-- > 0)
        p *= base;
    return p;
}

uint32_t map_size_max(const struct ext2 *fs)
{
    uint32_t n = fs->fs_pointers;
    uint64_t blocks = EXT2_DIRECT + n + n * n + (uint64_t)n * n * n;

    return (uint32_t)MIN(blocks * fs->fs_block_size, (uint64_t)SIZE_MAX_BYTES);
}

/* False: files have no block of that number. */
static bool find_way(const struct ext2 *fs, uint32_t index, struct way *way)
{
    uint32_t n = fs->fs_pointers;

    way->way_depth = 0;
    way->way_slot = index;
    if (index < EXT2_DIRECT)
        return true;
    index -= EXT2_DIRECT;
    for (uint32_t depth = 1; depth <= 3; depth++) {
        uint32_t most = power(n, depth);

        if (index >= most && most > 0) {
            index -= most;
            continue;
        }
        way->way_slot = EXT2_DIRECT + depth - 1;
        way->way_depth = depth;
        for (uint32_t i = depth; i-- > 0; index /= n)
            way->way_index[i] = index % n;
        return true;
    }
    return false;
}

bool map_has_blocks(const struct ext2 *fs, const struct ext2_inode *inode)
{
    uint32_t attributes = inode->i_file_acl != 0 ? fs->fs_block_sectors : 0;

    switch (inode->i_mode & MODE_TYPE) {
    case MODE_REGULAR:
    case MODE_DIRECTORY:
        return true;
    case MODE_LINK: /* a short one is stored in i_block */
        return inode->i_blocks > attributes;
    default:
        return false;
    }
}

int map_get(struct ext2 *fs, struct node *n, uint32_t index, uint32_t *block)
{
    struct way way;

    *block = 0;
    if (!find_way(fs, index, &way))
        return -EFBIG;
    *block = n->node_inode.i_block[way.way_slot];
    for (uint32_t i = 0; i < way.way_depth && *block != 0; i++) {
        struct buffer *b;
        int r;

        if (!block_valid(fs, *block))
            return ext2_damage(fs, "wrong block numbers in inode",
                               n->node_number);
        r = buffer_get(fs, *block, BUFFER_META, &b);
        if (r < 0)
            return r;
        *block = ((uint32_t *)b->buf_data)[way.way_index[i]];
        buffer_put(b);
    }
    if (*block != 0 && !block_valid(fs, *block))
        return ext2_damage(fs, "wrong block number in inode", n->node_number);
    return 0;
}

/* ---- making ------------------------------------------------------------- */

/* A new block for a file. Indirect blocks start as zeroes. */
static int make(struct ext2 *fs, struct node *n, bool numbers, uint32_t *out)
{
    struct buffer *b;
    int r = block_alloc(fs, n->node_near + 1, out);

    if (r < 0)
        return r;
    if (numbers || node_is_dir(n)) {
        r = buffer_new(fs, *out, numbers ? BUFFER_META : BUFFER_DIR, &b);
        if (r < 0) {
            block_free(fs, *out);
            return r;
        }
        buffer_put(b);
    }
    n->node_alloc = true;
    n->node_near = *out;
    n->node_inode.i_blocks += fs->fs_block_sectors;
    node_dirty(fs, n);
    return 0;
}

/* One level down: allocates a block for a hole at *slot. */
static int step(struct ext2 *fs, struct node *n, uint32_t *slot, bool numbers,
                bool *made)
{
    uint32_t block;
    int r;

    *made = *slot == 0;
    if (*slot == 0) {
        r = make(fs, n, numbers, &block);
        if (r < 0)
            return r;
        *slot = block;
    }
    if (!block_valid(fs, *slot))
        return ext2_damage(fs, "wrong block number in inode", n->node_number);
    return 0;
}

int map_make(struct ext2 *fs, struct node *n, uint32_t index, uint32_t *block,
             bool *made)
{
    struct way way;
    int r;

    if (!find_way(fs, index, &way))
        return -EFBIG;
    r = step(fs, n, &n->node_inode.i_block[way.way_slot], way.way_depth > 0,
             made);
    *block = n->node_inode.i_block[way.way_slot];
    for (uint32_t i = 0; i < way.way_depth && r == 0; i++) {
        struct buffer *b;
        uint32_t *slot;

        r = buffer_get(fs, *block, BUFFER_META, &b);
        if (r < 0)
            return r;
        b->buf_owner = n->node_number;
        slot = (uint32_t *)b->buf_data + way.way_index[i];
        r = step(fs, n, slot, i + 1 < way.way_depth, made);
        *block = *slot;
        if (*made && r == 0)
            buffer_dirty(fs, b);
        buffer_put(b);
    }
    if (r == 0)
        n->node_near = *block;
    return r;
}

/* ---- truncating --------------------------------------------------------- */

static int cut(struct ext2 *fs, struct node *n, uint32_t *slot, uint32_t depth,
               uint32_t from);

/* Frees blocks listed in an indirect block, of `span` blocks each. */
static int cut_numbers(struct ext2 *fs, struct node *n, uint32_t block,
                       uint32_t depth, uint32_t from)
{
    uint32_t span = power(fs->fs_pointers, depth - 1);
    struct buffer *b;
    int r;

    if (!block_valid(fs, block))
        return ext2_damage(fs, "wrong block number in inode", n->node_number);
    r = buffer_get(fs, block, BUFFER_META, &b);
    if (r < 0)
        return r;
    b->buf_owner = n->node_number;
    for (uint32_t i = from / span; i < fs->fs_pointers && r == 0; i++) {
        uint32_t *slot = (uint32_t *)b->buf_data + i;
        uint32_t was = *slot;

        r = cut(fs, n, slot, depth - 1, i == from / span ? from % span : 0);
        if (*slot != was)
            buffer_dirty(fs, b);
    }
    buffer_put(b);
    return r;
}

/* Frees the blocks from number `from` on of the tree at *slot, and the tree if
 * that is all of it. */
static int cut(struct ext2 *fs, struct node *n, uint32_t *slot, uint32_t depth,
               uint32_t from)
{
    int r = 0;

    if (*slot == 0)
        return 0;
    if (depth > 0)
        r = cut_numbers(fs, n, *slot, depth, from);
    if (r < 0 || from > 0)
        return r;
    r = block_free(fs, *slot);
    if (r < 0)
        return r;
    *slot = 0;
    n->node_inode.i_blocks -= MIN(n->node_inode.i_blocks, fs->fs_block_sectors);
    node_dirty(fs, n);
    return 0;
}

int map_cut(struct ext2 *fs, struct node *n, uint32_t index)
{
    uint32_t first = 0;

    for (uint32_t i = 0; i < EXT2_POINTERS; i++) {
        uint32_t depth = i < EXT2_DIRECT ? 0 : i - EXT2_DIRECT + 1;
        uint32_t last = first + power(fs->fs_pointers, depth);
        int r = 0;

        if (last < first) /* larger than any file */
            last = UINT32_MAX;
        if (index < last)
            r = cut(fs, n, &n->node_inode.i_block[i], depth,
                    index > first ? index - first : 0);
        if (r < 0)
            return r;
        first = last;
    }
    return 0;
}
