/*
 * The invariants of the data in memory, whatever the disk contains.
 */
#include "user/servers/ext2/impl.h"

static const char *check_buffers(const struct ext2 *fs)
{
    uint32_t meta = 0;
    uint32_t listed = 0;

    for (uint32_t i = 0; i < fs->fs_buffers; i++) {
        const struct buffer *b = &fs->fs_buffer[i];

        meta += b->buf_dirty && b->buf_kind != BUFFER_DATA;
        if (b->buf_block != 0 && buffer_find(fs, b->buf_block) != b)
            return "a buffer is not in its hash chain";
        if (b->buf_block == 0 && b->buf_dirty)
            return "a dirty buffer has no block";
    }
    if (meta != fs->fs_dirty_meta)
        return "the number of dirty buffers is wrong";
    list_for_each (l, &fs->fs_lru) {
        if (++listed > fs->fs_buffers)
            break;
    }
    return listed == fs->fs_buffers ? NULL : "the list of buffers is wrong";
}

static const char *check_references(const struct ext2 *fs)
{
    uint32_t refs = 0;

    for (uint32_t i = 0; i < fs->fs_buffers; i++)
        refs += fs->fs_buffer[i].buf_refs;
    return refs == fs->fs_edits ? NULL : "a buffer is still held";
}

static const char *check_nodes(const struct ext2 *fs)
{
    uint32_t count = 0, dirty = 0, orphans = 0;

    list_for_each (l, &fs->fs_nodes) {
        const struct node *n = list_entry(l, struct node, node_lru);

        if (++count > fs->fs_node_count)
            break;
        dirty += n->node_dirty;
        orphans += n->node_orphan;
        if (n->node_refs != 0)
            return "an inode is still held";
        if (n->node_orphan && n->node_inode.i_links_count != 0)
            return "an orphan has links";
    }
    if (count != fs->fs_node_count || dirty != fs->fs_node_dirty ||
        orphans != fs->fs_orphans)
        return "the number of inodes in memory is wrong";
    return NULL;
}

const char *ext2_verify(const struct ext2 *fs)
{
    const char *wrong = check_buffers(fs);

    if (wrong == NULL)
        wrong = check_references(fs);
    return wrong != NULL ? wrong : check_nodes(fs);
}
