/*
 * Allocation of blocks and inodes: two bitmaps for each group.
 *
 * A freed block or inode stays marked in the bitmap until the epoch ends, when
 * the disk no longer refers to it. Until then it is recorded in the group's two
 * bitmaps of freed blocks and inodes (commit.c).
 *
 * Bitmaps are checked: a free block must not be one of the group's own bitmaps
 * or inodes, and a block to be freed must be in use.
 */
#include "kernel/lib/string.h"
#include "user/lib/stdlib.h"
#include "user/servers/ext2/impl.h"

static void bit_set(uint8_t *map, uint32_t i)
{
    map[i / 8] |= (uint8_t)(1u << i % 8);
}

/* The first clear bit of n, from `from` on and then from the start; n: none. */
static uint32_t clear_bit(const uint8_t *map, uint32_t n, uint32_t from)
{
    for (uint32_t step = 0, i = from; step < n; step++) {
        if (i % 8 == 0 && map[i / 8] == 0xff && step + 8 <= n && i + 8 <= n) {
            step += 7;
            i += 8;
        } else if (!bit(map, i)) {
            return i;
        } else {
            i++;
        }
        if (i >= n)
            i = 0;
    }
    return n;
}

static uint32_t clear_bits(const uint8_t *map, uint32_t n)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++)
        count += !bit(map, i);
    return count;
}

/* ---- layout of a group -------------------------------------------------- */

static bool power_of(uint32_t n, uint32_t base)
{
    while (n % base == 0)
        n /= base;
    return n == 1;
}

/* Whether a group begins with a copy of superblock and descriptors. */
static bool has_copy(const struct ext2 *fs, uint32_t group)
{
    const struct ext2_super *s = &fs->fs_super;

    if (s->s_feature_compat & COMPAT_SPARSE_SUPER2)
        return group == 0 || group == s->s_backup_bgs[0] ||
               group == s->s_backup_bgs[1];
    return !(s->s_feature_ro_compat & RO_COMPAT_SPARSE_SUPER) || group <= 1 ||
           power_of(group, 3) || power_of(group, 5) || power_of(group, 7);
}

static uint32_t copy_blocks(const struct ext2 *fs, uint32_t group)
{
    uint32_t reserved =
        fs->fs_super.s_rev_level > 0 ? fs->fs_super.s_reserved_gdt_blocks : 0;

    return has_copy(fs, group) ? 1 + fs->fs_desc_blocks + reserved : 0;
}

static uint32_t table_blocks(const struct ext2 *fs)
{
    uint32_t bytes = fs->fs_super.s_inodes_per_group * fs->fs_inode_size;

    return (bytes + fs->fs_block_size - 1) / fs->fs_block_size;
}

static uint32_t block_group(const struct ext2 *fs, uint32_t block)
{
    return (block - fs->fs_super.s_first_data_block) /
           fs->fs_super.s_blocks_per_group;
}

bool block_own(const struct ext2 *fs, uint32_t block)
{
    const struct group *g = &fs->fs_group[block_group(fs, block)];
    const struct ext2_group_desc *d = &g->group_desc;

    return block - g->group_first < g->group_copy ||
           block == d->bg_block_bitmap || block == d->bg_inode_bitmap ||
           block - d->bg_inode_table < table_blocks(fs);
}

bool block_of_inodes(const struct ext2 *fs, uint32_t block)
{
    const struct ext2_super *s = &fs->fs_super;

    return block > s->s_first_data_block && block < s->s_blocks_count &&
           block - fs->fs_group[block_group(fs, block)]
                       .group_desc.bg_inode_table <
               table_blocks(fs);
}

bool block_valid(const struct ext2 *fs, uint32_t block)
{
    return block > fs->fs_super.s_first_data_block &&
           block < fs->fs_super.s_blocks_count && !block_own(fs, block);
}

int block_used(struct ext2 *fs, uint32_t block)
{
    const struct group *g = &fs->fs_group[block_group(fs, block)];
    struct buffer *b;
    int r = buffer_get(fs, g->group_desc.bg_block_bitmap, BUFFER_MAP, &b);

    if (r < 0)
        return r;
    r = bit(b->buf_data, block - g->group_first);
    buffer_put(b);
    return r;
}

/* ---- reading the descriptors -------------------------------------------- */

static bool in_group(const struct group *g, uint32_t block, uint32_t n)
{
    return block >= g->group_first &&
           block - g->group_first < g->group_blocks &&
           n <= g->group_blocks - (block - g->group_first);
}

static const char *desc_check(const struct ext2 *fs, uint32_t group)
{
    const struct group *g = &fs->fs_group[group];
    const struct ext2_group_desc *d = &g->group_desc;
    uint32_t table = table_blocks(fs);

    if (!in_group(g, d->bg_block_bitmap, 1) ||
        !in_group(g, d->bg_inode_bitmap, 1) ||
        !in_group(g, d->bg_inode_table, table))
        return "a group's bitmaps or inodes are outside the group";
    if (d->bg_block_bitmap == d->bg_inode_bitmap ||
        d->bg_block_bitmap - d->bg_inode_table < table ||
        d->bg_inode_bitmap - d->bg_inode_table < table)
        return "a group's bitmaps and inodes overlap";
    if (MIN(MIN(d->bg_block_bitmap, d->bg_inode_bitmap), d->bg_inode_table) -
            g->group_first <
        g->group_copy)
        return "a group's bitmaps or inodes overlap the descriptors";
    return NULL;
}

static int count_free(struct ext2 *fs, struct group *g)
{
    struct buffer *b;
    int r = buffer_get(fs, g->group_desc.bg_block_bitmap, BUFFER_MAP, &b);

    if (r < 0)
        return r;
    g->group_free_blocks = clear_bits(b->buf_data, g->group_blocks);
    buffer_put(b);
    r = buffer_get(fs, g->group_desc.bg_inode_bitmap, BUFFER_MAP, &b);
    if (r < 0)
        return r;
    g->group_free_inodes =
        clear_bits(b->buf_data, fs->fs_super.s_inodes_per_group);
    buffer_put(b);
    return 0;
}

static int group_read(struct ext2 *fs, uint32_t i, const char **why)
{
    struct group *g = &fs->fs_group[i];
    uint32_t per_block = fs->fs_block_size / sizeof(g->group_desc);
    uint32_t first = fs->fs_super.s_first_data_block;
    struct buffer *b;
    int r = buffer_get(fs, first + 1 + i / per_block, BUFFER_MAP, &b);

    *why = "cannot read the group descriptors";
    if (r < 0)
        return r;
    memcpy(&g->group_desc, b->buf_data + i % per_block * sizeof(g->group_desc),
           sizeof(g->group_desc));
    buffer_put(b);
    g->group_first = first + i * fs->fs_super.s_blocks_per_group;
    g->group_blocks = MIN(fs->fs_super.s_blocks_per_group,
                          fs->fs_super.s_blocks_count - g->group_first);
    g->group_copy = copy_blocks(fs, i);
    *why = desc_check(fs, i);
    if (*why != NULL)
        return -EIO;
    *why = "cannot read the bitmaps";
    return count_free(fs, g);
}

int groups_read(struct ext2 *fs, const char **why)
{
    fs->fs_group = calloc(fs->fs_groups, sizeof(fs->fs_group[0]));
    *why = "not enough memory for the groups";
    if (fs->fs_group == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < fs->fs_groups; i++) {
        int r = group_read(fs, i, why);

        if (r < 0)
            return r;
    }
    return 0;
}

void groups_destroy(struct ext2 *fs)
{
    deferred_drop(fs);
    free(fs->fs_group);
}

static int group_store(struct ext2 *fs, uint32_t i)
{
    struct group *g = &fs->fs_group[i];
    uint32_t per_block = fs->fs_block_size / sizeof(g->group_desc);
    struct buffer *b;
    int r = buffer_get(fs, fs->fs_super.s_first_data_block + 1 + i / per_block,
                       BUFFER_MAP, &b);

    if (r < 0)
        return r;
    g->group_desc.bg_free_blocks_count = (uint16_t)g->group_free_blocks;
    g->group_desc.bg_free_inodes_count = (uint16_t)g->group_free_inodes;
    memcpy(b->buf_data + i % per_block * sizeof(g->group_desc), &g->group_desc,
           sizeof(g->group_desc));
    buffer_dirty(fs, b);
    buffer_put(b);
    g->group_dirty = false;
    return 0;
}

int groups_store(struct ext2 *fs)
{
    for (uint32_t i = 0; i < fs->fs_groups; i++) {
        int r = fs->fs_group[i].group_dirty ? group_store(fs, i) : 0;

        if (r < 0)
            return r;
    }
    return 0;
}

uint32_t blocks_free(const struct ext2 *fs)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < fs->fs_groups; i++)
        n += fs->fs_group[i].group_free_blocks;
    return n;
}

uint32_t inodes_free(const struct ext2 *fs)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < fs->fs_groups; i++)
        n += fs->fs_group[i].group_free_inodes;
    return n;
}

/* ---- blocks ------------------------------------------------------------- */

/* A free block of a group, from number `from` on; -ENOSPC. */
static int group_alloc(struct ext2 *fs, uint32_t group, uint32_t from,
                       uint32_t *out)
{
    struct group *g = &fs->fs_group[group];
    struct buffer *b;
    uint32_t i;
    int r = buffer_get(fs, g->group_desc.bg_block_bitmap, BUFFER_MAP, &b);

    if (r < 0)
        return r;
    i = clear_bit(b->buf_data, g->group_blocks, from);
    if (i == g->group_blocks) {
        r = ext2_damage(fs, "wrong count of free blocks in group", group);
    } else if (!block_valid(fs, g->group_first + i)) {
        r = ext2_damage(fs, "free, but in use by the group: block",
                        g->group_first + i);
    } else {
        bit_set(b->buf_data, i);
        buffer_dirty(fs, b);
        g->group_free_blocks--;
        g->group_dirty = true;
        *out = g->group_first + i;
    }
    buffer_put(b);
    return r;
}

int block_alloc(struct ext2 *fs, uint32_t goal, uint32_t *out)
{
    uint32_t group;

    if (goal <= fs->fs_super.s_first_data_block ||
        goal >= fs->fs_super.s_blocks_count)
        goal = fs->fs_super.s_first_data_block;
    group = block_group(fs, goal);
    for (uint32_t i = 0; i < fs->fs_groups; i++) {
        uint32_t at = (group + i) % fs->fs_groups;
        struct group *g = &fs->fs_group[at];

        if (g->group_free_blocks > 0)
            return group_alloc(fs, at, i == 0 ? goal - g->group_first : 0, out);
    }
    return -ENOSPC;
}

/* Records that bit i of a bitmap with n bits will be cleared. */
static int defer_free(struct ext2 *fs, uint32_t bitmap, uint8_t **deferred,
                      uint32_t i)
{
    struct buffer *b;
    bool in_use;
    int r;

    if (*deferred == NULL)
        *deferred = calloc(1, fs->fs_block_size);
    if (*deferred == NULL)
        return -ENOMEM;
    r = buffer_get(fs, bitmap, BUFFER_MAP, &b);
    if (r < 0)
        return r;
    in_use = bit(b->buf_data, i) && !bit(*deferred, i);
    buffer_put(b);
    if (!in_use)
        return -EINVAL;
    bit_set(*deferred, i);
    fs->fs_deferred++;
    return 0;
}

int block_free(struct ext2 *fs, uint32_t block)
{
    struct group *g;
    int r;

    if (!block_valid(fs, block))
        return ext2_damage(fs, "not a file's block:", block);
    g = &fs->fs_group[block_group(fs, block)];
    r = defer_free(fs, g->group_desc.bg_block_bitmap, &g->group_deferred_blocks,
                   block - g->group_first);
    if (r == -EINVAL)
        return ext2_damage(fs, "freed twice: block", block);
    if (r == 0)
        buffer_forget(fs, block);
    return r;
}

/* ---- inodes ------------------------------------------------------------- */

/* Directories are spread: they go to the group with most free inodes. */
static uint32_t roomiest(const struct ext2 *fs)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < fs->fs_groups; i++) {
        if (fs->fs_group[i].group_free_inodes >
            fs->fs_group[best].group_free_inodes)
            best = i;
    }
    return best;
}

static int group_inode(struct ext2 *fs, uint32_t group, bool directory,
                       uint32_t *out)
{
    struct group *g = &fs->fs_group[group];
    uint32_t first = group * fs->fs_super.s_inodes_per_group + 1;
    struct buffer *b;
    uint32_t i;
    int r = buffer_get(fs, g->group_desc.bg_inode_bitmap, BUFFER_MAP, &b);

    if (r < 0)
        return r;
    i = clear_bit(b->buf_data, fs->fs_super.s_inodes_per_group, 0);
    if (i == fs->fs_super.s_inodes_per_group ||
        first + i < fs->fs_first_inode) {
        r = ext2_damage(fs, "wrong bitmap of inodes in group", group);
    } else {
        bit_set(b->buf_data, i);
        buffer_dirty(fs, b);
        g->group_free_inodes--;
        g->group_desc.bg_used_dirs_count += directory;
        g->group_dirty = true;
        *out = first + i;
    }
    buffer_put(b);
    return r;
}

int inode_alloc(struct ext2 *fs, uint32_t parent, bool directory, uint32_t *out)
{
    uint32_t group = directory ? roomiest(fs) : inode_group(fs, parent);

    for (uint32_t i = 0; i < fs->fs_groups; i++) {
        uint32_t at = (group + i) % fs->fs_groups;

        if (fs->fs_group[at].group_free_inodes > 0)
            return group_inode(fs, at, directory, out);
    }
    return -ENOSPC;
}

int inode_free(struct ext2 *fs, uint32_t number, bool directory)
{
    struct group *g = &fs->fs_group[inode_group(fs, number)];
    int r =
        defer_free(fs, g->group_desc.bg_inode_bitmap, &g->group_deferred_inodes,
                   (number - 1) % fs->fs_super.s_inodes_per_group);

    if (r == -EINVAL)
        return ext2_damage(fs, "freed twice: inode", number);
    if (r == 0 && directory && g->group_desc.bg_used_dirs_count > 0) {
        g->group_desc.bg_used_dirs_count--;
        g->group_dirty = true;
    }
    return r;
}

/* ---- the end of an epoch ------------------------------------------------ */

static int bits_of(uint8_t byte)
{
    int n = 0;

    for (; byte != 0; byte &= (uint8_t)(byte - 1))
        n++;
    return n;
}

/* Clears the freed bits in one bitmap. Returns how many, or an error. */
static int clear_deferred(struct ext2 *fs, uint32_t bitmap, uint8_t **deferred)
{
    struct buffer *b;
    int r = buffer_get(fs, bitmap, BUFFER_MAP, &b);
    int n = 0;

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < fs->fs_block_size; i++) {
        n += bits_of((*deferred)[i]);
        b->buf_data[i] &= (uint8_t) ~(*deferred)[i];
    }
    buffer_dirty(fs, b);
    buffer_put(b);
    free(*deferred);
    *deferred = NULL;
    return n;
}

static void forget_deferred(struct ext2 *fs, const struct group *g)
{
    for (uint32_t i = 0; i < fs->fs_buffers; i++) {
        uint32_t at = fs->fs_buffer[i].buf_block - g->group_first;

        if (fs->fs_buffer[i].buf_block >= g->group_first &&
            at < g->group_blocks && bit(g->group_deferred_blocks, at))
            buffer_forget(fs, fs->fs_buffer[i].buf_block);
    }
}

static int group_apply(struct ext2 *fs, struct group *g)
{
    int r;

    if (g->group_deferred_blocks != NULL) {
        forget_deferred(fs, g);
        r = clear_deferred(fs, g->group_desc.bg_block_bitmap,
                           &g->group_deferred_blocks);
        if (r < 0)
            return r;
        g->group_free_blocks += (uint32_t)r;
        g->group_dirty = true;
    }
    if (g->group_deferred_inodes != NULL) {
        r = clear_deferred(fs, g->group_desc.bg_inode_bitmap,
                           &g->group_deferred_inodes);
        if (r < 0)
            return r;
        g->group_free_inodes += (uint32_t)r;
        g->group_dirty = true;
    }
    return 0;
}

int deferred_apply(struct ext2 *fs)
{
    for (uint32_t i = 0; i < fs->fs_groups && fs->fs_deferred > 0; i++) {
        int r = group_apply(fs, &fs->fs_group[i]);

        if (r == 0 && fs->fs_dirty_meta > fs->fs_buffers / 2)
            r = buffer_write_kind(fs, BUFFER_MAP);
        if (r < 0)
            return r;
    }
    fs->fs_deferred = 0;
    return 0;
}

void deferred_drop(struct ext2 *fs)
{
    for (uint32_t i = 0; i < fs->fs_groups && fs->fs_group != NULL; i++) {
        free(fs->fs_group[i].group_deferred_blocks);
        free(fs->fs_group[i].group_deferred_inodes);
        fs->fs_group[i].group_deferred_blocks = NULL;
        fs->fs_group[i].group_deferred_inodes = NULL;
    }
    fs->fs_deferred = 0;
}
