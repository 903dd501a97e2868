/*
 * Contents of files: read, write, truncate.
 *
 * A file that gets shorter has zeroes after its end in its last block, as other
 * systems expect. A power cut may leave other bytes there, because contents may
 * be written before the size. So a file is cleared there before it grows.
 */
#include "kernel/lib/string.h"
#include "user/servers/ext2/impl.h"

/* ---- attributes --------------------------------------------------------- */

static uint32_t device_of(const struct ext2_inode *inode)
{
    return inode->i_block[0] != 0 ? inode->i_block[0] : inode->i_block[1];
}

/* A file that is neither regular nor directory is reported as a device; only
 * devices have a number. */
static void attributes(const struct node *n, struct fs_attr *out)
{
    const struct ext2_inode *inode = &n->node_inode;
    uint16_t type = node_type(n);

    memset(out, 0, sizeof(*out));
    out->attr_type = type == MODE_DIRECTORY ? FILE_DIRECTORY
                     : type == MODE_REGULAR ? FILE_REGULAR
                                            : FILE_DEVICE;
    out->attr_nlink = inode->i_links_count;
    out->attr_size = inode->i_size;
    out->attr_blocks = (inode->i_blocks + 7) / 8;
    if (type == MODE_REGULAR && inode->i_size_high != 0)
        out->attr_size = UINT32_MAX;
    if (type == MODE_CHAR)
        out->attr_device = device_of(inode);
}

int ext2_inode(void *opaque, uint32_t file, struct fs_attr *out)
{
    struct node *n;
    int r = node_get(opaque, file, &n);

    if (r < 0)
        return r;
    attributes(n, out);
    node_put(n);
    return 0;
}

/* ---- reading ------------------------------------------------------------ */

/* The number of blocks, from `index` at `block` on, that are consecutive on
 * disk and not in memory; at most n. */
static uint32_t run_ahead(struct ext2 *fs, struct node *n, uint32_t index,
                          uint32_t block, uint32_t most)
{
    uint32_t run = 0;
    uint32_t at;

    while (run < most && buffer_find(fs, block + run) == NULL) {
        run++;
        if (map_get(fs, n, index + run, &at) < 0 || at != block + run)
            break;
    }
    return run;
}

/* Before a block is read: reads it and the following ones in one request, as
 * far as requested, or further if the caller reads sequentially. */
static void ahead(struct ext2 *fs, struct node *n, uint32_t index,
                  uint32_t block, uint32_t bytes)
{
    uint32_t end = (n->node_inode.i_size - 1) / fs->fs_block_size + 1;
    uint32_t most = (bytes - 1) / fs->fs_block_size + 1;
    uint32_t run;

    if (index * fs->fs_block_size <= n->node_next_read)
        most = RUN_BYTES / fs->fs_block_size;
    most = MIN(most, RUN_BYTES / fs->fs_block_size);
    run = run_ahead(fs, n, index, block, MIN(most, end - index));
    if (run > 1)
        buffer_ahead(fs, block, run);
}

/* One block, or the requested part of it. */
static int read_block(struct ext2 *fs, struct node *n, uint32_t offset,
                      uint8_t *buf, uint32_t bytes, uint32_t more)
{
    uint32_t index = offset / fs->fs_block_size;
    struct buffer *b;
    uint32_t block;
    int r = map_get(fs, n, index, &block);

    if (r < 0)
        return r;
    if (block == 0) {
        memset(buf, 0, bytes);
        return 0;
    }
    if (buffer_find(fs, block) == NULL)
        ahead(fs, n, index, block, more);
    r = buffer_get(fs, block, BUFFER_DATA, &b);
    if (r < 0)
        return r;
    memcpy(buf, b->buf_data + offset % fs->fs_block_size, bytes);
    buffer_put(b);
    return 0;
}

static ssize_t read_all(struct ext2 *fs, struct node *n, uint32_t offset,
                        uint8_t *buf, uint32_t bytes)
{
    uint32_t done = 0;

    if (offset >= n->node_inode.i_size)
        return 0;
    bytes = MIN(bytes, n->node_inode.i_size - offset);
    while (done < bytes) {
        uint32_t at = offset + done;
        uint32_t part =
            MIN(fs->fs_block_size - at % fs->fs_block_size, bytes - done);
        int r = read_block(fs, n, at, buf + done, part, bytes - done);

        if (r < 0)
            return done > 0 ? (ssize_t)done : r;
        done += part;
    }
    n->node_next_read = offset + done;
    return (ssize_t)done;
}

ssize_t ext2_read(void *opaque, uint32_t file, uint32_t offset, void *buf,
                  size_t n)
{
    struct ext2 *fs = opaque;
    struct node *node;
    ssize_t r = node_get_file(fs, file, &node);

    if (r < 0)
        return r;
    r = read_all(fs, node, offset, buf, (uint32_t)n);
    node_put(node);
    return r;
}

/* ---- writing ------------------------------------------------------------ */

/* Clears from `size` to the end of its block. */
static int clear_tail(struct ext2 *fs, struct node *n, uint32_t size)
{
    uint32_t in_block = size % fs->fs_block_size;
    struct buffer *b;
    uint32_t block;
    int r =
        in_block == 0 ? 0 : map_get(fs, n, size / fs->fs_block_size, &block);

    if (r < 0 || in_block == 0 || block == 0)
        return r;
    r = buffer_get(fs, block, BUFFER_DATA, &b);
    if (r < 0)
        return r;
    memset(b->buf_data + in_block, 0, fs->fs_block_size - in_block);
    b->buf_owner = n->node_number;
    buffer_dirty(fs, b);
    buffer_put(b);
    return 0;
}

/* The buffer for `part` bytes of a block: with its contents, unless all of them
 * will be overwritten. */
static int write_buffer(struct ext2 *fs, struct node *n, uint32_t index,
                        uint32_t part, struct buffer **out)
{
    uint32_t block;
    bool made;
    int r = map_make(fs, n, index, &block, &made);

    if (r < 0)
        return r;
    if (made)
        return buffer_new(fs, block, BUFFER_DATA, out);
    if (part == fs->fs_block_size)
        return buffer_take(fs, block, BUFFER_DATA, out);
    return buffer_get(fs, block, BUFFER_DATA, out);
}

static int write_block(struct ext2 *fs, struct node *n, uint32_t offset,
                       const uint8_t *buf, uint32_t part)
{
    struct buffer *b;
    int r = write_buffer(fs, n, offset / fs->fs_block_size, part, &b);

    if (r < 0)
        return r;
    memcpy(b->buf_data + offset % fs->fs_block_size, buf, part);
    b->buf_owner = n->node_number;
    buffer_dirty(fs, b);
    buffer_put(b);
    if (offset + part > n->node_inode.i_size)
        n->node_inode.i_size = offset + part;
    return 0;
}

static ssize_t write_all(struct ext2 *fs, struct node *n, uint32_t offset,
                         const uint8_t *buf, uint32_t bytes)
{
    uint32_t most = map_size_max(fs);
    uint32_t done = 0;
    int r = 0;

    if (bytes > 0 && (offset >= most || n->node_inode.i_size > most))
        return -EFBIG;
    bytes = MIN(bytes, most - offset);
    if (offset > n->node_inode.i_size)
        r = clear_tail(fs, n, n->node_inode.i_size);
    while (done < bytes && r == 0) {
        uint32_t at = offset + done;
        uint32_t part =
            MIN(fs->fs_block_size - at % fs->fs_block_size, bytes - done);

        r = write_block(fs, n, at, buf + done, part);
        if (r == 0)
            done += part;
    }
    n->node_inode.i_mtime = ext2_now(fs);
    node_dirty(fs, n);
    return done > 0 ? (ssize_t)done : r;
}

static ssize_t write_once(struct ext2 *fs, uint32_t file, uint32_t offset,
                          const void *buf, size_t n, uint32_t *size)
{
    struct node *node;
    ssize_t r = epoch_begin(fs);

    if (r == 0)
        r = node_get_file(fs, file, &node);
    if (r < 0)
        return r;
    r = write_all(fs, node, offset, buf, (uint32_t)n);
    *size = node->node_inode.i_size;
    node_put(node);
    return r;
}

ssize_t ext2_write(void *opaque, uint32_t file, uint32_t offset,
                   const void *buf, size_t n, uint32_t *size)
{
    struct ext2 *fs = opaque;
    ssize_t r = write_once(fs, file, offset, buf, n, size);

    if (r == -ENOSPC && fs->fs_deferred > 0 && epoch_commit(fs) == 0)
        r = write_once(fs, file, offset, buf, n, size);
    return r;
}

/* ---- truncating --------------------------------------------------------- */

static int resize(struct ext2 *fs, struct node *n, uint32_t size)
{
    uint32_t end = MIN(size, n->node_inode.i_size);
    int r;

    if (size > map_size_max(fs))
        return -EFBIG;
    r = clear_tail(fs, n, end);
    if (r == 0 && size == end)
        r = map_cut(fs, n, (size + fs->fs_block_size - 1) / fs->fs_block_size);
    if (r < 0)
        return r;
    n->node_inode.i_size = size;
    n->node_inode.i_mtime = ext2_now(fs);
    n->node_inode.i_ctime = n->node_inode.i_mtime;
    node_dirty(fs, n);
    return 0;
}

int ext2_truncate(void *opaque, uint32_t file, uint32_t size)
{
    struct ext2 *fs = opaque;
    struct node *n;
    int r = epoch_begin(fs);

    if (r == 0)
        r = node_get_file(fs, file, &n);
    if (r < 0)
        return r;
    r = resize(fs, n, size);
    node_put(n);
    return r;
}
