/*
 * Directories: files of consecutive entries that fill each block.
 *
 *     | inode | 20, 3, 1 | "abc" … | inode | 492, 2, 2 | "de" … free … |
 *              │  │  └ type         └ next entry: end of the block, or of the
 *              │  └ bytes of name     sector (dir_room.c)
 *              └ to the next entry
 *
 * All entries of a block are checked when it is read into memory, not again
 * later.
 */
#include "kernel/lib/string.h"
#include "user/servers/ext2/impl.h"

struct ext2_dirent *place_entry(const struct place *p)
{
    return (struct ext2_dirent *)(p->place_buffer->buf_data + p->place_offset);
}

uint8_t dir_type(const struct ext2 *fs, const struct node *n)
{
    if (!fs->fs_filetype)
        return TYPE_UNKNOWN;
    switch (node_type(n)) {
    case MODE_REGULAR:
        return TYPE_REGULAR;
    case MODE_DIRECTORY:
        return TYPE_DIRECTORY;
    case MODE_CHAR:
        return TYPE_CHAR;
    case MODE_BLOCK:
        return TYPE_BLOCK;
    case MODE_FIFO:
        return TYPE_FIFO;
    case MODE_SOCKET:
        return TYPE_SOCKET;
    default:
        return TYPE_LINK;
    }
}

/* ---- checking ----------------------------------------------------------- */

static bool name_good(const struct ext2_dirent *d)
{
    for (uint32_t i = 0; i < d->d_name_len; i++) {
        if (d->d_name[i] == 0 || d->d_name[i] == '/')
            return false;
    }
    return d->d_name_len > 0;
}

static bool entries_good(const struct ext2 *fs, const uint8_t *data)
{
    uint32_t at = 0;

    while (at < fs->fs_block_size) {
        const struct ext2_dirent *d = (const void *)(data + at);

        if (fs->fs_block_size - at < DIRENT_MIN || d->d_rec_len < DIRENT_MIN ||
            d->d_rec_len % 4 != 0 || d->d_rec_len > fs->fs_block_size - at ||
            DIRENT_HEAD + d->d_name_len > d->d_rec_len)
            return false;
        if (d->d_inode > fs->fs_super.s_inodes_count ||
            (d->d_inode != 0 && !name_good(d)))
            return false;
        at += d->d_rec_len;
    }
    return true;
}

int dir_block(struct ext2 *fs, struct node *dir, uint32_t index,
              struct buffer **out)
{
    uint32_t block;
    int r = map_get(fs, dir, index, &block);

    if (r < 0)
        return r;
    if (block == 0)
        return ext2_damage(fs, "a block is missing in directory",
                           dir->node_number);
    r = buffer_get(fs, block, BUFFER_DIR, out);
    if (r < 0)
        return r;
    (*out)->buf_owner = dir->node_number;
    if ((*out)->buf_checked)
        return 0;
    if (!entries_good(fs, (*out)->buf_data)) {
        buffer_put(*out);
        return ext2_damage(fs, "wrong entries in directory", dir->node_number);
    }
    (*out)->buf_checked = true;
    return 0;
}

/* ---- lookup ------------------------------------------------------------- */

/* The entry to search for: by name or, if that is NULL, by number. */
struct wanted {
    const char *want_name;
    uint32_t want_len;
    uint32_t want_number;
};

bool dir_dots(const struct ext2_dirent *d)
{
    return d->d_name[0] == '.' &&
           (d->d_name_len == 1 || (d->d_name_len == 2 && d->d_name[1] == '.'));
}

static bool matches(const struct ext2_dirent *d, const struct wanted *want)
{
    if (want->want_name == NULL)
        return d->d_inode == want->want_number && !dir_dots(d);
    return d->d_inode != 0 && d->d_name_len == want->want_len &&
           d->d_name[0] == want->want_name[0] &&
           memcmp(d->d_name, want->want_name, want->want_len) == 0;
}

/* The offset of the entry in a block, or the block's size. */
static uint32_t find_in(const struct ext2 *fs, const uint8_t *data,
                        const struct wanted *want)
{
    uint32_t at = 0;

    while (at < fs->fs_block_size) {
        const struct ext2_dirent *d = (const void *)(data + at);

        if (matches(d, want))
            return at;
        at += d->d_rec_len;
    }
    return at;
}

/* Searches from the block of the last match, once around: lookups often come in
 * directory order. */
static int find(struct ext2 *fs, struct node *dir, const struct wanted *want,
                struct place *place)
{
    uint32_t n = dir->node_inode.i_size / fs->fs_block_size;
    uint32_t index = dir->node_found < n ? dir->node_found : 0;

    for (uint32_t i = 0; i < n; i++, index = index + 1 < n ? index + 1 : 0) {
        int r = dir_block(fs, dir, index, &place->place_buffer);

        if (r < 0)
            return r;
        place->place_offset = find_in(fs, place->place_buffer->buf_data, want);
        place->place_block = index;
        if (place->place_offset < fs->fs_block_size) {
            dir->node_found = index;
            return 1;
        }
        place_put(place);
    }
    return 0;
}

int dir_find(struct ext2 *fs, struct node *dir, const char *name, uint32_t len,
             struct place *place)
{
    struct wanted want = {.want_name = name, .want_len = len};

    return find(fs, dir, &want, place);
}

int dir_find_number(struct ext2 *fs, struct node *dir, uint32_t number,
                    struct place *place)
{
    struct wanted want = {.want_number = number};

    return find(fs, dir, &want, place);
}

static bool block_empty(const struct ext2 *fs, const uint8_t *data)
{
    const struct ext2_dirent *d;

    for (uint32_t at = 0; at < fs->fs_block_size; at += d->d_rec_len) {
        d = (const void *)(data + at);
        if (d->d_inode != 0 && !dir_dots(d))
            return false;
    }
    return true;
}

int dir_empty(struct ext2 *fs, struct node *dir)
{
    uint32_t n = dir->node_inode.i_size / fs->fs_block_size;

    for (uint32_t i = 0; i < n; i++) {
        struct buffer *b;
        bool empty;
        int r = dir_block(fs, dir, i, &b);

        if (r < 0)
            return r;
        empty = block_empty(fs, b->buf_data);
        buffer_put(b);
        if (!empty)
            return 0;
    }
    return 1;
}

/* ---- operations --------------------------------------------------------- */

static int lookup(struct ext2 *fs, struct node *dir, const char *name,
                  uint32_t *file)
{
    struct place place;
    struct node *n;
    int r = dir_find(fs, dir, name, (uint32_t)strlen(name), &place);

    if (r <= 0)
        return r < 0 ? r : -ENOENT;
    *file = place_entry(&place)->d_inode;
    r = node_get(fs, *file, &n);
    if (r == 0)
        node_put(n);
    else if (r == -ENOENT) /* a crash may leave it; a repair removes it */
        r = ext2_damage(fs, "no file for a name in directory",
                        dir->node_number);
    place_put(&place);
    return r;
}

int ext2_lookup(void *opaque, uint32_t number, const char *name, uint32_t *file)
{
    struct ext2 *fs = opaque;
    struct node *dir;
    int r = node_get_dir(fs, number, &dir);

    if (r < 0)
        return r;
    r = lookup(fs, dir, name, file);
    node_put(dir);
    return r;
}

static int name_in(struct ext2 *fs, uint32_t parent, uint32_t number,
                   char name[NAME_MAX + 1])
{
    const struct ext2_dirent *d;
    struct place place;
    struct node *dir;
    int r = node_get_dir(fs, parent, &dir);

    if (r < 0)
        return r;
    r = dir_find_number(fs, dir, number, &place);
    node_put(dir);
    if (r <= 0)
        return r < 0 ? r : -ENOENT;
    d = place_entry(&place);
    r = d->d_name_len <= NAME_MAX ? 0 : -ENAMETOOLONG;
    if (r == 0) {
        memcpy(name, d->d_name, d->d_name_len);
        name[d->d_name_len] = 0;
    }
    place_put(&place);
    return r;
}

int ext2_name(void *opaque, uint32_t dir, char name[NAME_MAX + 1])
{
    uint32_t parent;
    int r = ext2_lookup(opaque, dir, "..", &parent);

    return r < 0 ? r : name_in(opaque, parent, dir, name);
}

/* ---- listing ------------------------------------------------------------ */

static uint32_t file_type_of(uint8_t type)
{
    return type == TYPE_DIRECTORY ? FILE_DIRECTORY
           : type == TYPE_REGULAR ? FILE_REGULAR
                                  : FILE_DEVICE;
}

/* Without types in directories, reads the inode. */
static uint32_t entry_type(struct ext2 *fs, const struct ext2_dirent *d)
{
    struct node *n;
    uint32_t type = FILE_REGULAR;

    if (fs->fs_filetype)
        return file_type_of(d->d_file_type);
    if (node_get(fs, d->d_inode, &n) == 0) {
        type = node_is_dir(n)                 ? FILE_DIRECTORY
               : node_type(n) == MODE_REGULAR ? FILE_REGULAR
                                              : FILE_DEVICE;
        node_put(n);
    }
    return type;
}

/* Stores the entries of a block from offset *at on, and moves *at to the first
 * entry that did not fit, or to the block's end. *at may be inside an entry if
 * entries were joined meanwhile. Skips names that programs cannot use. */
static uint32_t list_block(struct ext2 *fs, const uint8_t *data, uint32_t *at,
                           char *buf, uint32_t room, bool *full)
{
    const struct ext2_dirent *d;
    uint32_t done = 0;

    for (uint32_t i = 0; i < fs->fs_block_size && !*full; i += d->d_rec_len) {
        uint32_t size = 0;

        d = (const void *)(data + i);
        if (i < *at)
            continue;
        if (d->d_inode != 0 && d->d_name_len <= NAME_MAX) {
            size = (uint32_t)dirent_store(buf + done, room - done, d->d_inode,
                                          entry_type(fs, d), d->d_name,
                                          d->d_name_len);
            *full = size == 0;
        }
        done += size;
        if (*full)
            *at = i;
    }
    if (!*full)
        *at = fs->fs_block_size;
    return done;
}

static ssize_t list(struct ext2 *fs, struct node *dir, uint32_t *offset,
                    char *buf, uint32_t n)
{
    uint32_t done = 0;
    bool full = false;

    while (*offset < dir->node_inode.i_size && !full) {
        uint32_t index = *offset / fs->fs_block_size;
        uint32_t at = *offset % fs->fs_block_size;
        struct buffer *b;
        int r = dir_block(fs, dir, index, &b);

        if (r < 0)
            return done > 0 ? (ssize_t)done : r;
        done += list_block(fs, b->buf_data, &at, buf + done, n - done, &full);
        buffer_put(b);
        *offset = index * fs->fs_block_size + at;
    }
    return full && done == 0 ? -EINVAL : (ssize_t)done;
}

ssize_t ext2_getdents(void *opaque, uint32_t number, uint32_t *offset,
                      void *buf, size_t n)
{
    struct ext2 *fs = opaque;
    struct node *dir;
    ssize_t r = node_get_dir(fs, number, &dir);

    if (r < 0)
        return r;
    r = 0; /* a removed directory has no entries, not even "." */
    if (dir->node_inode.i_links_count > 0)
        r = list(fs, dir, offset, buf, (uint32_t)n);
    node_put(dir);
    return r;
}
