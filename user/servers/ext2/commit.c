/*
 * Writing changes to disk, in an order that survives a power failure.
 *
 * The changes since the last commit are an epoch. It is written in steps; each
 * is complete (flushed) before the next begins. After any step, and with any
 * part of the next one, `e2fsck -p` finds only errors that it may repair by
 * itself (see docs/ext2.md). In short:
 *
 *     an inode with links always has a name, and a block one owner
 *
 *   data      contents of files; bitmaps with new allocations; blocks to
 *             which nothing on the disk refers yet
 *   names     numbers of blocks; directories with all new names, and still
 *             with the old ones
 *   grown     inodes of directories that have become longer
 *   created   inodes of new directories
 *   files     all other inodes that have links
 *   switched  names that change to another file
 *   dead      inodes without links: files, then directories
 *   removed   directories without old names
 *   freed     bitmaps without freed blocks and inodes
 *
 * A step with nothing to write costs nothing.
 */
#include "kernel/lib/string.h"
#include "user/servers/ext2/impl.h"

/* ---- edits -------------------------------------------------------------- */

static void entry_set(const struct edit *e, bool after)
{
    struct ext2_dirent *d =
        (struct ext2_dirent *)(e->edit_buffer->buf_data + e->edit_offset);

    d->d_inode = after ? e->edit_after : e->edit_before;
    d->d_file_type = after ? e->edit_type_after : e->edit_type_before;
}

void edit_add(struct ext2 *fs, struct node *dir, struct place *place,
              uint32_t after, uint8_t type, enum edit_step step)
{
    const struct ext2_dirent *d = place_entry(place);
    struct edit *e = &fs->fs_edit[fs->fs_edits++];

    *e = (struct edit){
        .edit_buffer = place->place_buffer,
        .edit_dir = dir->node_number,
        .edit_before = d->d_inode,
        .edit_after = after,
        .edit_offset = (uint16_t)place->place_offset,
        .edit_type_before = d->d_file_type,
        .edit_type_after = type,
        .edit_step = (uint8_t)step,
    };
    entry_set(e, true);
    e->edit_buffer->buf_refs++;
    buffer_dirty(fs, e->edit_buffer);
}

bool edit_at(const struct ext2 *fs, const struct buffer *b, uint32_t offset)
{
    for (uint32_t i = 0; i < fs->fs_edits; i++) {
        if (fs->fs_edit[i].edit_buffer == b &&
            fs->fs_edit[i].edit_offset == offset)
            return true;
    }
    return false;
}

bool edit_of_name(const struct ext2 *fs, uint32_t dir, const char *name,
                  uint32_t len)
{
    for (uint32_t i = 0; i < fs->fs_edits; i++) {
        const struct edit *e = &fs->fs_edit[i];
        const struct ext2_dirent *d =
            (void *)(e->edit_buffer->buf_data + e->edit_offset);

        if (e->edit_dir == dir && e->edit_step == EDIT_REMOVE &&
            d->d_name_len == len && memcmp(d->d_name, name, len) == 0)
            return true;
    }
    return false;
}

/* The edits of a step, or all, with old or new inode numbers. */
static bool edits_set(struct ext2 *fs, int step, bool after)
{
    bool any = false;

    for (uint32_t i = 0; i < fs->fs_edits; i++) {
        const struct edit *e = &fs->fs_edit[i];

        if (step >= 0 && e->edit_step != step)
            continue;
        entry_set(e, after);
        buffer_dirty(fs, e->edit_buffer);
        any = true;
    }
    return any;
}

/* All edits are on disk; or the disk has failed. Nothing becomes dirty. */
static void edits_end(struct ext2 *fs)
{
    for (uint32_t i = 0; i < fs->fs_edits; i++) {
        entry_set(&fs->fs_edit[i], true);
        buffer_put(fs->fs_edit[i].edit_buffer);
    }
    fs->fs_edits = 0;
}

/* ---- steps -------------------------------------------------------------- */

/* Writes dirty buffers of these kinds and, if requested, all fresh ones; waits
 * until they are on disk. */
#define KIND(k)    (1u << (k))
#define KINDS_NAME (KIND(BUFFER_META) | KIND(BUFFER_DIR))

static int write_kinds(struct ext2 *fs, uint32_t kinds, bool fresh)
{
    bool any = false;
    int r;

    for (uint32_t i = 0; i < fs->fs_buffers; i++) {
        struct buffer *b = &fs->fs_buffer[i];

        b->buf_mark = b->buf_dirty &&
                      ((kinds & KIND(b->buf_kind)) || (fresh && b->buf_fresh));
        any |= b->buf_mark;
    }
    if (!any)
        return 0;
    r = buffer_write_marked(fs);
    return r < 0 ? r : disk_flush(fs);
}

static int step_data(struct ext2 *fs)
{
    int r = groups_store(fs);

    if (r == 0 && (fs->fs_super.s_state & STATE_VALID)) {
        fs->fs_super.s_state &= (uint16_t)~STATE_VALID;
        r = super_write(fs);
        if (r == 0)
            r = disk_flush(fs);
    }
    if (r < 0)
        return r;
    return write_kinds(fs, KIND(BUFFER_DATA) | KIND(BUFFER_MAP), true);
}

enum node_class {
    CLASS_GROWN,
    CLASS_NEW_DIR,
    CLASS_FILE,
    CLASS_DEAD,
    CLASS_DEAD_DIR,
    CLASSES
};

static enum node_class class_of(const struct node *n)
{
    if (n->node_inode.i_links_count == 0)
        return node_is_dir(n) ? CLASS_DEAD_DIR : CLASS_DEAD;
    if (node_is_dir(n) && n->node_unborn)
        return CLASS_NEW_DIR;
    return n->node_grew ? CLASS_GROWN : CLASS_FILE;
}

/* Writes the inodes of one class. An inode created and freed in this epoch is
 * free on disk anyway. */
static int step_nodes(struct ext2 *fs, enum node_class which)
{
    list_for_each (l, &fs->fs_nodes) {
        struct node *n = list_entry(l, struct node, node_lru);
        int r;

        if (!n->node_dirty || class_of(n) != which)
            continue;
        r = n->node_unborn && which >= CLASS_DEAD ? node_clean(fs, n)
                                                  : node_store(fs, n);
        if (r < 0)
            return r;
    }
    return write_kinds(fs, KIND(BUFFER_TABLE), false);
}

static int step_edits(struct ext2 *fs, enum edit_step step)
{
    if (!edits_set(fs, step, true))
        return 0;
    return write_kinds(fs, KINDS_NAME, false);
}

static int steps(struct ext2 *fs)
{
    int r;

    edits_set(fs, -1, false);
    r = step_data(fs);
    if (r == 0)
        r = write_kinds(fs, KINDS_NAME, false);
    for (int c = CLASS_GROWN; c <= CLASS_FILE && r == 0; c++)
        r = step_nodes(fs, (enum node_class)c);
    if (r == 0)
        r = step_edits(fs, EDIT_SWITCH);
    for (int c = CLASS_DEAD; c < CLASSES && r == 0; c++)
        r = step_nodes(fs, (enum node_class)c);
    if (r == 0)
        r = step_edits(fs, EDIT_REMOVE);
    edits_end(fs);
    return r;
}

/* Clears the state that lasts for one epoch. */
static void end_nodes(struct ext2 *fs)
{
    struct list *next;

    for (struct list *l = fs->fs_nodes.next; l != &fs->fs_nodes; l = next) {
        struct node *n = list_entry(l, struct node, node_lru);

        next = l->next;
        n->node_lost_dir = false;
        if (n->node_released && n->node_refs == 0)
            node_free(fs, n);
    }
}

static void end_fresh(struct ext2 *fs)
{
    for (uint32_t i = 0; i < fs->fs_buffers; i++)
        fs->fs_buffer[i].buf_fresh = false;
}

static int step_freed(struct ext2 *fs)
{
    int r;

    if (fs->fs_super.s_state & STATE_ERRORS) {
        gone_drop(fs);
        return 0;
    }
    r = gone_apply(fs);
    if (r == 0)
        r = groups_store(fs);
    return r < 0 ? r : write_kinds(fs, KIND(BUFFER_MAP), false);
}

/* After this, a power failure leaves nothing to repair. */
static int step_valid(struct ext2 *fs)
{
    int r;

    if ((fs->fs_super.s_state & STATE_VALID) || fs->fs_suspect ||
        fs->fs_orphans > 0)
        return 0;
    fs->fs_super.s_free_blocks_count = blocks_free(fs);
    fs->fs_super.s_free_inodes_count = inodes_free(fs);
    fs->fs_super.s_state |= STATE_VALID;
    r = super_write(fs);
    return r < 0 ? r : disk_flush(fs);
}

bool epoch_clean(const struct ext2 *fs)
{
    if (fs->fs_edits > 0 || fs->fs_node_dirty > 0 || fs->fs_dirty_meta > 0 ||
        fs->fs_gone > 0)
        return false;
    for (uint32_t i = 0; i < fs->fs_buffers; i++) {
        if (fs->fs_buffer[i].buf_dirty)
            return false;
    }
    return true;
}

int epoch_commit(struct ext2 *fs)
{
    int r;

    if (fs->fs_failed)
        return -EIO;
    fs->fs_counts.count_commits++;
    r = steps(fs);
    if (r == 0)
        r = step_freed(fs);
    if (r < 0)
        return disk_failed(fs); /* a step that was left out is not repeated */
    end_fresh(fs);
    end_nodes(fs);
    return 0;
}

int epoch_begin(struct ext2 *fs)
{
    if (fs->fs_read_only != NULL)
        return -EROFS;
    if (fs->fs_dirty_meta > fs->fs_buffers / 2 ||
        fs->fs_node_dirty > NODES_MAX / 2 || fs->fs_edits > EDITS_MAX - 8)
        return epoch_commit(fs);
    return 0;
}

/* ---- when --------------------------------------------------------------- */

static int settle(struct ext2 *fs)
{
    int r = 0;

    if (!epoch_clean(fs))
        r = epoch_commit(fs);
    if (r == 0 && !(fs->fs_super.s_state & STATE_ERRORS) &&
        fs->fs_read_only == NULL)
        r = step_valid(fs);
    return r;
}

int ext2_tick(void *opaque)
{
    return settle(opaque);
}

/* A file depends on its directories too, so everything is written. */
int ext2_sync(void *opaque, uint32_t file)
{
    struct ext2 *fs = opaque;

    if (file == 0)
        return settle(fs);
    return epoch_clean(fs) ? 0 : epoch_commit(fs);
}

int ext2_unmount(void *opaque)
{
    return settle(opaque);
}
