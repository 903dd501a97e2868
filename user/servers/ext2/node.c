/*
 * Inodes in memory.
 *
 * A node has the current inode; the block of the inode table has the inode as
 * it may be on disk. Only commit.c copies one to the other, one class of inodes
 * after another. So the order of writes is possible although a block holds many
 * inodes.
 */
#include "kernel/lib/string.h"
#include "user/lib/stdlib.h"
#include "user/servers/ext2/impl.h"

static struct node **chain(struct ext2 *fs, uint32_t number)
{
    return &fs->fs_node_hash[number % NODE_CHAIN];
}

static struct node *find(struct ext2 *fs, uint32_t number)
{
    struct node *n = *chain(fs, number);

    while (n != NULL && n->node_number != number)
        n = n->node_next;
    return n;
}

void node_free(struct ext2 *fs, struct node *n)
{
    struct node **at = chain(fs, n->node_number);

    while (*at != n)
        at = &(*at)->node_next;
    *at = n->node_next;
    list_remove(&n->node_lru);
    fs->fs_node_count--;
    fs->fs_node_dirty -= n->node_dirty;
    free(n);
}

/* Frees a node that is not in use, if there are many. */
static void make_room(struct ext2 *fs)
{
    if (fs->fs_node_count < NODES_MAX)
        return;
    list_for_each (l, &fs->fs_nodes) {
        struct node *n = list_entry(l, struct node, node_lru);

        if (n->node_refs == 0 && !n->node_dirty && !n->node_orphan &&
            !n->node_lost_dir) {
            node_free(fs, n);
            return;
        }
    }
}

/* An empty node, held, inserted in the tables. */
static struct node *enter(struct ext2 *fs, uint32_t number)
{
    struct node *n;

    make_room(fs);
    n = calloc(1, sizeof(*n));
    if (n == NULL)
        return NULL;
    n->node_number = number;
    n->node_refs = 1;
    n->node_next = *chain(fs, number);
    *chain(fs, number) = n;
    list_insert_before(&fs->fs_nodes, &n->node_lru);
    fs->fs_node_count++;
    return n;
}

int inode_block(struct ext2 *fs, uint32_t number, struct buffer **out,
                uint32_t *offset)
{
    uint32_t i = (number - 1) % fs->fs_super.s_inodes_per_group;
    uint32_t per_block = fs->fs_block_size / fs->fs_inode_size;
    const struct group *g = &fs->fs_group[inode_group(fs, number)];

    *offset = i % per_block * fs->fs_inode_size;
    return buffer_get(fs, g->group_desc.bg_inode_table + i / per_block,
                      BUFFER_TABLE, out);
}

/* The error in an inode that is in use, or NULL. */
static const char *check(const struct ext2 *fs, const struct ext2_inode *inode)
{
    switch (inode->i_mode & MODE_TYPE) {
    case MODE_DIRECTORY:
        if (inode->i_size == 0 || inode->i_size % fs->fs_block_size != 0)
            return "wrong size of directory";
        return NULL;
    case MODE_REGULAR:
    case MODE_LINK:
    case MODE_CHAR:
    case MODE_BLOCK:
    case MODE_FIFO:
    case MODE_SOCKET:
        return NULL;
    default:
        return "unknown type of inode";
    }
}

static bool in_use(const struct ext2 *fs, uint32_t number)
{
    return number == EXT2_ROOT || (number >= fs->fs_first_inode &&
                                   number <= fs->fs_super.s_inodes_count);
}

int inode_load(struct ext2 *fs, uint32_t number, struct ext2_inode *out)
{
    struct buffer *b;
    uint32_t offset;
    int r = inode_block(fs, number, &b, &offset);

    if (r < 0)
        return r;
    memcpy(out, b->buf_data + offset, sizeof(*out));
    buffer_put(b);
    return 0;
}

static int load(struct ext2 *fs, uint32_t number, struct ext2_inode *out)
{
    const char *wrong;
    int r = inode_load(fs, number, out);

    if (r < 0)
        return r;
    if (out->i_links_count == 0)
        return -ENOENT;
    wrong = check(fs, out);
    return wrong == NULL ? 0 : ext2_damage(fs, wrong, number);
}

int node_get(struct ext2 *fs, uint32_t number, struct node **out)
{
    struct node *n = find(fs, number);
    struct ext2_inode inode;
    int r;

    if (n != NULL && n->node_released)
        return -ENOENT;
    if (n == NULL) {
        r = in_use(fs, number) ? load(fs, number, &inode) : -ENOENT;
        if (r < 0)
            return r;
        n = enter(fs, number);
        if (n == NULL)
            return -ENOMEM;
        n->node_inode = inode;
        n->node_near = fs->fs_group[inode_group(fs, number)].group_first;
    } else {
        n->node_refs++;
        list_remove(&n->node_lru);
        list_insert_before(&fs->fs_nodes, &n->node_lru);
    }
    *out = n;
    return 0;
}

int node_get_dir(struct ext2 *fs, uint32_t number, struct node **out)
{
    int r = node_get(fs, number, out);

    if (r == 0 && !node_is_dir(*out)) {
        node_put(*out);
        r = -ENOTDIR;
    }
    return r;
}

int node_get_file(struct ext2 *fs, uint32_t number, struct node **out)
{
    int r = node_get(fs, number, out);

    if (r == 0 && node_type(*out) != MODE_REGULAR) {
        r = node_is_dir(*out) ? -EISDIR : -EINVAL;
        node_put(*out);
    } else if (r == 0 && (*out)->node_inode.i_size_high != 0) {
        node_put(*out);
        r = -EFBIG;
    }
    return r;
}

/* An inode that the bitmap says is free must be free. */
static int check_free(struct ext2 *fs, uint32_t number)
{
    struct ext2_inode inode;
    int r = inode_load(fs, number, &inode);

    if (r == 0 && (inode.i_links_count != 0 || find(fs, number) != NULL))
        r = ext2_damage(fs, "free, but in use: inode", number);
    return r;
}

int node_new(struct ext2 *fs, uint32_t number, struct node **out)
{
    int r = check_free(fs, number);
    struct node *n;

    if (r < 0)
        return r;
    n = enter(fs, number);
    if (n == NULL)
        return -ENOMEM;
    n->node_unborn = true;
    n->node_alloc = true;
    n->node_near = fs->fs_group[inode_group(fs, number)].group_first;
    n->node_inode.i_atime = ext2_now(fs);
    n->node_inode.i_ctime = n->node_inode.i_atime;
    n->node_inode.i_mtime = n->node_inode.i_atime;
    node_dirty(fs, n);
    *out = n;
    return 0;
}

void node_put(struct node *n)
{
    n->node_refs--;
}

void node_dirty(struct ext2 *fs, struct node *n)
{
    fs->fs_node_dirty += !n->node_dirty;
    n->node_dirty = true;
}

void node_changed(struct ext2 *fs, struct node *n)
{
    n->node_inode.i_ctime = ext2_now(fs);
    node_dirty(fs, n);
}

void node_name(struct node *n, const struct node *dir)
{
    if (n->node_dir != 0 && n->node_dir != dir->node_number)
        n->node_dir = NODE_DIRS_MANY;
    else
        n->node_dir = dir->node_number;
}

int node_clean(struct ext2 *fs, struct node *n)
{
    fs->fs_node_dirty -= n->node_dirty;
    n->node_dirty = false;
    return 0;
}

int node_store(struct ext2 *fs, struct node *n)
{
    struct buffer *b;
    uint32_t offset;
    int r = inode_block(fs, n->node_number, &b, &offset);

    if (r < 0)
        return r;
    if (n->node_unborn)
        memset(b->buf_data + offset, 0, fs->fs_inode_size);
    memcpy(b->buf_data + offset, &n->node_inode, sizeof(n->node_inode));
    buffer_dirty(fs, b);
    buffer_put(b);
    n->node_unborn = false;
    n->node_alloc = false;
    n->node_grew = false;
    n->node_dir = 0;
    return node_clean(fs, n);
}

void nodes_destroy(struct ext2 *fs)
{
    while (!list_empty(&fs->fs_nodes))
        node_free(fs, list_entry(fs->fs_nodes.next, struct node, node_lru));
}
