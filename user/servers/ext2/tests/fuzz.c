/*
 * fuzz IMAGE SEED MUTATIONS: MUTATIONS times, damages a copy of the original
 * image in one or several places and uses it in every way. With any contents of
 * the disk each run must end, perhaps with errors, but without a crash or a
 * memory error (under the sanitizers).
 */
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "user/lib/stdlib.h"
#include "user/servers/ext2/format.h"
#include "user/servers/ext2/tests/disk.h"
#include "user/servers/ext2/tests/host.h"
#include "user/servers/ext2/tests/paths.h"
#include "user/servers/ext2/tests/suites.h"
#include "tools/test/budget.h"

#define CACHE     65536u
#define FILES_MAX 300u    /* files read in one file system */
#define BYTES_MAX 100000u /* bytes read of each */
#define STEPS     5000000 /* of a mutation: 20 times what the longest takes */

/* ---- where to damage ---------------------------------------------------- */

struct image {
    uint8_t *img_data; /* the original image */
    uint8_t *img_out;  /* the damaged copy */
    size_t img_size;
    struct ext2_super img_super;
    uint32_t img_block; /* bytes */
    uint32_t img_random;
};

static uint32_t dice(struct image *m, uint32_t n)
{
    return random_next(&m->img_random) % n;
}

static uint32_t inode_size(const struct image *m)
{
    return m->img_super.s_rev_level > 0 ? m->img_super.s_inode_size
                                        : EXT2_INODE_OLD;
}

static uint32_t groups(const struct image *m)
{
    return (m->img_super.s_blocks_count - 1) / m->img_super.s_blocks_per_group +
           1;
}

static struct ext2_group_desc *desc(const struct image *m, uint32_t group)
{
    return (struct ext2_group_desc *)(m->img_data +
                                      (m->img_super.s_first_data_block + 1) *
                                          m->img_block) +
           group;
}

/* An inode, usually one in use. */
static struct ext2_inode *inode(struct image *m)
{
    struct ext2_inode *n = NULL;

    for (uint32_t i = 0; i < 40; i++) {
        uint32_t number = 1 + dice(m, m->img_super.s_inodes_per_group);

        number = dice(m, 6) == 0 ? EXT2_ROOT : number;
        n = (void *)(m->img_data +
                     (size_t)desc(m, 0)->bg_inode_table * m->img_block +
                     (number - 1) * inode_size(m));
        if (n->i_links_count > 0)
            break;
    }
    return n;
}

/* The bytes of a block of an inode of this type, or of the inode itself. */
static uint8_t *block_of(struct image *m, uint16_t type, uint32_t slot)
{
    struct ext2_inode *n = inode(m);

    for (uint32_t i = 0;
         i < 40 && ((n->i_mode & MODE_TYPE) != type || n->i_block[slot] == 0);
         i++)
        n = inode(m);
    if (n->i_block[slot] >= m->img_super.s_blocks_count)
        return m->img_data; /* the text of a short symbolic link */
    return m->img_data + (size_t)n->i_block[slot] * m->img_block;
}

/* A random entry of a random directory. */
static uint8_t *entry(struct image *m)
{
    uint8_t *block = block_of(m, MODE_DIRECTORY, dice(m, 3));
    uint32_t at = 0;

    for (uint32_t i = dice(m, 12); i > 0; i--) {
        struct ext2_dirent *d = (void *)(block + at);

        if (d->d_rec_len < 8 || d->d_rec_len % 4 != 0 ||
            at + d->d_rec_len >= m->img_block - 8)
            break;
        at += d->d_rec_len;
    }
    return block + at;
}

static uint8_t *bitmap(struct image *m)
{
    const struct ext2_group_desc *d = desc(m, dice(m, groups(m)));

    return m->img_data +
           (size_t)(dice(m, 2) ? d->bg_block_bitmap : d->bg_inode_bitmap) *
               m->img_block +
           dice(m, 64);
}

/* A block of the journal, NULL if there is none. */
static uint8_t *journal(const struct image *m, uint32_t index)
{
    const struct ext2_inode *n =
        (const void *)(m->img_data +
                       (size_t)desc(m, 0)->bg_inode_table * m->img_block +
                       (JOURNAL_INODE - 1) * inode_size(m));

    if (m->img_super.s_rev_level == 0 ||
        !(m->img_super.s_feature_compat & COMPAT_HAS_JOURNAL))
        return NULL;
    return m->img_data + (size_t)n->i_block[index] * m->img_block;
}

/* As after a power cut before the last move of a directory was in place: the
 * move is still in the journal. */
static void pend(const struct image *m)
{
    struct ext2_super *s = (void *)(m->img_out + 1024);
    const uint8_t *first = journal(m, 0);

    if (first == NULL)
        return;
    s->s_feature_incompat |= INCOMPAT_RECOVER;
    ((struct journal_super *)(m->img_out + (first - m->img_data)))->j_start =
        __builtin_bswap32(1);
}

/* A random place, and the number of interesting bytes there. */
static uint8_t *place(struct image *m, uint32_t *n)
{
    uint32_t which = dice(m, journal(m, 0) == NULL ? 12 : 18);

    switch (which) {
    case 0:
    case 1:
        *n = 104;
        return m->img_data + 1024;
    case 2:
    case 3:
        *n = 20;
        return (uint8_t *)desc(m, dice(m, groups(m)));
    case 4:
    case 5:
    case 6:
        *n = EXT2_INODE_OLD;
        return (uint8_t *)inode(m);
    case 7:
    case 8:
    case 9:
        *n = 12;
        return entry(m);
    case 10:
        *n = 16;
        return bitmap(m);
    case 11:
        *n = 64;
        return block_of(m, MODE_REGULAR, EXT2_DIRECT + dice(m, 3));
    default: /* its superblock, a descriptor, blocks, a commit */
        *n = 64;
        return journal(m, which < 14 ? 0 : which < 16 ? 1 : dice(m, 8));
    }
}

static uint32_t value(struct image *m, uint32_t old)
{
    switch (dice(m, 9)) {
    case 0:
        return 0;
    case 1:
        return UINT32_MAX;
    case 2:
        return old + 1;
    case 3:
        return old - 1;
    case 4:
        return old ^ 1u << dice(m, 32);
    case 5:
        return dice(m, m->img_super.s_blocks_count);
    case 6:
        return dice(m, 20);
    case 7:
        return old << 1;
    default:
        return random_next(&m->img_random);
    }
}

static void damage(struct image *m)
{
    uint32_t n;
    uint8_t *at = place(m, &n);
    uint32_t width = 1u << dice(m, 3);
    uint32_t now = 0;

    at += dice(m, n / width) * width;
    if (at + 4 > m->img_data + m->img_size)
        return;
    memcpy(&now, at, width);
    now = value(m, now);
    memcpy(m->img_out + (at - m->img_data), &now, width);
}

/* ---- using the damaged image -------------------------------------------- */

struct tour {
    struct ext2 *tour_fs;
    struct image *tour_image;
    uint32_t tour_files;
    char tour_path[FILES_MAX][200];
    uint8_t tour_bytes[BYTES_MAX];
};

static int visit(void *arg, const char *path, uint32_t file,
                 const struct fs_attr *attr)
{
    struct tour *t = arg;
    char name[NAME_MAX + 1];

    if (t->tour_files == FILES_MAX)
        return 1;
    snprintf(t->tour_path[t->tour_files++], 200, "%s", path);
    ext2_read(t->tour_fs, file, 0, t->tour_bytes, BYTES_MAX);
    ext2_read(t->tour_fs, file, attr->attr_size - 1000, t->tour_bytes, 2000);
    if (attr->attr_type == FILE_DIRECTORY)
        ext2_name(t->tour_fs, file, name);
    return 0;
}

static void change(struct tour *t, const char *path, uint32_t i)
{
    struct image *m = t->tour_image;
    char other[256];

    snprintf(other, sizeof(other), "%s.%u", path, (unsigned)i);
    switch (dice(m, 8)) {
    case 0:
        path_unlink(t->tour_fs, path);
        break;
    case 1:
        path_rename(t->tour_fs, path, other);
        break;
    case 2:
        path_truncate(t->tour_fs, path, dice(m, 400000));
        break;
    case 3:
        path_write(t->tour_fs, path, dice(m, 400000), t->tour_bytes, 3000);
        break;
    case 4:
        path_link(t->tour_fs, path, other);
        break;
    case 5:
        path_rmdir(t->tour_fs, path);
        break;
    case 6: /* to another directory; sometimes over the one before */
        snprintf(other, sizeof(other), "/moved%u", (unsigned)dice(m, 4));
        path_rename(t->tour_fs, path, other);
        break;
    default:
        path_create(t->tour_fs, other,
                    dice(m, 2) ? FILE_DIRECTORY : FILE_REGULAR, 0);
    }
}

static const char *use(struct tour *t)
{
    const char *wrong;

    t->tour_files = 0;
    path_walk(t->tour_fs, "/", visit, t);
    for (uint32_t i = 0; i < t->tour_files; i++)
        change(t, t->tour_path[i], i);
    for (uint32_t i = 0; i < 20; i++) {
        char path[32];

        snprintf(path, sizeof(path), "/new%u", (unsigned)i);
        path_write(t->tour_fs, path, i * 3000, t->tour_bytes, 5000);
    }
    wrong = ext2_verify(t->tour_fs);
    ext2_unmount(t->tour_fs);
    return wrong != NULL ? wrong : ext2_verify(t->tour_fs);
}

/* ---- reads that fail ---------------------------------------------------- */

/* A mount whose reads fail, too. If the repair is not complete, nothing may be
 * written. */
static const char *repair_unlucky(struct disk *disk)
{
    struct ext2_disk functions = disk_functions(disk);
    struct ext2_super *super = (void *)(disk->disk_image + 1024);
    const char *wrong;
    struct ext2 *fs;

    super->s_state &= (uint16_t)~STATE_VALID;
    disk->disk_said[0] = 0;
    if (ext2_mount(&functions, CACHE, &fs, &wrong) < 0)
        return NULL;
    wrong = NULL;
    if (ext2_read_only(fs) == NULL &&
        strstr(disk->disk_said, "repaired") == NULL)
        wrong = "mounted for writing without a repair";
    ext2_free(fs);
    return wrong;
}

/* On an undamaged disk some reads fail. The next mount must repair all
 * consequences. */
static const char *use_unlucky(struct tour *t, struct disk *disk, uint32_t seed)
{
    struct ext2_disk functions = disk_functions(disk);
    const char *wrong = NULL;
    struct ext2 *fs;

    if (ext2_mount(&functions, CACHE, &t->tour_fs, &wrong) < 0)
        return wrong;
    disk->disk_random = seed * 2654435761u + 1;
    disk->disk_unlucky = 10 + seed % 50;
    wrong = use(t);
    ext2_free(t->tour_fs);
    if (wrong == NULL)
        wrong = repair_unlucky(disk);
    disk->disk_unlucky = 0;
    if (wrong != NULL || ext2_mount(&functions, CACHE, &fs, &wrong) < 0)
        return wrong;
    wrong = ext2_read_only(fs) != NULL ? disk->disk_said : NULL;
    ext2_free(fs);
    return wrong;
}

/* ---- the whole run ------------------------------------------------------ */

static uint32_t mounted, damaged;

static void mutate(struct tour *tour, struct disk *disk, uint32_t seed,
                   uint32_t i)
{
    struct ext2_disk functions = disk_functions(disk);
    struct image *m = tour->tour_image;
    const char *why;

    m->img_random = (seed * 100003u + i) * 2654435761u + 1;
    memcpy(m->img_out, m->img_data, m->img_size);
    if (dice(m, 2)) /* as after a crash */
        ((struct ext2_super *)(m->img_out + 1024))->s_state = 0;
    if (dice(m, 2))
        pend(m);
    for (uint32_t n = 1 + dice(m, 3); n > 0; n--)
        damage(m);
    if (i % 4 == 3) {
        memcpy(m->img_out, m->img_data, m->img_size);
        why = use_unlucky(tour, disk, seed * 1000 + i);
        if (why != NULL)
            host_fail("seed %u, unlucky %u: %s", seed, i, why);
        return;
    }
    if (ext2_mount(&functions, CACHE, &tour->tour_fs, &why) < 0)
        return;
    mounted++;
    why = use(tour);
    damaged += ext2_read_only(tour->tour_fs) != NULL;
    ext2_free(tour->tour_fs);
    if (why != NULL)
        host_fail("seed %u, mutation %u: %s", seed, i, why);
}

int fuzz(const char *image, uint32_t seed, uint32_t mutations)
{
    struct tour *tour = calloc(1, sizeof(*tour));
    struct image m = {0};
    struct disk disk;

    tour->tour_image = &m;
    m.img_data = host_load(image, &m.img_size);
    memcpy(&m.img_super, m.img_data + 1024, sizeof(m.img_super));
    m.img_block = 1024u << m.img_super.s_log_block_size;
    disk_load(&disk, image);
    m.img_out = disk.disk_image;
    for (uint32_t i = 0; i < mutations; i++) {
        struct budget before;
        char name[48];

        snprintf(name, sizeof(name), "seed %u, mutation %u", seed, i);
        before = budget_begin(name, STEPS);
        mutate(tour, &disk, seed, i);
        budget_end(before);
    }
    host_print("%u mutations: %u could be mounted, %u became read-only\n",
               mutations, mounted, damaged);
    disk_close(&disk);
    free(m.img_data);
    free(tour);
    return 0;
}
