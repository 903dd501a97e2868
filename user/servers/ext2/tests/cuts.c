/*
 * Cuts the power after each write of a short workload, in several ways, and
 * repairs the disk: by mounting, and in some cases by `e2fsck -p`. If the
 * repair replays the journal, the power is also cut after each write of the
 * replay. Prints each outcome once: an atomic change has two.
 */
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "user/lib/stdlib.h"
#include "user/servers/ext2/format.h"
#include "user/servers/ext2/tests/disk.h"
#include "user/servers/ext2/tests/host.h"
#include "user/servers/ext2/tests/paths.h"
#include "user/servers/ext2/tests/suites.h"

#define CACHE        65536u
#define CHOSEN       8u /* one in so many ways is checked further */
#define TREE         8192u
#define OUTCOMES_MAX 1024u

struct outcomes {
    const char *out_path; /* a file for e2fsck */
    char *out_tree[OUTCOMES_MAX];
    uint32_t out_count;
    uint32_t out_cuts, out_replays;
};

struct tree {
    char tree_text[TREE];
    uint32_t tree_size;
};

/* ---- outcomes ------------------------------------------------------------ */

static int add_name(void *arg, const char *path, uint32_t file,
                    const struct fs_attr *attr)
{
    struct tree *t = arg;

    (void)file;
    (void)attr;
    t->tree_size += (uint32_t)snprintf(t->tree_text + t->tree_size,
                                       TREE - t->tree_size, " %s", path);
    return t->tree_size < TREE ? 0 : -ENOMEM;
}

static void look(struct outcomes *o, struct ext2 *fs)
{
    struct tree t = {.tree_size = 0};

    if (path_walk(fs, "/", add_name, &t) < 0)
        host_fail("walking fails");
    for (uint32_t i = 0; i < o->out_count; i++) {
        if (strcmp(o->out_tree[i], t.tree_text) == 0)
            return;
    }
    if (o->out_count == OUTCOMES_MAX)
        host_fail("too many outcomes");
    o->out_tree[o->out_count] = malloc(TREE);
    memcpy(o->out_tree[o->out_count++], t.tree_text, TREE);
}

/* ---- repairing ----------------------------------------------------------- */

static bool pending(const struct disk *disk)
{
    const struct ext2_super *s = (const void *)(disk->disk_image + 1024);

    return s->s_feature_incompat & INCOMPAT_RECOVER;
}

static void by_mount(struct outcomes *o, struct disk *disk)
{
    struct ext2 *fs = disk_mount(disk, CACHE);

    if (ext2_read_only(fs) != NULL)
        host_fail("cut %u: %s", o->out_cuts, disk->disk_said);
    look(o, fs);
    ext2_free(fs);
}

static void by_e2fsck(struct outcomes *o, const struct disk *disk)
{
    char said[4096];
    struct disk repaired;
    int status;

    disk_save(disk, o->out_path);
    status = host_e2fsck("-p", o->out_path, said, sizeof(said));
    if (status != 0 && status != 1)
        host_fail("cut %u: %s", o->out_cuts, said);
    disk_load(&repaired, o->out_path);
    if (pending(&repaired))
        host_fail("cut %u: the journal still has a transaction", o->out_cuts);
    by_mount(o, &repaired);
    disk_close(&repaired);
}

/* Cuts the power after each write of a repair that has been recorded. */
static void cut_repair(struct outcomes *o, const struct disk *disk,
                       const uint8_t *before, uint32_t seed)
{
    struct disk again = {.disk_sectors = disk->disk_sectors};

    again.disk_image = malloc(512u * disk->disk_sectors);
    for (uint32_t at = 1; at <= disk->disk_records; at++) {
        disk_cut(disk, before, at, seed, again.disk_image);
        o->out_replays++;
        if (at % CHOSEN == seed % CHOSEN)
            by_e2fsck(o, &again);
        by_mount(o, &again);
    }
    disk_close(&again);
}

static void cut(struct outcomes *o, const struct disk *disk,
                const uint8_t *before, uint32_t at, uint32_t seed)
{
    struct disk left = {.disk_sectors = disk->disk_sectors};
    uint8_t *as_cut = malloc(512u * disk->disk_sectors);
    bool chosen = seed % CHOSEN == at % CHOSEN;

    disk_cut(disk, before, at, seed, as_cut);
    left.disk_image = malloc(512u * disk->disk_sectors);
    memcpy(left.disk_image, as_cut, 512u * disk->disk_sectors);
    o->out_cuts++;
    if (chosen)
        by_e2fsck(o, &left);
    left.disk_recording = chosen && pending(&left);
    by_mount(o, &left);
    cut_repair(o, &left, as_cut, seed);
    disk_close(&left);
    free(as_cut);
}

void cut_everywhere(const struct disk *disk, const uint8_t *before,
                    uint32_t ways, const char *path)
{
    struct outcomes o = {.out_path = path};

    for (uint32_t at = 1; at <= disk->disk_records; at++) {
        for (uint32_t seed = 0; seed < ways; seed++)
            cut(&o, disk, before, at, seed);
    }
    host_print("%u writes, %u cuts, %u of replays\n", disk->disk_records,
               o.out_cuts, o.out_replays);
    for (uint32_t i = 0; i < o.out_count; i++) {
        host_print("outcome%s\n", o.out_tree[i]);
        free(o.out_tree[i]);
    }
}
