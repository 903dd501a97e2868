/*
 * Features of a file system that this server does not support, by the names
 * that e2fsprogs uses: `dumpe2fs -h` on the host prints the same.
 *
 *     unsupported features:
 *       extent 64bit flex_bg metadata_csum FEATURE_R20
 *       create a disk without them by make disk, or by mke2fs -t ext2
 */
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "user/servers/ext2/impl.h"

#define COLUMNS 79u

static const char *const incompatible[32] = {
    [0] = "compression", [3] = "journal_dev",  [4] = "meta_bg",
    [6] = "extent",      [7] = "64bit",        [8] = "mmp",
    [9] = "flex_bg",     [10] = "ea_inode",    [13] = "metadata_csum_seed",
    [14] = "large_dir",  [15] = "inline_data", [16] = "encrypt",
    [17] = "casefold"};

static const char *const read_only[32] = {
    [3] = "huge_file",      [4] = "uninit_bg",      [5] = "dir_nlink",
    [6] = "extra_isize",    [8] = "quota",          [9] = "bigalloc",
    [10] = "metadata_csum", [11] = "replica",       [12] = "read-only",
    [13] = "project",       [14] = "shared_blocks", [15] = "verity",
    [16] = "orphan_present"};

/* Text, and the column at which its last line ends. */
struct lines {
    char lines_text[800]; /* enough for all 64 bits */
    size_t lines_length;
    size_t lines_column;
};

static void add(struct lines *l, const char *text)
{
    l->lines_length +=
        (size_t)snprintf(l->lines_text + l->lines_length,
                         sizeof(l->lines_text) - l->lines_length, "%s", text);
}

static void add_word(struct lines *l, const char *word)
{
    size_t length = strlen(word);

    if (l->lines_column + 1 + length > COLUMNS) {
        add(l, "\n ");
        l->lines_column = 1;
    }
    add(l, " ");
    add(l, word);
    l->lines_column += 1 + length;
}

/* The names of these bits. One without a name is FEATURE_ and, as in e2fsprogs,
 * the letter of its set and its number. */
static void add_names(struct lines *l, uint32_t bits, char set,
                      const char *const names[32])
{
    char word[16];

    for (unsigned i = 0; i < 32; i++) {
        if (!(bits & 1u << i))
            continue;
        snprintf(word, sizeof(word), "FEATURE_%c%u", set, i);
        add_word(l, names[i] != NULL ? names[i] : word);
    }
}

uint32_t features_incompatible(const struct ext2_super *s)
{
    return s->s_rev_level == 0
               ? 0
               : s->s_feature_incompat &
                     ~(uint32_t)(INCOMPAT_FILETYPE | INCOMPAT_RECOVER);
}

uint32_t features_read_only(const struct ext2_super *s)
{
    return s->s_rev_level == 0
               ? 0
               : s->s_feature_ro_compat &
                     ~(uint32_t)(RO_COMPAT_SPARSE_SUPER | RO_COMPAT_LARGE_FILE);
}

const char *features_describe(const struct ext2_super *s)
{
    static struct lines l;

    l.lines_length = 0;
    l.lines_column = COLUMNS; /* the names begin in the second line */
    add(&l, "unsupported features:");
    add_names(&l, features_incompatible(s), 'I', incompatible);
    add_names(&l, features_read_only(s), 'R', read_only);
    add(&l, "\n  create a disk without them by make disk, or by "
            "mke2fs -t ext2");
    return l.lines_text;
}
