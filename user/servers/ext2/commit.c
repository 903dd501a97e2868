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
 * A step with nothing to write costs nothing, or only a flush, if blocks were
 * written since the last one (victim in buffer.c).
 *
 * fsync of a file writes only what the file needs, by the steps up to "files",
 * and the epoch goes on: the disk is as if power had failed in these steps and
 * all other changes were lost.
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

/* All edits are on disk; or the disk has failed. Marks nothing dirty. */
static void edits_end(struct ext2 *fs)
{
    for (uint32_t i = 0; i < fs->fs_edits; i++) {
        entry_set(&fs->fs_edit[i], true);
        buffer_put(fs->fs_edit[i].edit_buffer);
    }
    fs->fs_edits = 0;
}

/* ---- the scope of a commit ---------------------------------------------- */

/* For an fsync: the file, the directory in which it has a new name, and the one
 * that has the name of a new directory; 0: none. */
struct scope {
    uint32_t scope_file, scope_dir, scope_parent;
};

/* Without a scope, everything is written. */
static bool in_scope(const struct scope *s, uint32_t inode)
{
    return s == NULL ||
           (inode != 0 && (inode == s->scope_file || inode == s->scope_dir ||
                           inode == s->scope_parent));
}

static bool edit_of_file(const struct ext2 *fs, uint32_t file)
{
    for (uint32_t i = 0; i < fs->fs_edits; i++) {
        if (fs->fs_edit[i].edit_before == file ||
            fs->fs_edit[i].edit_after == file)
            return true;
    }
    return false;
}

/* What an fsync of the file must write. False: everything, as a name of it
 * changes in the steps after "files", or it has several new names. */
static bool scope_of(struct ext2 *fs, const struct node *n, struct scope *s)
{
    struct node *dir;

    *s = (struct scope){.scope_file = n->node_number, .scope_dir = n->node_dir};
    if (node_type(n) != MODE_REGULAR || n->node_inode.i_links_count == 0 ||
        n->node_dir == NODE_DIRS_MANY || edit_of_file(fs, n->node_number))
        return false;
    if (n->node_dir == 0)
        return true;
    if (node_get_dir(fs, n->node_dir, &dir) < 0)
        return false;
    s->scope_parent = dir->node_dir;
    node_put(dir);
    return true;
}

/* ---- steps -------------------------------------------------------------- */

#define KIND(k)      (1u << (k))
#define KINDS_NAME   (KIND(BUFFER_META) | KIND(BUFFER_DIR))
#define KINDS_SHARED (KIND(BUFFER_MAP) | KIND(BUFFER_TABLE))

static bool is_written(const struct buffer *b, uint32_t kinds, bool fresh,
                       const struct scope *s)
{
    if (!b->buf_dirty ||
        !((kinds & KIND(b->buf_kind)) || (fresh && b->buf_fresh)))
        return false;
    return (KINDS_SHARED & KIND(b->buf_kind)) || in_scope(s, b->buf_owner);
}

/* Writes dirty buffers of these kinds and, if requested, all fresh ones; waits
 * until they are on disk. */
static int write_kinds(struct ext2 *fs, uint32_t kinds, bool fresh,
                       const struct scope *s)
{
    bool any = false;
    int r;

    for (uint32_t i = 0; i < fs->fs_buffers; i++) {
        struct buffer *b = &fs->fs_buffer[i];

        b->buf_mark = is_written(b, kinds, fresh, s);
        any |= b->buf_mark;
    }
    if (!any && !fs->fs_unflushed)
        return 0;
    r = buffer_write_marked(fs);
    return r < 0 ? r : disk_flush(fs);
}

/* Whether a bitmap has changed for anything in the scope. */
static bool has_allocated(const struct ext2 *fs, const struct scope *s)
{
    if (s == NULL)
        return true;
    list_for_each (l, &fs->fs_nodes) {
        const struct node *n = list_entry(l, struct node, node_lru);

        if (n->node_alloc && in_scope(s, n->node_number))
            return true;
    }
    return false;
}

static int step_data(struct ext2 *fs, const struct scope *s)
{
    bool maps = has_allocated(fs, s);
    int r = maps ? groups_store(fs) : 0;

    if (r == 0 && (fs->fs_super.s_state & STATE_VALID)) {
        fs->fs_super.s_state &= (uint16_t)~STATE_VALID;
        r = super_write(fs);
        if (r == 0)
            r = disk_flush(fs);
    }
    if (r < 0)
        return r;
    return write_kinds(fs, KIND(BUFFER_DATA) | (maps ? KIND(BUFFER_MAP) : 0),
                       true, s);
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
static int step_nodes(struct ext2 *fs, enum node_class which,
                      const struct scope *s)
{
    list_for_each (l, &fs->fs_nodes) {
        struct node *n = list_entry(l, struct node, node_lru);
        int r;

        if (!n->node_dirty || class_of(n) != which ||
            !in_scope(s, n->node_number))
            continue;
        r = n->node_unborn && which >= CLASS_DEAD ? node_clean(fs, n)
                                                  : node_store(fs, n);
        if (r < 0)
            return r;
    }
    return write_kinds(fs, KIND(BUFFER_TABLE), false, NULL);
}

static int step_edits(struct ext2 *fs, enum edit_step step)
{
    if (!edits_set(fs, step, true))
        return 0;
    return write_kinds(fs, KINDS_NAME, false, NULL);
}

/* From "data" to "files"; the edits are undone. */
static int steps_to_files(struct ext2 *fs, const struct scope *s)
{
    int r;

    edits_set(fs, -1, false);
    r = step_data(fs, s);
    if (r == 0)
        r = write_kinds(fs, KINDS_NAME, false, s);
    for (int c = CLASS_GROWN; c <= CLASS_FILE && r == 0; c++)
        r = step_nodes(fs, (enum node_class)c, s);
    return r;
}

static int steps(struct ext2 *fs)
{
    int r = steps_to_files(fs, NULL);

    if (r == 0)
        r = step_edits(fs, EDIT_SWITCH);
    for (int c = CLASS_DEAD; c < CLASSES && r == 0; c++)
        r = step_nodes(fs, (enum node_class)c, NULL);
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

static void end_fresh(struct ext2 *fs, const struct scope *s)
{
    for (uint32_t i = 0; i < fs->fs_buffers; i++) {
        if (in_scope(s, fs->fs_buffer[i].buf_owner))
            fs->fs_buffer[i].buf_fresh = false;
    }
}

static int step_freed(struct ext2 *fs)
{
    int r;

    if (fs->fs_super.s_state & STATE_ERRORS) {
        deferred_drop(fs);
        return 0;
    }
    r = deferred_apply(fs);
    if (r == 0)
        r = groups_store(fs);
    return r < 0 ? r : write_kinds(fs, KIND(BUFFER_MAP), false, NULL);
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
        fs->fs_deferred > 0)
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
    end_fresh(fs, NULL);
    end_nodes(fs);
    return 0;
}

/* Writes what is in the scope; the epoch goes on. */
static int commit_file(struct ext2 *fs, const struct scope *s)
{
    int r;

    if (fs->fs_failed)
        return -EIO;
    fs->fs_counts.count_commits++;
    r = steps_to_files(fs, s);
    edits_set(fs, -1, true);
    if (r < 0)
        return disk_failed(fs);
    end_fresh(fs, s);
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

/* ---- when to commit ----------------------------------------------------- */

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

int ext2_sync(void *opaque, uint32_t file)
{
    struct ext2 *fs = opaque;
    struct scope s;
    struct node *n;
    bool alone;

    if (file == 0)
        return settle(fs);
    if (epoch_clean(fs))
        return 0;
    if (node_get(fs, file, &n) < 0)
        return epoch_commit(fs);
    alone = scope_of(fs, n, &s);
    node_put(n);
    return alone ? commit_file(fs, &s) : epoch_commit(fs);
}

int ext2_unmount(void *opaque)
{
    return settle(opaque);
}
