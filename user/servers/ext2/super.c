/*
 * Mounting: checks of the superblock, and the reaction to invalid contents of
 * the disk.
 */
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "user/lib/stdlib.h"
#include "user/servers/ext2/impl.h"

#define BLOCK_SHIFT_MAX 2u /* 4 KiB */

uint32_t ext2_now(struct ext2 *fs)
{
    return fs->fs_time - fs->fs_time_zero +
           fs->fs_disk.disk_seconds(fs->fs_disk.disk_arg);
}

int super_write(struct ext2 *fs)
{
    return disk_write(fs, EXT2_SUPER_SECTOR, EXT2_SUPER_SECTORS, &fs->fs_super);
}

int ext2_damage(struct ext2 *fs, const char *what, uint32_t number)
{
    char line[80];

    fs->fs_counts.count_errors++;
    if (fs->fs_super.s_state & STATE_ERRORS)
        return -EIO;
    snprintf(line, sizeof(line), "%s %u: read-only until e2fsck has been run",
             what, (unsigned)number);
    fs->fs_disk.disk_say(fs->fs_disk.disk_arg, line);
    fs->fs_super.s_state |= STATE_ERRORS;
    if (fs->fs_read_only == NULL) {
        fs->fs_read_only = "damaged: run e2fsck";
        if (super_write(fs) == 0)
            disk_flush(fs);
    }
    return -EIO;
}

/* ---- checking the superblock -------------------------------------------- */

static const char *check_sizes(const struct ext2_super *s, uint32_t block)
{
    if (s->s_log_frag_size != s->s_log_block_size ||
        s->s_frags_per_group != s->s_blocks_per_group)
        return "fragments are not supported";
    if (s->s_first_data_block != (block == 1024))
        return "wrong first block in the superblock";
    if (s->s_blocks_count <= s->s_first_data_block + 1)
        return "too few blocks in the superblock";
    if (s->s_blocks_per_group < 8 || s->s_blocks_per_group > 8 * block)
        return "wrong number of blocks per group in the superblock";
    if (s->s_inodes_per_group < 8 || s->s_inodes_per_group > 8 * block)
        return "wrong number of inodes per group in the superblock";
    return NULL;
}

static const char *check_inodes(const struct ext2_super *s, uint32_t groups,
                                uint32_t block)
{
    uint32_t size = s->s_rev_level > 0 ? s->s_inode_size : EXT2_INODE_OLD;
    uint32_t first = s->s_rev_level > 0 ? s->s_first_ino : EXT2_FIRST_OLD;

    if ((uint64_t)s->s_inodes_per_group * groups != s->s_inodes_count)
        return "wrong number of inodes in the superblock";
    if (size < EXT2_INODE_OLD || size > block || (size & (size - 1)) != 0)
        return "wrong size of inodes in the superblock";
    if (first < EXT2_FIRST_OLD || first > s->s_inodes_per_group)
        return "wrong first inode in the superblock";
    return NULL;
}

static uint32_t group_count(const struct ext2_super *s)
{
    uint32_t blocks = s->s_blocks_count - s->s_first_data_block;

    return (blocks - 1) / s->s_blocks_per_group + 1;
}

/* 0, or -EINVAL or -ENOSYS and the reason. */
static int super_check(const struct ext2_super *s, const char **why)
{
    uint32_t block;

    *why = "not an ext2 file system";
    if (s->s_magic != EXT2_MAGIC)
        return -EINVAL;
    *why = "unknown revision";
    if (s->s_rev_level > 1)
        return -ENOSYS;
    if (features_incompatible(s) != 0) {
        *why = features_describe(s);
        return -ENOSYS;
    }
    *why = "blocks larger than 4 KiB are not supported";
    if (s->s_log_block_size > BLOCK_SHIFT_MAX)
        return -ENOSYS;
    block = 1024u << s->s_log_block_size;
    *why = check_sizes(s, block);
    if (*why == NULL)
        *why = check_inodes(s, group_count(s), block);
    return *why == NULL ? 0 : -EINVAL;
}

/* The last group must have room for its own data; block_valid checks the
 * rest. */
static int layout(struct ext2 *fs, const char **why)
{
    const struct ext2_super *s = &fs->fs_super;
    uint32_t bytes;

    fs->fs_block_size = 1024u << s->s_log_block_size;
    fs->fs_block_sectors = fs->fs_block_size / 512;
    fs->fs_pointers = fs->fs_block_size / sizeof(uint32_t);
    fs->fs_inode_size = s->s_rev_level > 0 ? s->s_inode_size : EXT2_INODE_OLD;
    fs->fs_first_inode = s->s_rev_level > 0 ? s->s_first_ino : EXT2_FIRST_OLD;
    fs->fs_filetype =
        s->s_rev_level > 0 && (s->s_feature_incompat & INCOMPAT_FILETYPE);
    fs->fs_groups = group_count(s);
    bytes = fs->fs_groups * sizeof(struct ext2_group_desc);
    fs->fs_desc_blocks = (bytes - 1) / fs->fs_block_size + 1;
    *why = "the file system is larger than its disk";
    if (s->s_blocks_count > fs->fs_disk.disk_sectors / fs->fs_block_sectors)
        return -EINVAL;
    return 0;
}

static void choose_mode(struct ext2 *fs)
{
    const struct ext2_super *s = &fs->fs_super;

    if (features_read_only(s) != 0)
        fs->fs_read_only = features_describe(s);
    else if (s->s_state & STATE_ERRORS)
        fs->fs_read_only = "marked as damaged: run e2fsck";
    fs->fs_suspect = !(s->s_state & STATE_VALID);
}

/* ---- mounting ----------------------------------------------------------- */

static int read_all(struct ext2 *fs, uint32_t cache, const char **why)
{
    struct node *root;
    int r;

    *why = "cannot read the superblock";
    r = disk_read(fs, EXT2_SUPER_SECTOR, EXT2_SUPER_SECTORS, &fs->fs_super);
    if (r < 0)
        return r;
    r = super_check(&fs->fs_super, why);
    if (r == 0)
        r = layout(fs, why);
    if (r < 0)
        return r;
    choose_mode(fs);
    *why = "not enough memory for the blocks";
    r = buffers_create(fs, cache);
    if (r == 0)
        r = groups_read(fs, why);
    if (r == 0)
        r = journal_open(fs, why);
    if (r < 0)
        return r;
    *why = "invalid root directory";
    r = node_get_dir(fs, EXT2_ROOT, &root);
    if (r < 0)
        return -EIO;
    node_put(root);
    *why = NULL;
    return 0;
}

int ext2_mount(const struct ext2_disk *disk, uint32_t cache, struct ext2 **out,
               const char **why)
{
    struct ext2 *fs = calloc(1, sizeof(*fs));
    int r;

    *why = "no memory";
    if (fs == NULL)
        return -ENOMEM;
    fs->fs_disk = *disk;
    list_init(&fs->fs_nodes);
    list_init(&fs->fs_lru);
    r = read_all(fs, cache, why);
    if (r < 0) {
        ext2_free(fs);
        return r;
    }
    fs->fs_time_zero = disk->disk_seconds(disk->disk_arg);
    fs->fs_time = MAX(fs->fs_super.s_wtime, fs->fs_super.s_mtime);
    if (fs->fs_suspect && fs->fs_read_only == NULL)
        ext2_recover(fs);
    *out = fs;
    return 0;
}

void ext2_free(struct ext2 *fs)
{
    nodes_destroy(fs);
    groups_destroy(fs);
    if (fs->fs_block_size != 0)
        buffers_destroy(fs);
    free(fs);
}

/* ---- status ------------------------------------------------------------- */

const char *ext2_read_only(const struct ext2 *fs)
{
    return fs->fs_read_only;
}

void ext2_counts(const struct ext2 *fs, struct ext2_counts *out)
{
    *out = fs->fs_counts;
}

int ext2_stat(void *opaque, struct fs_stat *out)
{
    const struct ext2 *fs = opaque;

    memset(out, 0, sizeof(*out));
    out->fs_root = EXT2_ROOT;
    out->fs_block_size = fs->fs_block_size;
    out->fs_blocks = fs->fs_super.s_blocks_count;
    out->fs_blocks_free = blocks_free(fs);
    out->fs_files = fs->fs_super.s_inodes_count;
    out->fs_files_free = inodes_free(fs);
    memcpy(out->fs_kind, "ext2", sizeof("ext2"));
    return 0;
}
