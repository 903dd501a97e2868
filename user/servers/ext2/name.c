/*
 * Names: create, link, unlink, rmdir; and freeing of files.
 *
 * Every step that may fail comes before the first change. Removing a name is an
 * edit: the disk keeps the name until a step of the commit (commit.c).
 */
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "user/servers/ext2/impl.h"

/* Space freed in this epoch is available in the next: whether to try again. */
static bool again(struct ext2 *fs, int r)
{
    return r == -ENOSPC && fs->fs_deferred > 0 && epoch_commit(fs) == 0;
}

static void dir_changed(struct ext2 *fs, struct node *dir)
{
    dir->node_inode.i_mtime = ext2_now(fs);
    node_changed(fs, dir);
}

/* A directory in which names may be created. */
static int get_parent(struct ext2 *fs, uint32_t number, struct node **out)
{
    int r = epoch_begin(fs);

    if (r == 0)
        r = node_get_dir(fs, number, out);
    if (r == 0 && (*out)->node_inode.i_links_count == 0) {
        node_put(*out);
        r = -ENOENT;
    }
    return r;
}

/* ---- freeing files ------------------------------------------------------ */

void node_orphan(struct ext2 *fs, struct node *n)
{
    if (n->node_orphan)
        return; /* a damaged disk has more names than links */
    n->node_inode.i_links_count = 0;
    n->node_inode.i_dtime = ext2_now(fs);
    n->node_orphan = true;
    fs->fs_orphans++;
    node_changed(fs, n);
}

/* A block of attributes may be shared. */
static int free_attributes(struct ext2 *fs, uint32_t block)
{
    struct ext2_attr_block *a;
    struct buffer *b;
    int r;

    if (!block_valid(fs, block))
        return ext2_damage(fs, "not a block for attributes:", block);
    r = buffer_get(fs, block, BUFFER_META, &b);
    if (r < 0)
        return r;
    a = (struct ext2_attr_block *)b->buf_data;
    if (a->h_magic != EXT2_ATTR_MAGIC || a->h_refcount == 0)
        r = ext2_damage(fs, "no attributes in block", block);
    else if (--a->h_refcount > 0)
        buffer_dirty(fs, b);
    else
        r = 1;
    buffer_put(b);
    return r == 1 ? block_free(fs, block) : r;
}

/* Frees an inode and its blocks. */
static int release(struct ext2 *fs, struct node *n)
{
    int r = 0;

    n->node_released = true;
    if (map_has_blocks(fs, &n->node_inode))
        r = map_cut(fs, n, 0);
    if (r == 0 && n->node_inode.i_file_acl != 0)
        r = free_attributes(fs, n->node_inode.i_file_acl);
    if (r == 0)
        r = inode_free(fs, n->node_number, node_is_dir(n));
    fs->fs_suspect |= r < 0; /* some space is lost, until the next mount */
    return r;
}

int ext2_release(void *opaque, uint32_t file)
{
    struct ext2 *fs = opaque;
    struct node *n;
    int r = node_get(fs, file, &n);

    if (r < 0)
        return r;
    r = 0;
    if (n->node_orphan && epoch_begin(fs) == 0) {
        n->node_orphan = false;
        fs->fs_orphans--;
        r = release(fs, n);
    }
    node_put(n);
    return r;
}

/* ---- create ------------------------------------------------------------- */

static void set_type(struct node *n, uint32_t type, uint32_t device)
{
    struct ext2_inode *inode = &n->node_inode;

    inode->i_links_count = type == FILE_DIRECTORY ? 2 : 1;
    switch (type) {
    case FILE_DIRECTORY:
        inode->i_mode = MODE_DIRECTORY | 0755;
        break;
    case FILE_DEVICE:
        inode->i_mode = MODE_CHAR | 0666;
        inode->i_block[device > UINT16_MAX] = device;
        break;
    default:
        inode->i_mode = MODE_REGULAR | 0644;
    }
}

/* Creates an inode of that type, held. */
static int new_file(struct ext2 *fs, struct node *dir, uint32_t type,
                    uint32_t device, struct node **out)
{
    bool is_dir = type == FILE_DIRECTORY;
    uint32_t number;
    int r = inode_alloc(fs, dir->node_number, is_dir, &number);

    if (r < 0)
        return r;
    r = node_new(fs, number, out);
    if (r < 0) {
        inode_free(fs, number, is_dir);
        return r;
    }
    set_type(*out, type, device);
    if (is_dir)
        r = dir_begin(fs, *out, dir->node_number);
    if (r < 0) {
        (*out)->node_inode.i_links_count = 0;
        release(fs, *out);
        node_put(*out);
    }
    return r;
}

static int create_in(struct ext2 *fs, struct node *dir, const char *name,
                     uint32_t type, uint32_t device, uint32_t *file)
{
    uint32_t len = (uint32_t)strlen(name);
    struct place place;
    struct node *n;
    int r = 0;

    if (type == FILE_DIRECTORY) {
        if (dir->node_inode.i_links_count >= EXT2_LINK_MAX)
            return -EMLINK;
        if (dir->node_unborn) /* a directory after its parent */
            r = epoch_commit(fs);
    }
    if (r == 0)
        r = dir_room(fs, dir, name, len, &place);
    if (r < 0)
        return r;
    r = new_file(fs, dir, type, device, &n);
    if (r == 0) {
        *file = n->node_number;
        dir_put(fs, &place, name, len, n->node_number, dir_type(fs, n));
        node_name(n, dir);
        dir->node_inode.i_links_count += type == FILE_DIRECTORY;
        dir_changed(fs, dir);
        node_put(n);
    }
    place_put(&place);
    return r;
}

static int create(struct ext2 *fs, uint32_t number, const char *name,
                  uint32_t type, uint32_t device, uint32_t *file)
{
    struct node *dir;
    int r = get_parent(fs, number, &dir);

    if (r < 0)
        return r;
    r = create_in(fs, dir, name, type, device, file);
    node_put(dir);
    return r;
}

int ext2_create(void *opaque, uint32_t dir, const char *name, uint32_t type,
                uint32_t device, uint32_t *file)
{
    int r = name_reserved(name) ? -EINVAL
                                : create(opaque, dir, name, type, device, file);

    if (again(opaque, r))
        r = create(opaque, dir, name, type, device, file);
    return r;
}

/* ---- link --------------------------------------------------------------- */

static int link_in(struct ext2 *fs, struct node *dir, const char *name,
                   struct node *n)
{
    uint32_t len = (uint32_t)strlen(name);
    struct place place;
    int r;

    if (node_is_dir(n))
        return -EPERM;
    if (n->node_inode.i_links_count == 0)
        return -ENOENT;
    if (n->node_inode.i_links_count >= EXT2_LINK_MAX)
        return -EMLINK;
    r = dir_room(fs, dir, name, len, &place);
    if (r < 0)
        return r;
    dir_put(fs, &place, name, len, n->node_number, dir_type(fs, n));
    place_put(&place);
    node_name(n, dir);
    n->node_inode.i_links_count++;
    node_changed(fs, n);
    dir_changed(fs, dir);
    return 0;
}

static int link(struct ext2 *fs, uint32_t number, const char *name,
                uint32_t file)
{
    struct node *dir, *n;
    int r = get_parent(fs, number, &dir);

    if (r < 0)
        return r;
    r = node_get(fs, file, &n);
    if (r == 0) {
        r = link_in(fs, dir, name, n);
        node_put(n);
    }
    node_put(dir);
    return r;
}

int ext2_link(void *opaque, uint32_t dir, const char *name, uint32_t file)
{
    int r = name_reserved(name) ? -EINVAL : link(opaque, dir, name, file);

    if (again(opaque, r))
        r = link(opaque, dir, name, file);
    return r;
}

/* ---- unlink, rmdir ------------------------------------------------------ */

/* The entry of a name of `file`, after pending edits of it are done. */
static int find_entry(struct ext2 *fs, struct node *dir, const char *name,
                      uint32_t file, struct place *place)
{
    int r = dir_find(fs, dir, name, (uint32_t)strlen(name), place);

    if (r <= 0)
        return r < 0 ? r : -ENOENT;
    r = place_entry(place)->d_inode == file ? 0 : -ENOENT;
    if (r == 0 && edit_at(fs, place->place_buffer, place->place_offset))
        r = epoch_commit(fs);
    if (r < 0)
        place_put(place);
    return r;
}

void dir_take(struct ext2 *fs, struct node *dir, struct place *place,
              bool at_once)
{
    if (at_once) {
        place_entry(place)->d_inode = 0;
        buffer_dirty(fs, place->place_buffer);
    } else {
        edit_add(fs, dir, place, 0, 0, EDIT_REMOVE);
    }
    dir->node_room = MIN(dir->node_room, place->place_block);
    dir_changed(fs, dir);
}

void node_drop_link(struct ext2 *fs, struct node *n)
{
    if (n->node_inode.i_links_count <= 1) {
        node_orphan(fs, n);
        return;
    }
    n->node_inode.i_links_count--;
    node_changed(fs, n);
}

static int unlink_file(struct ext2 *fs, struct node *dir, struct place *place,
                       struct node *n, uint32_t *links)
{
    if (node_is_dir(n))
        return -EISDIR;
    dir_take(fs, dir, place, n->node_unborn);
    node_drop_link(fs, n);
    *links = n->node_inode.i_links_count;
    return 0;
}

int dir_removable(struct ext2 *fs, struct node *n)
{
    int r;

    if (!node_is_dir(n))
        return -ENOTDIR;
    r = dir_empty(fs, n);
    return r > 0 ? 0 : r < 0 ? r : -ENOTEMPTY;
}

void dir_lost(struct node *dir)
{
    /* a damaged disk has fewer links than directories */
    dir->node_inode.i_links_count -= dir->node_inode.i_links_count > 2;
}

/* A directory that lost a subdirectory in this epoch must outlive it on
 * disk. */
static int remove_dir(struct ext2 *fs, struct node *dir, struct place *place,
                      struct node *n)
{
    int r = dir_removable(fs, n);

    if (r < 0)
        return r;
    if (n->node_lost_dir) {
        r = epoch_commit(fs);
        if (r < 0)
            return r;
    }
    dir_take(fs, dir, place, n->node_unborn);
    node_orphan(fs, n);
    dir_lost(dir);
    dir->node_lost_dir |= !n->node_unborn;
    return 0;
}

/* unlink if `links`, else rmdir. */
static int remove_name(struct ext2 *fs, uint32_t number, const char *name,
                       uint32_t file, uint32_t *links)
{
    struct node *dir, *n;
    struct place place;
    int r = get_parent(fs, number, &dir);

    if (r < 0)
        return r;
    r = find_entry(fs, dir, name, file, &place);
    if (r == 0) {
        r = node_get(fs, file, &n);
        if (r == 0) {
            r = links != NULL ? unlink_file(fs, dir, &place, n, links)
                              : remove_dir(fs, dir, &place, n);
            node_put(n);
        }
        place_put(&place);
    }
    node_put(dir);
    return r;
}

int ext2_unlink(void *opaque, uint32_t dir, const char *name, uint32_t file,
                uint32_t *links)
{
    return remove_name(opaque, dir, name, file, links);
}

int ext2_rmdir(void *opaque, uint32_t dir, const char *name, uint32_t file)
{
    return remove_name(opaque, dir, name, file, NULL);
}
