/*
 * The journal: for changes that must reach the disk all or none.
 *
 * The order of writes (commit.c) needs no journal, except for a directory that
 * moves to another parent or replaces another: two to four sectors change, and
 * if only some are written it has two names, none, or a wrong "..". So these
 * blocks are written to a journal first:
 *
 *     logged      the superblock says that the journal may have something;
 *                 descriptor, blocks and commit are in it
 *     started     the journal's own superblock says that they count: one
 *                 sector, and the moment in which the move happens
 *     in place    the blocks are where they belong
 *     ended       the journal's superblock says that it is empty
 *     forgotten   the superblock says so too
 *
 * Each step is on disk before the next begins. The format is ext3's, so e2fsck
 * replays what a power failure leaves; so does journal_open. It replays only
 * what journal_write creates: one transaction of few blocks at the journal's
 * beginning. Another system's journal must be replayed there, or by e2fsck.
 */
#include "kernel/lib/string.h"
#include "user/servers/ext2/impl.h"

#define FIRST 1u /* block of the journal: the descriptor */

static uint32_t swap(uint32_t n)
{
    return __builtin_bswap32(n);
}

static uint16_t swap16(uint32_t n)
{
    return __builtin_bswap16((uint16_t)n);
}

static struct journal_header header(uint32_t type, uint32_t sequence)
{
    return (struct journal_header){
        .h_magic = swap(JOURNAL_MAGIC),
        .h_type = swap(type),
        .h_sequence = swap(sequence),
    };
}

static bool is(const void *block, uint32_t type, uint32_t sequence)
{
    struct journal_header want = header(type, sequence);

    return memcmp(block, &want, sizeof(want)) == 0;
}

static struct journal_tag *tag(struct journal_descriptor *d, uint32_t i)
{
    return i == 0 ? &d->d_first : &d->d_more[i - 1];
}

static uint32_t sector(const struct ext2 *fs, uint32_t index)
{
    return fs->fs_journal.jrn_block[index] * fs->fs_block_sectors;
}

/* A block of the journal. */
static int get(struct ext2 *fs, uint32_t index, void *data)
{
    return disk_read(fs, sector(fs, index), fs->fs_block_sectors, data);
}

static int put(struct ext2 *fs, uint32_t index, const void *data)
{
    return disk_write(fs, sector(fs, index), fs->fs_block_sectors, data);
}

/* ---- writing ------------------------------------------------------------ */

/* Sets in the journal's superblock whether it has a transaction. */
static int set_start(struct ext2 *fs, uint32_t start, uint32_t sequence)
{
    struct journal_super *j = &fs->fs_journal.jrn_super;
    int r;

    j->j_start = swap(start);
    j->j_sequence = swap(sequence);
    r = disk_write(fs, sector(fs, 0), 1, j);
    return r < 0 ? r : disk_flush(fs);
}

/* Sets in the file system's superblock whether it may have one. */
static int set_recover(struct ext2 *fs, bool on)
{
    uint32_t *features = &fs->fs_super.s_feature_incompat;

    *features = on ? *features | INCOMPAT_RECOVER
                   : *features & ~(uint32_t)INCOMPAT_RECOVER;
    return super_write(fs);
}

/* A block of zeroes that begins with these bytes. */
static int put_head(struct ext2 *fs, uint32_t index, const void *head,
                    uint32_t bytes)
{
    memset(fs->fs_run, 0, fs->fs_block_size);
    memcpy(fs->fs_run, head, bytes);
    return put(fs, index, fs->fs_run);
}

/* A copy of a block, escaped if it looks like a journal block, and its tag. */
static int put_block(struct ext2 *fs, uint32_t index, const struct buffer *b,
                     struct journal_tag *t, uint32_t flags)
{
    uint32_t magic = swap(JOURNAL_MAGIC);

    memcpy(fs->fs_run, b->buf_data, fs->fs_block_size);
    if (memcmp(fs->fs_run, &magic, sizeof(magic)) == 0) {
        memset(fs->fs_run, 0, sizeof(magic));
        flags |= JOURNAL_ESCAPED;
    }
    *t = (struct journal_tag){
        .t_block = swap(b->buf_block),
        .t_flags = swap16(flags),
    };
    return put(fs, index, fs->fs_run);
}

static int log_all(struct ext2 *fs, struct buffer **b, uint32_t n,
                   uint32_t sequence)
{
    struct journal_header end = header(JOURNAL_COMMIT, sequence);
    struct journal_descriptor d = {
        .d_header = header(JOURNAL_DESCRIPTOR, sequence),
    };
    int r = set_recover(fs, true);

    memcpy(d.d_uuid, fs->fs_journal.jrn_super.j_uuid, sizeof(d.d_uuid));
    for (uint32_t i = 0; i < n && r == 0; i++) {
        uint32_t flags =
            (i > 0 ? JOURNAL_SAME : 0u) | (i == n - 1 ? JOURNAL_LAST : 0u);

        r = put_block(fs, FIRST + 1 + i, b[i], tag(&d, i), flags);
    }
    if (r == 0)
        r = put_head(fs, FIRST, &d, sizeof(d));
    if (r == 0)
        r = put_head(fs, FIRST + 1 + n, &end, sizeof(end));
    return r < 0 ? r : disk_flush(fs);
}

/* The superblock is updated without a flush: it is written again later, and
 * until then the flag only causes a check. */
static int end(struct ext2 *fs, uint32_t sequence)
{
    int r = set_start(fs, 0, sequence);

    return r < 0 ? r : set_recover(fs, false);
}

int journal_write(struct ext2 *fs, struct buffer **b, uint32_t n)
{
    uint32_t sequence = swap(fs->fs_journal.jrn_super.j_sequence) + 1;
    int r = log_all(fs, b, n, sequence);

    if (r == 0)
        r = set_start(fs, FIRST, sequence);
    for (uint32_t i = 0; i < n && r == 0; i++)
        r = buffer_write(fs, b[i]);
    if (r == 0)
        r = disk_flush(fs);
    if (r == 0)
        r = end(fs, sequence);
    fs->fs_counts.count_journaled += r == 0;
    return r;
}

/* ---- checking ----------------------------------------------------------- */

/* Whether a block is one of the journal's first n. */
static bool journal_has(const struct ext2 *fs, uint32_t block, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (fs->fs_journal.jrn_block[i] == block)
            return true;
    }
    return false;
}

/* The blocks must be valid, distinct and in use. */
static bool blocks_good(struct ext2 *fs, const struct ext2_inode *inode)
{
    uint32_t *block = fs->fs_journal.jrn_block;

    if ((inode->i_mode & MODE_TYPE) != MODE_REGULAR ||
        inode->i_links_count == 0 || inode->i_size_high != 0)
        return false;
    memcpy(block, inode->i_block, sizeof(fs->fs_journal.jrn_block));
    for (uint32_t i = 0; i < JOURNAL_BLOCKS; i++) {
        if (!block_valid(fs, block[i]) || block_used(fs, block[i]) <= 0 ||
            journal_has(fs, block[i], i))
            return false;
    }
    return true;
}

/* A journal of mke2fs, or of Linux without features later than ext3's. */
static bool super_good(const struct ext2 *fs, uint32_t bytes)
{
    const struct journal_super *j = &fs->fs_journal.jrn_super;
    uint32_t blocks = swap(j->j_blocks);

    return j->j_header.h_magic == swap(JOURNAL_MAGIC) &&
           j->j_header.h_type == swap(JOURNAL_SUPER) &&
           j->j_blocksize == swap(fs->fs_block_size) &&
           blocks >= JOURNAL_BLOCKS && blocks <= bytes / fs->fs_block_size &&
           j->j_first == swap(FIRST) && j->j_errno == 0 && j->j_compat == 0 &&
           j->j_ro_compat == 0 &&
           (swap(j->j_incompat) & ~(uint32_t)JOURNAL_REVOKES) == 0;
}

/* 1: there is a usable journal; 0: none. */
static int find_journal(struct ext2 *fs)
{
    struct ext2_inode inode;
    int r;

    if (!(fs->fs_super.s_feature_compat & COMPAT_HAS_JOURNAL) ||
        fs->fs_super.s_journal_inum != JOURNAL_INODE)
        return 0;
    r = inode_load(fs, JOURNAL_INODE, &inode);
    if (r == 0 && !blocks_good(fs, &inode))
        return 0;
    if (r == 0)
        r = disk_read(fs, sector(fs, 0), 1, &fs->fs_journal.jrn_super);
    return r < 0 ? r : super_good(fs, inode.i_size);
}

/* ---- replaying ---------------------------------------------------------- */

/* Whether a block may be in a transaction: it is of a directory or of inodes,
 * and not of the journal. */
static bool target_good(const struct ext2 *fs, uint32_t block)
{
    return !journal_has(fs, block, JOURNAL_BLOCKS) &&
           (block_valid(fs, block) || block_of_inodes(fs, block));
}

/* The number of blocks of the transaction; 0: not written here. */
static uint32_t count_tags(const struct ext2 *fs, struct journal_descriptor *d)
{
    for (uint32_t i = 0; i < JOURNAL_TAGS; i++) {
        const struct journal_tag *t = tag(d, i);
        uint32_t flags = swap16(t->t_flags) & ~(uint32_t)JOURNAL_ESCAPED;

        if (t->t_checksum != 0 || !target_good(fs, swap(t->t_block)) ||
            (flags & ~(uint32_t)JOURNAL_LAST) != (i > 0 ? JOURNAL_SAME : 0))
            return 0;
        if (flags & JOURNAL_LAST)
            return i + 1;
    }
    return 0;
}

/* Whether a transaction continues, or another begins, with this block. */
static bool is_continued(const void *block, uint32_t sequence)
{
    const struct journal_header *h = block;

    return h->h_magic == swap(JOURNAL_MAGIC) && h->h_sequence == swap(sequence);
}

/* The same, or an error; nothing may follow the commit. */
static int check(struct ext2 *fs, struct journal_descriptor *d,
                 uint32_t sequence)
{
    uint32_t n;
    int r = get(fs, FIRST, fs->fs_run);

    if (r < 0)
        return r;
    memcpy(d, fs->fs_run, sizeof(*d));
    n = is(d, JOURNAL_DESCRIPTOR, sequence) ? count_tags(fs, d) : 0;
    if (n == 0)
        return 0;
    r = get(fs, FIRST + 1 + n, fs->fs_run);
    if (r < 0 || !is(fs->fs_run, JOURNAL_COMMIT, sequence))
        return r;
    r = get(fs, FIRST + 1 + n + 1, fs->fs_run);
    if (r < 0 || is_continued(fs->fs_run, sequence + 1))
        return r;
    return (int)n;
}

static int replay_block(struct ext2 *fs, uint32_t index,
                        const struct journal_tag *t)
{
    uint32_t magic = swap(JOURNAL_MAGIC);
    uint32_t block = swap(t->t_block);
    int r = get(fs, index, fs->fs_run);

    if (r < 0)
        return r;
    if (swap16(t->t_flags) & JOURNAL_ESCAPED)
        memcpy(fs->fs_run, &magic, sizeof(magic));
    buffer_forget(fs, block); /* read before, if it has the journal's inode */
    return disk_write(fs, block * fs->fs_block_sectors, fs->fs_block_sectors,
                      fs->fs_run);
}

static int replay(struct ext2 *fs)
{
    uint32_t sequence = swap(fs->fs_journal.jrn_super.j_sequence);
    struct journal_descriptor d;
    int n = check(fs, &d, sequence);
    int r = n > 0 ? 0 : n < 0 ? n : -ENOSYS;

    for (uint32_t i = 0; r == 0 && i < (uint32_t)n; i++)
        r = replay_block(fs, FIRST + 1 + i, tag(&d, i));
    if (r == 0)
        r = disk_flush(fs);
    if (r == 0)
        r = end(fs, sequence);
    if (r == 0)
        fs->fs_disk.disk_say(fs->fs_disk.disk_arg,
                             "completed the interrupted move of a directory");
    return r;
}

int journal_open(struct ext2 *fs, const char **why)
{
    const struct journal_super *j = &fs->fs_journal.jrn_super;
    bool pending = fs->fs_super.s_feature_incompat & INCOMPAT_RECOVER;
    int r = fs->fs_super.s_rev_level > 0 ? find_journal(fs) : 0;

    if (!pending || fs->fs_super.s_rev_level == 0) {
        fs->fs_journal.jrn_usable = r > 0 && j->j_start == 0;
        return 0;
    }
    *why = "cannot read the journal";
    if (r < 0)
        return r;
    *why = "another system's journal must be replayed: run e2fsck";
    if (r == 0 || fs->fs_read_only != NULL)
        return -ENOSYS;
    fs->fs_suspect = true;
    fs->fs_journal.jrn_usable = true;
    return j->j_start == 0 ? set_recover(fs, false) : replay(fs);
}
