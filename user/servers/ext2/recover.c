/*
 * Repair after a crash: a file system that was not unmounted is checked once,
 * before it is used.
 *
 * The order of writes (commit.c) leaves little to repair: names of files that
 * were not created or are removed; wrong numbers of links; open files without a
 * name; blocks and inodes marked as used without an owner. All of it follows
 * from the inodes with links and the entries that refer to them, so the passes
 * are:
 *
 *   owners    each inode's blocks are marked; those after its end are freed
 *   entries   each entry of each directory is counted, or removed
 *   links     inodes get the number of their entries
 *   bitmaps   are rebuilt from the blocks and inodes found in use
 *   renames   temporary names of rename (rename.c) are removed, as by unlink
 *
 * Anything that a crash cannot cause is damage, for e2fsck.
 */
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "user/lib/stdlib.h"
#include "user/servers/ext2/impl.h"

struct recovery {
    struct ext2 *rec_fs;
    uint8_t *rec_used;    /* a bit for each block */
    uint16_t *rec_refs;   /* entries of each inode */
    uint32_t *rec_parent; /* of each directory; 0: not seen yet */
    bool rec_temporary;   /* a temporary name of rename exists */
    uint32_t rec_names, rec_links, rec_blocks, rec_inodes; /* repaired */
};

/* ---- owners ------------------------------------------------------------- */

/* Not a reserved inode (bad blocks, room for descriptors): those have no name,
 * and may have blocks that files may not. */
static bool is_file(const struct ext2 *fs, uint32_t number)
{
    return number == EXT2_ROOT || (number >= fs->fs_first_inode &&
                                   number != fs->fs_super.s_orphan_file_inum);
}

/* 1: marked; 0: it was marked already, and may have several owners. */
static int mark(struct recovery *r, uint32_t block, bool file)
{
    struct ext2 *fs = r->rec_fs;

    if (block >= fs->fs_super.s_blocks_count ||
        (file && (!block_valid(fs, block) || bit(r->rec_used, block))))
        return ext2_damage(fs, "wrong owner of block", block);
    if (bit(r->rec_used, block))
        return 0;
    r->rec_used[block / 8] |= (uint8_t)(1u << block % 8);
    return 1;
}

/* Marks a block and, if it is an indirect block, those below it. */
static int mark_tree(struct recovery *r, uint32_t block, uint32_t depth,
                     bool file, uint32_t *count)
{
    struct buffer *b;
    int result = block == 0 ? 0 : mark(r, block, file);

    if (result <= 0)
        return result;
    *count += 1;
    if (depth == 0)
        return 0;
    result = buffer_get(r->rec_fs, block, BUFFER_META, &b);
    if (result < 0)
        return result;
    for (uint32_t i = 0; i < r->rec_fs->fs_pointers && result == 0; i++)
        result =
            mark_tree(r, ((uint32_t *)b->buf_data)[i], depth - 1, file, count);
    buffer_put(b);
    return result;
}

static int mark_inode(struct recovery *r, const struct ext2_inode *inode,
                      bool file, uint32_t *count)
{
    int result = 0;

    *count = 0;
    for (uint32_t i = 0; i < EXT2_POINTERS && result == 0; i++) {
        uint32_t depth = i < EXT2_DIRECT ? 0 : i - EXT2_DIRECT + 1;

        result = mark_tree(r, inode->i_block[i], depth, file, count);
    }
    return result;
}

/* Frees blocks allocated to a file whose size was not written. */
static int cut_off(struct ext2 *fs, struct node *n)
{
    uint32_t size = n->node_inode.i_size;

    if (n->node_inode.i_size_high != 0 && !node_is_dir(n))
        return 0;
    return map_cut(fs, n,
                   size / fs->fs_block_size + (size % fs->fs_block_size != 0));
}

/* Counts the inodes that share a block of attributes again, because a power cut
 * may leave a wrong count. */
static int own_attributes(struct recovery *r, uint32_t block)
{
    struct ext2_attr_block *a;
    struct buffer *b;
    int first = mark(r, block, false);
    int result = first;

    if (result >= 0)
        result = buffer_get(r->rec_fs, block, BUFFER_META, &b);
    if (result < 0)
        return result;
    a = (struct ext2_attr_block *)b->buf_data;
    if (!block_valid(r->rec_fs, block) || a->h_magic != EXT2_ATTR_MAGIC) {
        result = ext2_damage(r->rec_fs, "no attributes in block", block);
    } else {
        a->h_refcount = first ? 1 : a->h_refcount + 1;
        buffer_dirty(r->rec_fs, b);
    }
    buffer_put(b);
    return result;
}

static int own_node(struct recovery *r, struct node *n)
{
    struct ext2 *fs = r->rec_fs;
    uint32_t attributes = n->node_inode.i_file_acl;
    uint32_t count = 0;
    int result = 0;

    if (map_has_blocks(fs, &n->node_inode)) {
        result = cut_off(fs, n);
        if (result == 0)
            result = mark_inode(r, &n->node_inode, true, &count);
    }
    if (result == 0 && attributes != 0) {
        result = own_attributes(r, attributes);
        count++;
    }
    count *= fs->fs_block_sectors;
    if (result == 0 && n->node_inode.i_blocks != count) {
        n->node_inode.i_blocks = count;
        node_dirty(fs, n);
    }
    return result;
}

static int own(struct recovery *r, uint32_t number)
{
    struct ext2_inode inode;
    struct node *n;
    uint32_t count;
    int result = inode_load(r->rec_fs, number, &inode);

    if (result < 0 || (inode.i_links_count == 0 && inode.i_blocks == 0))
        return result;
    if (!is_file(r->rec_fs, number))
        return mark_inode(r, &inode, false, &count);
    result = node_get(r->rec_fs, number, &n);
    if (result < 0)
        return result == -ENOENT ? 0 : result;
    result = own_node(r, n);
    node_put(n);
    return result;
}

/* ---- entries ------------------------------------------------------------ */

/* Whether a number is that of an inode with links, and its type. */
static int has_links(struct ext2 *fs, uint32_t number, uint16_t *mode)
{
    struct ext2_inode inode;
    int result = is_file(fs, number) ? inode_load(fs, number, &inode) : 0;

    if (result < 0 || !is_file(fs, number))
        return result;
    *mode = inode.i_mode;
    return inode.i_links_count > 0;
}

/* An entry that refers to an inode with links. */
static int count_entry(struct recovery *r, uint32_t dir,
                       const struct ext2_dirent *d, uint16_t mode)
{
    uint32_t *parent = &r->rec_parent[d->d_inode];

    r->rec_refs[d->d_inode] += r->rec_refs[d->d_inode] < UINT16_MAX;
    if ((mode & MODE_TYPE) != MODE_DIRECTORY || dir_dots(d))
        return 0;
    if (*parent != 0 || d->d_inode == EXT2_ROOT)
        return ext2_damage(r->rec_fs, "two names for directory", d->d_inode);
    *parent = dir;
    return 0;
}

static int count_block(struct recovery *r, uint32_t dir, struct buffer *b)
{
    struct ext2 *fs = r->rec_fs;
    struct ext2_dirent *d;
    uint16_t mode = 0;

    for (uint32_t at = 0; at < fs->fs_block_size; at += d->d_rec_len) {
        int result;

        d = (struct ext2_dirent *)(b->buf_data + at);
        if (d->d_inode == 0)
            continue;
        result = has_links(fs, d->d_inode, &mode);
        if (result > 0)
            result = count_entry(r, dir, d, mode) < 0 ? -EIO : 1;
        if (result < 0)
            return result;
        r->rec_temporary |= result > 0 && entry_is_temporary(d);
        if (result > 0)
            continue;
        d->d_inode = 0;
        buffer_dirty(fs, b);
        r->rec_names++;
    }
    return 0;
}

/* Checks the entries in the blocks of a directory. */
static int each_block(struct recovery *r, struct node *dir,
                      int (*f)(struct recovery *r, uint32_t dir,
                               struct buffer *b))
{
    struct ext2 *fs = r->rec_fs;
    uint32_t n = dir->node_inode.i_size / fs->fs_block_size;
    int result = 0;

    for (uint32_t i = 0; i < n && result == 0; i++) {
        struct buffer *b;

        result = epoch_begin(fs);
        if (result == 0)
            result = dir_block(fs, dir, i, &b);
        if (result < 0)
            return result;
        result = f(r, dir->node_number, b);
        buffer_put(b);
    }
    return result;
}

/* The same, if the inode is a directory's. */
static int of_dir(struct recovery *r, uint32_t number,
                  int (*f)(struct recovery *r, uint32_t dir, struct buffer *b))
{
    struct node *dir;
    int result = is_file(r->rec_fs, number)
                     ? node_get_dir(r->rec_fs, number, &dir)
                     : -ENOTDIR;

    if (result == -ENOTDIR || result == -ENOENT)
        return 0;
    if (result < 0)
        return result;
    result = each_block(r, dir, f);
    node_put(dir);
    return result;
}

static int entries(struct recovery *r, uint32_t number)
{
    return of_dir(r, number, count_block);
}

/* ---- links -------------------------------------------------------------- */

/* A directory's ".." must refer to the directory with its name. */
static int check_parent(struct recovery *r, struct node *n)
{
    struct ext2 *fs = r->rec_fs;
    uint32_t want =
        n->node_number == EXT2_ROOT ? EXT2_ROOT : r->rec_parent[n->node_number];
    struct place place;
    int result = dir_find(fs, n, "..", 2, &place);
    bool good;

    if (result < 0)
        return result;
    good = result > 0 && place_entry(&place)->d_inode == want;
    if (result > 0)
        place_put(&place);
    return good ? 0
                : ext2_damage(fs, "wrong parent of directory", n->node_number);
}

static int links(struct recovery *r, uint32_t number)
{
    uint16_t refs = r->rec_refs[number];
    struct node *n;
    int result =
        is_file(r->rec_fs, number) ? node_get(r->rec_fs, number, &n) : -ENOENT;

    if (result < 0)
        return result == -ENOENT ? 0 : result;
    if (refs == 0) {
        result = ext2_damage(r->rec_fs, "no name for inode", number);
    } else if (n->node_inode.i_links_count != refs) {
        n->node_inode.i_links_count = refs;
        node_dirty(r->rec_fs, n);
        r->rec_links++;
    }
    if (result == 0 && node_is_dir(n))
        result = check_parent(r, n);
    node_put(n);
    return result;
}

/* ---- bitmaps ------------------------------------------------------------ */

static uint32_t difference(uint32_t a, uint32_t b)
{
    return MAX(a, b) - MIN(a, b);
}

static int blocks_of(struct recovery *r, uint32_t i)
{
    struct ext2 *fs = r->rec_fs;
    struct group *g = &fs->fs_group[i];
    uint32_t before = g->group_free_blocks;
    struct buffer *b;
    int result = buffer_get(fs, g->group_desc.bg_block_bitmap, BUFFER_MAP, &b);

    if (result < 0)
        return result;
    g->group_free_blocks = 0;
    for (uint32_t at = 0; at < g->group_blocks; at++) {
        uint32_t block = g->group_first + at;
        uint8_t mask = (uint8_t)(1u << at % 8);

        if (block_own(fs, block) || bit(r->rec_used, block)) {
            b->buf_data[at / 8] |= mask;
        } else {
            b->buf_data[at / 8] &= (uint8_t)~mask;
            g->group_free_blocks++;
        }
    }
    buffer_dirty(fs, b);
    buffer_put(b);
    g->group_dirty = true;
    r->rec_blocks += difference(g->group_free_blocks, before);
    return 0;
}

static int inode_bit(struct recovery *r, struct group *g, struct buffer *b,
                     uint32_t number, uint32_t at)
{
    uint8_t mask = (uint8_t)(1u << at % 8);
    struct ext2_inode inode;
    int result = inode_load(r->rec_fs, number, &inode);

    if (result < 0)
        return result;
    if (!is_file(r->rec_fs, number) || inode.i_links_count > 0) {
        b->buf_data[at / 8] |= mask;
        g->group_desc.bg_used_dirs_count +=
            is_file(r->rec_fs, number) &&
            (inode.i_mode & MODE_TYPE) == MODE_DIRECTORY;
    } else {
        b->buf_data[at / 8] &= (uint8_t)~mask;
        g->group_free_inodes++;
    }
    return 0;
}

static int inodes_of(struct recovery *r, uint32_t i)
{
    struct ext2 *fs = r->rec_fs;
    struct group *g = &fs->fs_group[i];
    uint32_t n = fs->fs_super.s_inodes_per_group;
    uint32_t before = g->group_free_inodes;
    struct buffer *b;
    int result = buffer_get(fs, g->group_desc.bg_inode_bitmap, BUFFER_MAP, &b);

    if (result < 0)
        return result;
    g->group_free_inodes = 0;
    g->group_desc.bg_used_dirs_count = 0;
    for (uint32_t at = 0; at < n && result == 0; at++)
        result = inode_bit(r, g, b, i * n + at + 1, at);
    buffer_dirty(fs, b);
    buffer_put(b);
    r->rec_inodes += difference(g->group_free_inodes, before);
    return result;
}

/* ---- temporary names ----------------------------------------------------- */

static int remove_temporary(struct recovery *r, uint32_t dir, uint32_t file)
{
    char name[EXT2_NAME_MAX + 1];
    uint32_t links;
    int result;

    temporary_name(file, name, sizeof(name));
    result = ext2_unlink(r->rec_fs, dir, name, file, &links);
    if (result == -EISDIR)
        return 0; /* directories never have such names */
    r->rec_names += result == 0;
    return result == 0 && links == 0 ? ext2_release(r->rec_fs, file) : result;
}

static int clear_block(struct recovery *r, uint32_t dir, struct buffer *b)
{
    struct ext2_dirent *d;
    int result = 0;

    for (uint32_t at = 0; at < r->rec_fs->fs_block_size && result == 0;
         at += d->d_rec_len) {
        d = (struct ext2_dirent *)(b->buf_data + at);
        if (d->d_inode != 0 && entry_is_temporary(d))
            result = remove_temporary(r, dir, d->d_inode);
    }
    return result;
}

static int remove_temporaries(struct recovery *r, uint32_t number)
{
    return of_dir(r, number, clear_block);
}

/* ---- the whole repair --------------------------------------------------- */

/* One of the passes over all inodes. */
static int each(struct recovery *r,
                int (*f)(struct recovery *r, uint32_t number))
{
    struct ext2 *fs = r->rec_fs;

    for (uint32_t i = 1; i <= fs->fs_super.s_inodes_count; i++) {
        int result = f(r, i);

        if (result == 0)
            result = epoch_begin(fs);
        if (result < 0)
            return result;
    }
    return 0;
}

static int passes(struct recovery *r)
{
    struct ext2 *fs = r->rec_fs;
    int result = each(r, own);

    if (result == 0)
        result = each(r, entries);
    if (result == 0)
        result = each(r, links);
    if (result == 0)
        result = epoch_commit(fs);
    for (uint32_t i = 0; i < fs->fs_groups && result == 0; i++) {
        result = epoch_begin(fs);
        if (result == 0)
            result = blocks_of(r, i);
        if (result == 0)
            result = inodes_of(r, i);
    }
    if (result == 0)
        result = epoch_commit(fs);
    if (result == 0 && r->rec_temporary)
        result = each(r, remove_temporaries);
    return result < 0 ? result : epoch_commit(fs);
}

static void report(const struct recovery *r)
{
    char line[120];

    snprintf(line, sizeof(line),
             "it was not unmounted: %u names, %u numbers of links, %u inodes, "
             "%u blocks repaired",
             (unsigned)r->rec_names, (unsigned)r->rec_links,
             (unsigned)r->rec_inodes, (unsigned)r->rec_blocks);
    r->rec_fs->fs_disk.disk_say(r->rec_fs->fs_disk.disk_arg, line);
}

void ext2_recover(struct ext2 *fs)
{
    struct recovery r = {.rec_fs = fs};
    int result = -ENOMEM;

    r.rec_used = calloc(fs->fs_super.s_blocks_count / 8 + 1, 1);
    r.rec_refs = calloc(fs->fs_super.s_inodes_count + 1, sizeof(r.rec_refs[0]));
    r.rec_parent =
        calloc(fs->fs_super.s_inodes_count + 1, sizeof(r.rec_parent[0]));
    if (r.rec_used != NULL && r.rec_refs != NULL && r.rec_parent != NULL)
        result = passes(&r);
    if (result == 0) {
        fs->fs_suspect = false;
        report(&r);
    } else if (fs->fs_read_only == NULL) {
        fs->fs_read_only = "not unmounted, and not repaired: run e2fsck";
    }
    free(r.rec_used);
    free(r.rec_refs);
    free(r.rec_parent);
}
