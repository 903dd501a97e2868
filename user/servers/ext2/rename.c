/*
 * rename, in three forms.
 *
 * A file to a new name: the new name is written; when it is on disk, the old
 * one is removed.
 *
 * A file in place of another: the name must belong to one of them at all times,
 * and the file that loses it must have a name while it has a link. So it gets a
 * temporary one, ".replaced-INODE", written with all new names and removed with
 * all old ones.
 *
 * A directory: e2fsck accepts neither two names of it nor none, so the change
 * must be one write of one sector. This holds if its parent stays the same, the
 * new name fits in the sector of the old one, and no directory is replaced.
 * Otherwise the journal makes several writes one change; without a journal such
 * a move fails.
 */
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "user/servers/ext2/impl.h"

/* A rename in progress: nodes and places are held. */
struct move {
    struct node *move_from_dir, *move_to_dir, *move_node;
    const char *move_to;
    uint32_t move_len;
    struct place move_from;
    struct place move_target;   /* if there is one */
    struct node *move_replaced; /* the file replaced, or NULL */
};

static void finish(struct ext2 *fs, const struct move *m)
{
    m->move_from_dir->node_inode.i_mtime = ext2_now(fs);
    m->move_to_dir->node_inode.i_mtime = ext2_now(fs);
    node_changed(fs, m->move_from_dir);
    node_changed(fs, m->move_to_dir);
    node_changed(fs, m->move_node);
}

/* ---- files -------------------------------------------------------------- */

static int to_new_name(struct ext2 *fs, struct move *m)
{
    struct place place;
    int r = dir_room(fs, m->move_to_dir, m->move_to, m->move_len, &place);

    if (r < 0)
        return r;
    dir_put(fs, &place, m->move_to, m->move_len, m->move_node->node_number,
            dir_type(fs, m->move_node));
    place_put(&place);
    node_name(m->move_node, m->move_to_dir);
    dir_take(fs, m->move_from_dir, &m->move_from, m->move_node->node_unborn);
    finish(fs, m);
    return 0;
}

uint32_t temporary_name(uint32_t number, char *out, uint32_t size)
{
    return (uint32_t)snprintf(out, size, SHELTER "%u", (unsigned)number);
}

bool name_reserved(const char *name)
{
    return strncmp(name, SHELTER, strlen(SHELTER)) == 0;
}

bool entry_is_temporary(const struct ext2_dirent *d)
{
    char name[32];
    uint32_t len = temporary_name(d->d_inode, name, sizeof(name));

    return d->d_name_len == len && memcmp(d->d_name, name, len) == 0;
}

/* A temporary name between two steps of a commit. */
static int add_temporary(struct ext2 *fs, struct node *dir,
                         struct node *replaced)
{
    char name[32];
    struct place place;
    uint32_t len = temporary_name(replaced->node_number, name, sizeof(name));
    int r;

    if (replaced->node_inode.i_links_count > 1 || replaced->node_unborn)
        return 0; /* it has another name and needs none */
    r = dir_room(fs, dir, name, len, &place);
    if (r < 0)
        return r;
    dir_put(fs, &place, name, len, replaced->node_number,
            dir_type(fs, replaced));
    edit_add(fs, dir, &place, 0, 0, EDIT_REMOVE);
    place_put(&place);
    return 0;
}

/* The name refers to another file from a step of the commit on, until which
 * that file keeps its old name; or at once, if the disk has no such name. */
static void switch_name(struct ext2 *fs, struct move *m)
{
    struct ext2_dirent *d = place_entry(&m->move_target);
    uint8_t type = dir_type(fs, m->move_node);
    bool at_once = m->move_replaced->node_unborn;

    if (at_once) {
        d->d_inode = m->move_node->node_number;
        d->d_file_type = type;
        buffer_dirty(fs, m->move_target.place_buffer);
    } else {
        edit_add(fs, m->move_to_dir, &m->move_target, m->move_node->node_number,
                 type, EDIT_SWITCH);
    }
    dir_take(fs, m->move_from_dir, &m->move_from,
             at_once && m->move_node->node_unborn);
    node_name(m->move_node, m->move_to_dir);
}

static int replace_file(struct ext2 *fs, struct move *m)
{
    int r;

    if (node_is_dir(m->move_replaced))
        return -EISDIR;
    r = add_temporary(fs, m->move_to_dir, m->move_replaced);
    if (r < 0)
        return r;
    switch_name(fs, m);
    node_drop_link(fs, m->move_replaced);
    finish(fs, m);
    return 0;
}

/* No edit of these two names may be pending. */
static int settle_names(struct ext2 *fs, const struct move *m)
{
    const struct place *from = &m->move_from;
    const struct place *to = &m->move_target;

    if (edit_at(fs, from->place_buffer, from->place_offset) ||
        edit_of_name(fs, m->move_to_dir->node_number, m->move_to,
                     m->move_len) ||
        (m->move_replaced != NULL &&
         edit_at(fs, to->place_buffer, to->place_offset)))
        return epoch_commit(fs);
    return 0;
}

/* ---- directories -------------------------------------------------------- */

/* Whether it can be done within the sector of the old name. */
static bool within_sector(struct ext2 *fs, struct move *m)
{
    struct place place = m->move_from;
    struct ext2_dirent *d = place_entry(&place);

    if (m->move_from_dir != m->move_to_dir)
        return false;
    if (dir_fits(&place, m->move_len)) {
        d->d_name_len = (uint8_t)m->move_len;
        memcpy(d->d_name, m->move_to, m->move_len);
        buffer_dirty(fs, place.place_buffer);
        return true;
    }
    if (!dir_room_beside(fs, &place, m->move_len))
        return false;
    dir_put(fs, &place, m->move_to, m->move_len, m->move_node->node_number,
            d->d_file_type);
    d->d_inode = 0;
    return true;
}

/* The places that a move changes, held: up to four blocks. */
struct pieces {
    struct place piece_to;     /* where the new name is */
    struct place piece_parent; /* ".." */
    struct buffer *piece_dead; /* inode of the directory replaced, or NULL */
};

static int hold_to(struct ext2 *fs, struct move *m, struct place *to)
{
    if (m->move_replaced == NULL)
        return dir_room(fs, m->move_to_dir, m->move_to, m->move_len, to);
    *to = m->move_target;
    to->place_buffer->buf_refs++;
    return 0;
}

static int hold_parent(struct ext2 *fs, struct move *m, struct place *parent)
{
    int r = dir_find(fs, m->move_node, "..", 2, parent);

    if (r == 0)
        r = ext2_damage(fs, "no parent of directory",
                        m->move_node->node_number);
    return r < 0 ? r : 0;
}

static int hold_dead(struct ext2 *fs, struct move *m, struct buffer **dead)
{
    uint32_t offset;

    *dead = NULL;
    if (m->move_replaced == NULL)
        return 0;
    return inode_block(fs, m->move_replaced->node_number, dead, &offset);
}

static int hold(struct ext2 *fs, struct move *m, struct pieces *p)
{
    int r = hold_to(fs, m, &p->piece_to);

    if (r < 0)
        return r;
    r = hold_parent(fs, m, &p->piece_parent);
    if (r == 0) {
        r = hold_dead(fs, m, &p->piece_dead);
        if (r == 0)
            return 0;
        place_put(&p->piece_parent);
    }
    place_put(&p->piece_to);
    return r;
}

static void release_places(struct pieces *p)
{
    place_put(&p->piece_to);
    place_put(&p->piece_parent);
    if (p->piece_dead != NULL)
        buffer_put(p->piece_dead);
}

/* The blocks, each once. Returns how many. */
static uint32_t blocks_of(const struct move *m, const struct pieces *p,
                          struct buffer *out[JOURNAL_TAGS])
{
    struct buffer *all[JOURNAL_TAGS] = {
        m->move_from.place_buffer,
        p->piece_to.place_buffer,
        p->piece_parent.place_buffer,
        p->piece_dead,
    };
    uint32_t n = 0;

    for (uint32_t i = 0; i < JOURNAL_TAGS; i++) {
        if (all[i] != NULL && (i == 0 || all[i] != all[0]))
            out[n++] = all[i];
    }
    return n;
}

/* Makes the name refer to the directory; frees what it replaced. */
static int take_name(struct ext2 *fs, struct move *m, struct pieces *p)
{
    uint8_t type = dir_type(fs, m->move_node);
    struct ext2_dirent *d = place_entry(&p->piece_to);

    if (m->move_replaced == NULL) {
        dir_put(fs, &p->piece_to, m->move_to, m->move_len,
                m->move_node->node_number, type);
        return 0;
    }
    d->d_inode = m->move_node->node_number;
    d->d_file_type = type;
    buffer_dirty(fs, p->piece_to.place_buffer);
    dir_lost(m->move_to_dir);
    node_orphan(fs, m->move_replaced);
    return node_store(fs, m->move_replaced);
}

static int change_all(struct ext2 *fs, struct move *m, struct pieces *p)
{
    int r = take_name(fs, m, p);

    place_entry(&m->move_from)->d_inode = 0;
    buffer_dirty(fs, m->move_from.place_buffer);
    m->move_from_dir->node_room =
        MIN(m->move_from_dir->node_room, m->move_from.place_block);
    place_entry(&p->piece_parent)->d_inode = m->move_to_dir->node_number;
    buffer_dirty(fs, p->piece_parent.place_buffer);
    dir_lost(m->move_from_dir);
    m->move_to_dir->node_inode.i_links_count++;
    finish(fs, m);
    return r;
}

/* Changes several sectors, all or none. Other changes are written first, so
 * these blocks contain only the move. */
static int by_journal(struct ext2 *fs, struct move *m)
{
    struct buffer *blocks[JOURNAL_TAGS];
    struct pieces p;
    int r;

    if (!fs->fs_journal.jrn_usable)
        return -EXDEV;
    if (m->move_from_dir != m->move_to_dir && m->move_replaced == NULL &&
        m->move_to_dir->node_inode.i_links_count >= EXT2_LINK_MAX)
        return -EMLINK;
    r = hold(fs, m, &p);
    if (r < 0)
        return r;
    r = epoch_commit(fs);
    if (r == 0)
        r = change_all(fs, m, &p);
    if (r == 0)
        r = journal_write(fs, blocks, blocks_of(m, &p, blocks));
    release_places(&p);
    return r;
}

static int move_dir(struct ext2 *fs, struct move *m)
{
    int r = 0;

    if (m->move_replaced != NULL)
        r = dir_removable(fs, m->move_replaced);
    if (r == 0 && m->move_from_dir == m->move_to_dir)
        r = dir_no_index(fs, m->move_to_dir);
    if (r == 0)
        r = epoch_commit(fs);
    if (r < 0)
        return r;
    if (m->move_replaced != NULL || !within_sector(fs, m))
        return by_journal(fs, m);
    finish(fs, m);
    return 0;
}

/* ---- all forms ---------------------------------------------------------- */

static int move_to(struct ext2 *fs, struct move *m)
{
    int r;

    if (m->move_replaced == m->move_node)
        return 0; /* two names of one file: both stay */
    if (node_is_dir(m->move_node))
        return move_dir(fs, m);
    r = settle_names(fs, m);
    if (r < 0)
        return r;
    return m->move_replaced != NULL ? replace_file(fs, m) : to_new_name(fs, m);
}

static int with_target(struct ext2 *fs, struct move *m)
{
    int r =
        dir_find(fs, m->move_to_dir, m->move_to, m->move_len, &m->move_target);

    if (r < 0)
        return r;
    if (r == 0)
        return move_to(fs, m);
    r = node_get(fs, place_entry(&m->move_target)->d_inode, &m->move_replaced);
    if (r == 0) {
        r = move_to(fs, m);
        node_put(m->move_replaced);
    }
    place_put(&m->move_target);
    return r;
}

static int with_node(struct ext2 *fs, struct move *m, const char *from,
                     uint32_t file)
{
    int r = dir_find(fs, m->move_from_dir, from, (uint32_t)strlen(from),
                     &m->move_from);

    if (r <= 0)
        return r < 0 ? r : -ENOENT;
    r = place_entry(&m->move_from)->d_inode == file ? 0 : -ENOENT;
    if (r == 0)
        r = node_get(fs, file, &m->move_node);
    if (r == 0) {
        r = with_target(fs, m);
        node_put(m->move_node);
    }
    place_put(&m->move_from);
    return r;
}

static int rename_once(struct ext2 *fs, uint32_t from_dir, const char *from,
                       uint32_t to_dir, const char *to, uint32_t file)
{
    struct move m = {.move_to = to, .move_len = (uint32_t)strlen(to)};
    int r = epoch_begin(fs);

    if (r == 0)
        r = node_get_dir(fs, from_dir, &m.move_from_dir);
    if (r < 0)
        return r;
    r = node_get_dir(fs, to_dir, &m.move_to_dir);
    if (r == 0) {
        if (m.move_to_dir->node_inode.i_links_count == 0)
            r = -ENOENT;
        else
            r = with_node(fs, &m, from, file);
        node_put(m.move_to_dir);
    }
    node_put(m.move_from_dir);
    return r;
}

int ext2_rename(void *opaque, uint32_t from_dir, const char *from,
                uint32_t to_dir, const char *to, uint32_t file)
{
    struct ext2 *fs = opaque;
    int r = name_reserved(to)
                ? -EINVAL
                : rename_once(fs, from_dir, from, to_dir, to, file);

    if (r == -ENOSPC && fs->fs_deferred > 0 && epoch_commit(fs) == 0)
        r = rename_once(fs, from_dir, from, to_dir, to, file);
    return r;
}
