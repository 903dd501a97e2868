/*
 * Space for new entries in directories.
 *
 * A disk writes a sector entirely or not at all, but a block is several
 * sectors, and power may fail in between. So an entry is placed only where the
 * change, to its header and perhaps to the length of the entry before it, is
 * within one sector. Directories created here are laid out for that: the
 * entries of each sector end at its end.
 *
 *     |. .. abc          |free               |free               |free     |
 *     0                  512                 1024                1536   2048
 *
 * In directories created by other systems, free space may span several sectors,
 * with one header at its beginning. It is split first: new headers are written
 * inside the free space, and only when they are on disk is the header before
 * them shortened.
 */
#include "kernel/lib/string.h"
#include "user/servers/ext2/impl.h"

#define SECTOR 512u

static struct ext2_dirent *entry(struct buffer *b, uint32_t at)
{
    return (struct ext2_dirent *)(b->buf_data + at);
}

/* Bytes of an entry in use: all of them, if it is being removed. */
static uint32_t in_use(const struct ext2 *fs, struct buffer *b, uint32_t at)
{
    const struct ext2_dirent *d = entry(b, at);

    if (d->d_inode != 0)
        return DIRENT_SIZE(d->d_name_len);
    return edit_at(fs, b, at) ? d->d_rec_len : 0;
}

static void free_entry(struct buffer *b, uint32_t at, uint32_t size)
{
    struct ext2_dirent *d = entry(b, at);

    d->d_inode = 0;
    d->d_rec_len = (uint16_t)size;
    d->d_name_len = 0;
    d->d_file_type = 0;
}

/* Joins a free entry with the free ones after it in its sector. */
static void join(const struct ext2 *fs, struct buffer *b, uint32_t at)
{
    struct ext2_dirent *d = entry(b, at);
    uint32_t next = at + d->d_rec_len;

    while (next < fs->fs_block_size && next / SECTOR == at / SECTOR &&
           in_use(fs, b, next) == 0) {
        d->d_rec_len += entry(b, next)->d_rec_len;
        next = at + d->d_rec_len;
    }
}

/* ---- splitting free space ----------------------------------------------- */

static uint32_t sector_end(uint32_t at)
{
    return (at / SECTOR + 1) * SECTOR;
}

/* The position of the first new header. A free entry before that stays long
 * enough for its own header: an entry by another system may begin 4 or 8 bytes
 * before a sector's end. */
static uint32_t first_piece(uint32_t at, uint32_t used)
{
    uint32_t start = at + MAX(used, DIRENT_MIN);

    if (start / SECTOR == at / SECTOR || sector_end(start) - start < DIRENT_MIN)
        return sector_end(start);
    return start;
}

/* Splits the free space after the `used` bytes of an entry into pieces that end
 * with their sectors; writes the headers if requested. Returns the size of the
 * largest piece. */
static uint32_t pieces(struct buffer *b, uint32_t at, uint32_t used, bool write)
{
    uint32_t end = at + entry(b, at)->d_rec_len;
    uint32_t largest = 0;
    uint32_t next;

    for (uint32_t p = first_piece(at, used); p + DIRENT_MIN <= end; p = next) {
        next = MIN(sector_end(p), end);
        if (end - next < DIRENT_MIN)
            next = end;
        if (write)
            free_entry(b, p, next - p);
        largest = MAX(largest, next - p);
    }
    return largest;
}

static int cut_up(struct ext2 *fs, struct buffer *b, uint32_t at)
{
    uint32_t used = in_use(fs, b, at);
    uint32_t size = first_piece(at, used) - at;
    int r = epoch_commit(fs);

    if (r < 0)
        return r;
    pieces(b, at, used, true);
    buffer_dirty(fs, b);
    r = buffer_write(fs, b);
    if (r == 0)
        r = disk_flush(fs);
    if (r < 0)
        return r;
    if (used == 0)
        free_entry(b, at, size); /* its old name may be longer */
    else
        entry(b, at)->d_rec_len = (uint16_t)size;
    buffer_dirty(fs, b);
    return 0;
}

/* ---- finding space ------------------------------------------------------ */

/* The offset of an entry of the block that has `need` bytes of room in or after
 * it, within one sector, or the block's size. *foreign: one that must be split
 * first. If a sector of the block is given, only there. */
static uint32_t search(const struct ext2 *fs, struct buffer *b, uint32_t need,
                       uint32_t sector, uint32_t *foreign)
{
    *foreign = fs->fs_block_size;
    for (uint32_t at = 0; at < fs->fs_block_size;
         at += entry(b, at)->d_rec_len) {
        uint32_t used = in_use(fs, b, at);
        uint32_t room;

        if (sector * SECTOR < fs->fs_block_size && at / SECTOR != sector)
            continue;
        if (used == 0)
            join(fs, b, at);
        room = entry(b, at)->d_rec_len - used;
        if (room >= need && (at + used + need - 1) / SECTOR == at / SECTOR)
            return at;
        if (room >= need && pieces(b, at, used, false) >= need)
            *foreign = at;
    }
    return fs->fs_block_size;
}

static int room_in_block(struct ext2 *fs, struct buffer *b, uint32_t need,
                         uint32_t *at)
{
    uint32_t foreign;
    int r;

    *at = search(fs, b, need, UINT32_MAX / SECTOR, &foreign);
    if (*at < fs->fs_block_size)
        return 1;
    if (foreign == fs->fs_block_size)
        return 0;
    r = cut_up(fs, b, foreign);
    if (r < 0)
        return r;
    *at = search(fs, b, need, UINT32_MAX / SECTOR, &foreign);
    return *at < fs->fs_block_size;
}

/* Appends one free block. */
static int grow(struct ext2 *fs, struct node *dir, struct place *place)
{
    uint32_t index = dir->node_inode.i_size / fs->fs_block_size;
    uint32_t block;
    bool made;
    int r;

    if (dir->node_inode.i_size > map_size_max(fs) - fs->fs_block_size)
        return -EFBIG;
    r = map_make(fs, dir, index, &block, &made);
    if (r == 0 && !made)
        r = ext2_damage(fs, "blocks after the end of directory",
                        dir->node_number);
    if (r == 0)
        r = buffer_get(fs, block, BUFFER_DIR, &place->place_buffer);
    if (r < 0)
        return r;
    for (uint32_t at = 0; at < fs->fs_block_size; at += SECTOR)
        free_entry(place->place_buffer, at, SECTOR);
    place->place_buffer->buf_owner = dir->node_number;
    place->place_buffer->buf_checked = true;
    place->place_offset = 0;
    place->place_block = index;
    dir->node_inode.i_size += fs->fs_block_size;
    dir->node_grew = true;
    dir->node_room = index;
    node_dirty(fs, dir);
    return 0;
}

int dir_no_index(struct ext2 *fs, struct node *dir)
{
    if (!(dir->node_inode.i_flags & EXT2_INDEX_FL))
        return 0;
    dir->node_inode.i_flags &= ~EXT2_INDEX_FL;
    node_dirty(fs, dir);
    return epoch_commit(fs);
}

int dir_room(struct ext2 *fs, struct node *dir, const char *name, uint32_t len,
             struct place *place)
{
    uint32_t n = dir->node_inode.i_size / fs->fs_block_size;
    int r = dir_no_index(fs, dir);

    if (r == 0 && edit_of_name(fs, dir->node_number, name, len))
        r = epoch_commit(fs);
    for (uint32_t i = dir->node_room; i < n && r == 0; i++) {
        r = dir_block(fs, dir, i, &place->place_buffer);
        if (r < 0)
            return r;
        r = room_in_block(fs, place->place_buffer, DIRENT_SIZE(len),
                          &place->place_offset);
        place->place_block = i;
        if (r == 1) {
            dir->node_room = i;
            return 0;
        }
        place_put(place);
    }
    return r < 0 ? r : grow(fs, dir, place);
}

bool dir_room_beside(struct ext2 *fs, struct place *place, uint32_t len)
{
    uint32_t foreign;
    uint32_t at = search(fs, place->place_buffer, DIRENT_SIZE(len),
                         place->place_offset / SECTOR, &foreign);

    place->place_offset = at;
    return at < fs->fs_block_size;
}

bool dir_fits(const struct place *place, uint32_t len)
{
    uint32_t last = place->place_offset + DIRENT_SIZE(len) - 1;

    return DIRENT_SIZE(len) <= place_entry(place)->d_rec_len &&
           last / SECTOR == place->place_offset / SECTOR;
}

/* ---- storing entries ---------------------------------------------------- */

void dir_put(struct ext2 *fs, struct place *place, const char *name,
             uint32_t len, uint32_t number, uint8_t type)
{
    struct ext2_dirent *d = place_entry(place);
    uint32_t used = d->d_inode != 0 ? DIRENT_SIZE(d->d_name_len) : 0;
    uint32_t room = d->d_rec_len - used;

    if (used > 0) {
        d->d_rec_len = (uint16_t)used;
        place->place_offset += used;
        d = place_entry(place);
        d->d_rec_len = (uint16_t)room;
    }
    d->d_name_len = (uint8_t)len;
    d->d_file_type = type;
    d->d_inode = number;
    memset(d->d_name, 0, DIRENT_SIZE(len) - DIRENT_HEAD);
    memcpy(d->d_name, name, len);
    buffer_dirty(fs, place->place_buffer);
}

int dir_begin(struct ext2 *fs, struct node *dir, uint32_t parent)
{
    uint8_t type = fs->fs_filetype ? TYPE_DIRECTORY : TYPE_UNKNOWN;
    struct place place;
    int r = grow(fs, dir, &place);

    if (r < 0)
        return r;
    dir_put(fs, &place, ".", 1, dir->node_number, type);
    dir_put(fs, &place, "..", 2, parent, type);
    place_put(&place);
    return 0;
}
