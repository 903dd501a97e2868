/*
 * powercut IMAGE SEED STEPS CUTS: a random workload is recorded; then the
 * power is cut so many times, each time elsewhere, and `e2fsck -p` must put
 * the rest right by itself, or most times the core's own recovery, after
 * which e2fsck must find nothing. Then everything is there that a sync had
 * confirmed and nobody has touched since, and nothing that never was.
 *
 * The disk takes sectors whole or not at all, and between two flushes in any
 * order (disk_cut).
 */
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "user/lib/stdlib.h"
#include "user/servers/ext2/tests/disk.h"
#include "user/servers/ext2/tests/host.h"
#include "user/servers/ext2/tests/model.h"
#include "user/servers/ext2/tests/paths.h"
#include "user/servers/ext2/tests/suites.h"

#define CACHE    65536u
#define FILE_MAX 60000u
#define E2FSCK   8u /* it looks at two of so many */

/* What was in the file system when a sync had returned. */
struct confirmed {
    char con_path[MODEL_PATH];
    uint32_t con_object;
    uint32_t con_hash; /* 0: a directory */
};

struct event {
    struct change event_change;
    uint32_t event_start, event_end; /* records on the disk, before and after */
    struct confirmed *event_confirmed; /* of a CHANGE_SYNC */
    uint32_t event_names;
};

/* A cut: the events from `cut_first` on may or may not have happened. */
struct cut {
    struct event *cut_event;
    uint32_t cut_first, cut_end;
    const struct event *cut_sync; /* the last one that had returned, or NULL */
    const char *cut_wrong;
    char cut_path[MODEL_PATH];
};

/* ---- the workload -------------------------------------------------------- */

static void confirm(struct event *e, const struct model *m)
{
    e->event_names = m->model_names;
    e->event_confirmed = calloc(m->model_names + 1, sizeof(struct confirmed));
    for (uint32_t i = 0; i < m->model_names; i++) {
        const struct shadow *s = &m->model_name[i];
        struct confirmed *c = &e->event_confirmed[i];

        memcpy(c->con_path, s->sh_path, MODEL_PATH);
        c->con_object = s->sh_object->obj_id;
        if (!s->sh_object->obj_dir)
            c->con_hash =
                model_hash(s->sh_object->obj_data, s->sh_object->obj_size);
    }
}

static struct event *work(struct disk *disk, uint32_t seed, uint32_t steps)
{
    struct event *events = calloc(steps, sizeof(*events));
    struct ext2 *fs = disk_mount(disk, CACHE);
    struct model m;

    model_begin(&m, fs, seed, FILE_MAX);
    for (uint32_t i = 0; i < steps; i++) {
        struct event *e = &events[i];

        e->event_start = disk->disk_records;
        if (!model_step(&m))
            host_fail("step %u: %s", i, m.model_failed);
        if (i % 16 == 15 && ext2_tick(fs) < 0)
            host_fail("step %u: tick", i);
        e->event_change = m.model_last;
        e->event_end = disk->disk_records;
        if (m.model_last.change_kind == CHANGE_SYNC)
            confirm(e, &m);
    }
    model_end(&m);
    ext2_free(fs);
    return events;
}

/* ---- what must be there -------------------------------------------------- */

static bool below(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    return strncmp(path, dir, n) == 0 && (path[n] == 0 || path[n] == '/');
}

static bool wrong(struct cut *c, const char *what, const char *path)
{
    c->cut_wrong = what;
    snprintf(c->cut_path, sizeof(c->cut_path), "%s", path);
    return false;
}

/* What may have happened to a confirmed name since. */
struct fate {
    bool fate_gone;         /* anything: it may even be missing */
    bool fate_changed;      /* its contents may be any */
    const char *fate_moved; /* it may have that name instead */
    uint32_t fate_replaced; /* contents that it may have instead */
};

static void fate_of(const struct confirmed *con, const struct change *ch,
                    struct fate *f)
{
    bool of_path = strcmp(ch->change_path, con->con_path) == 0;
    bool of_other = strcmp(ch->change_other, con->con_path) == 0;

    switch (ch->change_kind) {
    case CHANGE_CONTENTS:
        f->fate_changed |= ch->change_object == con->con_object || of_path;
        break;
    case CHANGE_REMOVED:
    case CHANGE_MADE:
        f->fate_gone |= of_path;
        break;
    case CHANGE_TREE:
        f->fate_gone |= below(con->con_path, ch->change_path) ||
                        below(con->con_path, ch->change_other);
        break;
    case CHANGE_MOVED:
    case CHANGE_REPLACED:
        f->fate_gone |= of_path && f->fate_moved != NULL;
        f->fate_changed |= of_other && f->fate_replaced != 0;
        if (of_path)
            f->fate_moved = ch->change_other;
        if (of_other)
            f->fate_replaced = ch->change_hash;
        break;
    default:
        break;
    }
}

/* What happened to the name that it may have instead makes it uncertain. */
static bool untouched(const struct cut *c, const char *path)
{
    uint32_t times = 0;

    for (uint32_t i = c->cut_first; i < c->cut_end; i++) {
        const struct change *ch = &c->cut_event[i].event_change;

        if (ch->change_kind == CHANGE_TREE)
            return false;
        times += strcmp(ch->change_path, path) == 0;
        times += strcmp(ch->change_other, path) == 0;
    }
    return times == 1;
}

static bool check_file(struct ext2 *fs, struct cut *c,
                       const struct confirmed *con, const struct fate *f)
{
    uint32_t hash = path_hash(fs, con->con_path);

    if (hash == 0 && f->fate_moved != NULL) {
        if (!untouched(c, f->fate_moved))
            return true;
        hash = path_hash(fs, f->fate_moved);
    }
    if (hash == 0)
        return wrong(c, "is missing", con->con_path);
    if (hash != con->con_hash && !f->fate_changed &&
        !(f->fate_replaced != 0 && hash == f->fate_replaced))
        return f->fate_replaced != 0 ||
               wrong(c, "has other contents", con->con_path);
    return true;
}

static bool check_name(struct ext2 *fs, struct cut *c,
                       const struct confirmed *con)
{
    struct fate f = {0};
    struct fs_attr attr;
    uint32_t file;

    for (uint32_t i = c->cut_first; i < c->cut_end; i++)
        fate_of(con, &c->cut_event[i].event_change, &f);
    if (f.fate_gone)
        return true;
    if (con->con_hash != 0)
        return check_file(fs, c, con, &f);
    if (path_find(fs, con->con_path, &file) < 0 ||
        ext2_inode(fs, file, &attr) < 0 || attr.attr_type != FILE_DIRECTORY)
        return wrong(c, "is no directory", con->con_path);
    return true;
}

/* ---- what must not ------------------------------------------------------- */

static bool expected(const struct cut *c, const char *path)
{
    for (uint32_t i = 0; c->cut_sync != NULL && i < c->cut_sync->event_names;
         i++) {
        if (strcmp(c->cut_sync->event_confirmed[i].con_path, path) == 0)
            return true;
    }
    for (uint32_t i = c->cut_first; i < c->cut_end; i++) {
        const struct change *ch = &c->cut_event[i].event_change;

        if (strcmp(ch->change_path, path) == 0 ||
            strcmp(ch->change_other, path) == 0 ||
            ch->change_kind == CHANGE_TREE)
            return true;
    }
    return strcmp(path, "/lost+found") == 0 ||
           strstr(path, "/.replaced-") != NULL;
}

static int check_found(void *arg, const char *path, uint32_t file,
                       const struct fs_attr *attr)
{
    struct cut *c = arg;

    (void)file;
    (void)attr;
    if (!expected(c, path))
        wrong(c, "never was", path);
    return 0;
}

/* ---- cutting ------------------------------------------------------------- */

static void find_sync(struct cut *c, struct event *events, uint32_t steps,
                      uint32_t records)
{
    c->cut_event = events;
    for (uint32_t i = 0; i < steps; i++) {
        if (events[i].event_start >= records)
            break;
        c->cut_end = i + 1;
        if (events[i].event_change.change_kind == CHANGE_SYNC &&
            events[i].event_end <= records) {
            c->cut_sync = &events[i];
            c->cut_first = i + 1;
        }
    }
    /* what was done in memory by then may have been written with the next */
    while (c->cut_end < steps && events[c->cut_end].event_start <= records)
        c->cut_end++;
}

/* What a mounted file system has. */
static void check_contents(struct cut *c, struct ext2 *fs)
{
    if (path_walk(fs, "/", check_found, c) < 0)
        c->cut_wrong = "walking fails";
    for (uint32_t i = 0; c->cut_sync != NULL && i < c->cut_sync->event_names;
         i++)
        check_name(fs, c, &c->cut_sync->event_confirmed[i]);
}

/* e2fsck -p may find something, and puts it right by itself. */
static void check_e2fsck(struct cut *c, const char *path)
{
    char said[4096];
    struct disk disk;
    struct ext2 *fs;
    int status = host_e2fsck("-p -f", path, said, sizeof(said));

    if (status != 0 && status != 1) {
        host_print("%s", said);
        c->cut_wrong = "e2fsck wants help";
        return;
    }
    disk_load(&disk, path);
    fs = disk_mount(&disk, CACHE);
    check_contents(c, fs);
    ext2_free(fs);
    disk_close(&disk);
}

/* Mounting does the same, after which e2fsck finds nothing. */
static void check_recovery(struct cut *c, struct disk *disk, const char *path,
                           bool ask)
{
    char said[4096];
    struct ext2 *fs = disk_mount(disk, CACHE);

    check_contents(c, fs);
    if (ext2_read_only(fs) != NULL) {
        host_print("%s\n", disk->disk_said);
        c->cut_wrong = "it cannot be put right";
    } else if (ext2_unmount(fs) < 0) {
        c->cut_wrong = "it cannot be unmounted";
    }
    ext2_free(fs);
    if (!ask || c->cut_wrong != NULL)
        return;
    disk_save(disk, path);
    if (host_e2fsck("-f -n", path, said, sizeof(said)) != 0) {
        host_print("%s%s\n", said, disk->disk_said);
        c->cut_wrong = "e2fsck finds something after a mount";
    }
}

int powercut(const char *image, uint32_t seed, uint32_t steps, uint32_t cuts)
{
    char path[256];
    uint32_t random = seed + 77;
    struct disk disk, cut_disk;
    uint8_t *before;
    struct event *events;
    size_t size;

    snprintf(path, sizeof(path), "%s.cut", image);
    disk_load(&disk, image);
    before = host_load(image, &size);
    cut_disk = (struct disk){.disk_sectors = disk.disk_sectors,
                             .disk_image = malloc(size)};
    disk.disk_recording = true;
    events = work(&disk, seed, steps);
    for (uint32_t i = 0; i < cuts; i++) {
        uint32_t at = 1 + random_next(&random) % disk.disk_records;
        struct cut c = {0};

        disk_cut(&disk, before, at, seed + i, cut_disk.disk_image);
        if (i % E2FSCK == 0)
            disk_save(&cut_disk, path);
        find_sync(&c, events, steps, at);
        if (i % E2FSCK == 0)
            check_e2fsck(&c, path);
        else
            check_recovery(&c, &cut_disk, path, i % E2FSCK == E2FSCK / 2);
        if (c.cut_wrong != NULL)
            host_fail("seed %u, cut %u, after %u of %u writes: %s %s", seed, i,
                      at, disk.disk_records, c.cut_path, c.cut_wrong);
    }
    host_print("%u cuts in %u writes\n", cuts, disk.disk_records);
    for (uint32_t i = 0; i < steps; i++)
        free(events[i].event_confirmed);
    free(events);
    free(before);
    disk_close(&cut_disk);
    disk_close(&disk);
    return 0;
}

void cut_everywhere(const struct disk *disk, const uint8_t *before,
                    uint32_t ways)
{
    struct disk cut_disk = {.disk_sectors = disk->disk_sectors};

    cut_disk.disk_image = malloc(512u * disk->disk_sectors);
    for (uint32_t at = 1; at <= disk->disk_records; at++) {
        for (uint32_t seed = 0; seed < ways; seed++) {
            struct ext2 *fs;

            disk_cut(disk, before, at, seed, cut_disk.disk_image);
            fs = disk_mount(&cut_disk, CACHE);
            if (ext2_read_only(fs) != NULL)
                host_fail("cut after write %u of %u, way %u: %s", at,
                          disk->disk_records, seed, cut_disk.disk_said);
            ext2_free(fs);
        }
    }
    disk_close(&cut_disk);
}
