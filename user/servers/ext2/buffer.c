/*
 * Blocks in memory, and access to the disk.
 *
 * There is a fixed number of buffers; the least recently used is replaced when
 * another block is needed. File contents may be written at any time, and are,
 * in long runs, when all replaceable buffers are dirty. So are blocks of
 * inodes: they get dirty only in the step of a commit that writes them. All
 * other blocks wait for commit.c; epoch_begin ensures that they are at most
 * half of all.
 *
 * Buffers with buf_refs are in use and are not replaced.
 */
#include "kernel/lib/string.h"
#include "user/lib/stdlib.h"
#include "user/servers/ext2/impl.h"

#define BUFFERS_MIN 64u

int disk_read(struct ext2 *fs, uint32_t sector, uint32_t n, void *buf)
{
    int r = fs->fs_disk.disk_read(fs->fs_disk.disk_arg, sector, n, buf);

    fs->fs_counts.count_reads++;
    fs->fs_counts.count_read_sectors += n;
    fs->fs_counts.count_errors += r < 0;
    return r < 0 ? -EIO : 0;
}

int disk_failed(struct ext2 *fs)
{
    if (fs->fs_failed)
        return -EIO;
    fs->fs_failed = true;
    fs->fs_read_only = "the disk cannot be written";
    fs->fs_counts.count_errors++;
    fs->fs_disk.disk_say(fs->fs_disk.disk_arg,
                         "the disk cannot be written: read-only from now on");
    return -EIO;
}

int disk_write(struct ext2 *fs, uint32_t sector, uint32_t n, const void *buf)
{
    if (fs->fs_failed)
        return -EIO;
    fs->fs_counts.count_writes++;
    fs->fs_counts.count_write_sectors += n;
    if (fs->fs_disk.disk_write(fs->fs_disk.disk_arg, sector, n, buf) < 0)
        return disk_failed(fs);
    fs->fs_unflushed = true;
    return 0;
}

int disk_flush(struct ext2 *fs)
{
    if (fs->fs_failed)
        return -EIO;
    fs->fs_counts.count_flushes++;
    if (fs->fs_disk.disk_flush(fs->fs_disk.disk_arg) < 0)
        return disk_failed(fs);
    fs->fs_unflushed = false;
    return 0;
}

/* ---- lookup ------------------------------------------------------------- */

static struct buffer **chain(const struct ext2 *fs, uint32_t block)
{
    return &fs->fs_hash[block % fs->fs_buffers];
}

struct buffer *buffer_find(const struct ext2 *fs, uint32_t block)
{
    struct buffer *b = *chain(fs, block);

    while (b != NULL && b->buf_block != block)
        b = b->buf_next;
    return b;
}

static void unhash(struct ext2 *fs, struct buffer *b)
{
    struct buffer **at = chain(fs, b->buf_block);

    while (*at != b)
        at = &(*at)->buf_next;
    *at = b->buf_next;
    b->buf_block = 0;
}

static void clean(struct ext2 *fs, struct buffer *b)
{
    if (b->buf_dirty && b->buf_kind != BUFFER_DATA)
        fs->fs_dirty_meta--;
    b->buf_dirty = false;
    b->buf_mark = false;
}

static void used(struct ext2 *fs, struct buffer *b)
{
    list_remove(&b->buf_lru);
    list_insert_before(&fs->fs_lru, &b->buf_lru);
}

/* A buffer that can hold another block; its old contents are dropped. Buffers
 * that must stay move to the young end of the list. */
static struct buffer *oldest(struct ext2 *fs)
{
    for (uint32_t i = 0; i < fs->fs_buffers; i++) {
        struct buffer *b = list_entry(fs->fs_lru.next, struct buffer, buf_lru);

        if (b->buf_data == NULL)
            b->buf_data = malloc(fs->fs_block_size);
        if (b->buf_refs > 0 || b->buf_dirty || b->buf_data == NULL) {
            used(fs, b);
            continue;
        }
        if (b->buf_block != 0)
            unhash(fs, b);
        return b;
    }
    return NULL;
}

static struct buffer *victim(struct ext2 *fs)
{
    struct buffer *b = oldest(fs);

    if (b == NULL && buffer_write_kind(fs, BUFFER_DATA) == 0)
        b = oldest(fs);
    if (b == NULL && buffer_write_kind(fs, BUFFER_TABLE) == 0)
        b = oldest(fs);
    return b;
}

static void enter(struct ext2 *fs, struct buffer *b, uint32_t block,
                  enum buffer_kind kind)
{
    b->buf_block = block;
    b->buf_kind = (uint8_t)kind;
    b->buf_owner = 0;
    b->buf_fresh = false;
    b->buf_checked = false;
    b->buf_next = *chain(fs, block);
    *chain(fs, block) = b;
    used(fs, b);
}

/* The block's buffer, held; *found says whether it has the contents. A block
 * used as two different kinds is damage. */
static int take(struct ext2 *fs, uint32_t block, enum buffer_kind kind,
                struct buffer **out, bool *found)
{
    struct buffer *b = buffer_find(fs, block);

    *found = b != NULL;
    if (b != NULL) {
        if (b->buf_kind != kind && (b->buf_refs > 0 || b->buf_dirty))
            return ext2_damage(fs, "two uses of block", block);
        b->buf_checked &= b->buf_kind == kind;
        b->buf_kind = (uint8_t)kind;
        used(fs, b);
    } else {
        b = victim(fs);
        if (b == NULL)
            return fs->fs_failed ? -EIO : -ENOMEM;
        enter(fs, b, block, kind);
    }
    b->buf_refs++;
    *out = b;
    return 0;
}

int buffer_take(struct ext2 *fs, uint32_t block, enum buffer_kind kind,
                struct buffer **out)
{
    bool found;

    return take(fs, block, kind, out, &found);
}

int buffer_get(struct ext2 *fs, uint32_t block, enum buffer_kind kind,
               struct buffer **out)
{
    bool found;
    int r = take(fs, block, kind, out, &found);

    if (r < 0)
        return r;
    fs->fs_counts.count_hits += found;
    fs->fs_counts.count_misses += !found;
    if (found)
        return 0;
    r = disk_read(fs, block * fs->fs_block_sectors, fs->fs_block_sectors,
                  (*out)->buf_data);
    if (r < 0) {
        buffer_put(*out);
        unhash(fs, *out);
    }
    return r;
}

int buffer_new(struct ext2 *fs, uint32_t block, enum buffer_kind kind,
               struct buffer **out)
{
    int r = buffer_take(fs, block, kind, out);

    if (r < 0)
        return r;
    memset((*out)->buf_data, 0, fs->fs_block_size);
    buffer_dirty(fs, *out);
    (*out)->buf_fresh = true;
    return 0;
}

void buffer_put(struct buffer *b)
{
    b->buf_refs--;
}

void buffer_dirty(struct ext2 *fs, struct buffer *b)
{
    if (!b->buf_dirty && b->buf_kind != BUFFER_DATA)
        fs->fs_dirty_meta++;
    b->buf_dirty = true;
}

void buffer_forget(struct ext2 *fs, uint32_t block)
{
    struct buffer *b = buffer_find(fs, block);

    if (b == NULL || b->buf_refs > 0)
        return;
    clean(fs, b);
    unhash(fs, b);
    list_remove(&b->buf_lru);
    list_insert_after(&fs->fs_lru, &b->buf_lru);
}

/* ---- runs of blocks ----------------------------------------------------- */

void buffer_ahead(struct ext2 *fs, uint32_t block, uint32_t n)
{
    if (disk_read(fs, block * fs->fs_block_sectors, n * fs->fs_block_sectors,
                  fs->fs_ahead) < 0)
        return;
    fs->fs_counts.count_misses += n;
    for (uint32_t i = 0; i < n; i++) {
        struct buffer *b;

        if (buffer_find(fs, block + i) != NULL)
            continue;
        b = victim(fs);
        if (b == NULL)
            return;
        enter(fs, b, block + i, BUFFER_DATA);
        memcpy(b->buf_data, fs->fs_ahead + i * fs->fs_block_size,
               fs->fs_block_size);
    }
}

static int by_block(const void *a, const void *b)
{
    uint32_t x = (*(struct buffer *const *)a)->buf_block;
    uint32_t y = (*(struct buffer *const *)b)->buf_block;

    return x < y ? -1 : x > y;
}

/* How many of the n sorted buffers are consecutive on the disk. */
static uint32_t run_length(const struct ext2 *fs, struct buffer **at,
                           uint32_t n)
{
    uint32_t most = MIN(n, RUN_BYTES / fs->fs_block_size);
    uint32_t i = 1;

    while (i < most && at[i]->buf_block == at[0]->buf_block + i)
        i++;
    return i;
}

static int write_run(struct ext2 *fs, struct buffer **at, uint32_t n)
{
    int r;

    for (uint32_t i = 0; i < n; i++)
        memcpy(fs->fs_run + i * fs->fs_block_size, at[i]->buf_data,
               fs->fs_block_size);
    r = disk_write(fs, at[0]->buf_block * fs->fs_block_sectors,
                   n * fs->fs_block_sectors, fs->fs_run);
    for (uint32_t i = 0; r == 0 && i < n; i++)
        clean(fs, at[i]);
    return r;
}

int buffer_write(struct ext2 *fs, struct buffer *b)
{
    return write_run(fs, &b, 1);
}

int buffer_write_marked(struct ext2 *fs)
{
    uint32_t n = 0;
    uint32_t run;

    for (uint32_t i = 0; i < fs->fs_buffers; i++) {
        if (fs->fs_buffer[i].buf_mark && fs->fs_buffer[i].buf_dirty)
            fs->fs_sorted[n++] = &fs->fs_buffer[i];
    }
    qsort(fs->fs_sorted, n, sizeof(fs->fs_sorted[0]), by_block);
    for (uint32_t i = 0; i < n; i += run) {
        run = run_length(fs, fs->fs_sorted + i, n - i);
        if (write_run(fs, fs->fs_sorted + i, run) < 0)
            return -EIO;
    }
    return 0;
}

int buffer_write_kind(struct ext2 *fs, enum buffer_kind kind)
{
    for (uint32_t i = 0; i < fs->fs_buffers; i++)
        fs->fs_buffer[i].buf_mark = fs->fs_buffer[i].buf_kind == kind;
    return buffer_write_marked(fs);
}

/* ---- beginning and end -------------------------------------------------- */

int buffers_create(struct ext2 *fs, uint32_t bytes)
{
    uint32_t n = MAX(bytes / fs->fs_block_size, BUFFERS_MIN);

    list_init(&fs->fs_lru);
    fs->fs_buffer = calloc(n, sizeof(fs->fs_buffer[0]));
    fs->fs_hash = calloc(n, sizeof(fs->fs_hash[0]));
    fs->fs_sorted = calloc(n, sizeof(fs->fs_sorted[0]));
    fs->fs_run = malloc(RUN_BYTES);
    fs->fs_ahead = malloc(RUN_BYTES);
    if (fs->fs_buffer == NULL || fs->fs_hash == NULL || fs->fs_sorted == NULL ||
        fs->fs_run == NULL || fs->fs_ahead == NULL)
        return -ENOMEM;
    fs->fs_buffers = n;
    for (uint32_t i = 0; i < n; i++)
        list_insert_before(&fs->fs_lru, &fs->fs_buffer[i].buf_lru);
    return 0;
}

void buffers_destroy(struct ext2 *fs)
{
    for (uint32_t i = 0; i < fs->fs_buffers; i++)
        free(fs->fs_buffer[i].buf_data);
    free(fs->fs_buffer);
    free(fs->fs_hash);
    free(fs->fs_sorted);
    free(fs->fs_run);
    free(fs->fs_ahead);
}
