/*
 * powercut IMAGE SEED STEPS CUTS: records a random workload, then cuts the
 * power at CUTS different moments. `e2fsck -p` must repair the disk by itself;
 * or the core's own recovery repairs it, and e2fsck must find nothing. Then
 * everything that a sync has confirmed and that was not changed since must be
 * there, and nothing that never existed.
 *
 * The disk writes a sector entirely or not at all, and between two flushes in
 * any order (disk_cut).
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
#define E2FSCK   8u /* two in so many cuts */

#define NAMES_MAX  24u /* tracked names of one file */
#define OWNERS_MAX 8u  /* tracked events of one name */

/* The contents of the file system when a sync returned. */
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
    uint32_t cut_records;         /* on the disk */
    const struct event *cut_sync; /* the last sync that had returned, or NULL */
    bool cut_shelters;            /* temporary names of rename may remain */
    uint32_t cut_certain;         /* names with known contents */
    const char *cut_wrong;
    char cut_path[MODEL_PATH];
};

/* ---- the workload ------------------------------------------------------- */

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
    struct ext2_counts counts;
    struct event *events = calloc(steps, sizeof(*events));
    struct ext2 *fs = disk_mount(disk, CACHE);
    struct model m;

    model_begin(&m, fs, seed, FILE_MAX);
    for (uint32_t i = 0; i < steps; i++) {
        struct event *e = &events[i];

        e->event_start = disk->disk_records;
        if (!model_step(&m))
            host_fail("step %u: %s", i, m.model_failed);
        if (i % 16 == 15 && ext2_sync(fs, 0) < 0)
            host_fail("step %u: sync", i);
        e->event_change = m.model_last;
        e->event_end = disk->disk_records;
        if (m.model_last.change_kind == CHANGE_SYNC)
            confirm(e, &m);
    }
    ext2_counts(fs, &counts);
    host_print("%u moves by the journal, %u refused, ", counts.count_journaled,
               m.model_refused);
    model_end(&m);
    ext2_free(fs);
    return events;
}

/* ---- required contents -------------------------------------------------- */

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

/* Names that a file may have after moves of directories above it. */
struct names {
    char name_path[NAMES_MAX][MODEL_PATH];
    uint32_t name_count;
    bool name_full; /* some names were left out */
};

static bool names_has(const struct names *s, const char *path)
{
    for (uint32_t i = 0; i < s->name_count; i++) {
        if (strcmp(s->name_path[i], path) == 0)
            return true;
    }
    return false;
}

static void names_add(struct names *s, const struct cut *c, const char *path);

/* The name with one prefix replaced by another. */
static void names_swap(struct names *s, const struct cut *c, const char *path,
                       const char *from, const char *to)
{
    char other[2 * MODEL_PATH];

    if (!below(path, from))
        return;
    snprintf(other, sizeof(other), "%s%s", to, path + strlen(from));
    if (strlen(other) < MODEL_PATH)
        names_add(s, c, other);
}

/* Adds a name, and its variants before and after each move of a directory: the
 * moves may have reached the disk in any order. */
static void names_add(struct names *s, const struct cut *c, const char *path)
{
    char *name;

    if (names_has(s, path))
        return;
    s->name_full |= s->name_count == NAMES_MAX;
    if (s->name_full)
        return;
    name = s->name_path[s->name_count++];
    snprintf(name, MODEL_PATH, "%s", path);
    for (uint32_t i = c->cut_first; i < c->cut_end; i++) {
        const struct change *ch = &c->cut_event[i].event_change;

        if (ch->change_kind != CHANGE_TREE)
            continue;
        names_swap(s, c, name, ch->change_path, ch->change_other);
        names_swap(s, c, name, ch->change_other, ch->change_path);
    }
}

/* Possible later changes of a confirmed name. */
struct outcome {
    struct names outcome_names; /* possible paths */
    bool outcome_missing;       /* it may be missing */
    bool outcome_changed;       /* any contents are allowed */
    uint32_t
        outcome_object[OWNERS_MAX]; /* other files that may have the name */
    uint32_t outcome_hash[OWNERS_MAX];
    uint32_t outcome_owners;
};

static void outcome_owner(struct outcome *f, uint32_t object, uint32_t hash)
{
    if (f->outcome_owners == OWNERS_MAX) {
        f->outcome_changed = true;
        return;
    }
    f->outcome_object[f->outcome_owners] = object;
    f->outcome_hash[f->outcome_owners++] = hash;
}

static bool outcome_owns(const struct outcome *f, uint32_t object)
{
    for (uint32_t i = 0; i < f->outcome_owners; i++) {
        if (f->outcome_object[i] == object)
            return true;
    }
    return false;
}

static void outcome_of(struct cut *c, const struct change *ch,
                       struct outcome *f)
{
    bool of_path = names_has(&f->outcome_names, ch->change_path);
    bool of_other = names_has(&f->outcome_names, ch->change_other);

    switch (ch->change_kind) {
    case CHANGE_CONTENTS:
        f->outcome_changed |= outcome_owns(f, ch->change_object) || of_path;
        break;
    case CHANGE_REMOVED:
    case CHANGE_MADE:
        f->outcome_missing |= of_path;
        break;
    case CHANGE_MOVED:
    case CHANGE_REPLACED:
        if (of_path)
            names_add(&f->outcome_names, c, ch->change_other);
        if (of_other)
            outcome_owner(f, ch->change_object, ch->change_hash);
        break;
    default:
        break;
    }
    f->outcome_missing |= f->outcome_names.name_full;
}

static bool hash_good(const struct outcome *f, uint32_t hash)
{
    for (uint32_t i = 0; i < f->outcome_owners; i++) {
        if (f->outcome_hash[i] == hash)
            return true;
    }
    return f->outcome_changed;
}

static bool check_file(struct ext2 *fs, struct cut *c, const char *path,
                       const struct outcome *f)
{
    bool found = false;

    for (uint32_t i = 0; i < f->outcome_names.name_count; i++) {
        uint32_t hash = path_hash(fs, f->outcome_names.name_path[i]);

        if (hash != 0 && hash_good(f, hash))
            return true;
        found |= hash != 0;
    }
    return wrong(c, found ? "has wrong contents" : "is missing", path);
}

static bool check_dir(struct ext2 *fs, struct cut *c, const char *path,
                      const struct outcome *f)
{
    struct fs_attr attr;
    uint32_t file;

    for (uint32_t i = 0; i < f->outcome_names.name_count; i++) {
        if (path_find(fs, f->outcome_names.name_path[i], &file) == 0 &&
            ext2_inode(fs, file, &attr) == 0 &&
            attr.attr_type == FILE_DIRECTORY)
            return true;
    }
    return wrong(c, "is not a directory", path);
}

/* A name that was confirmed before the event `next`. */
static bool check_name(struct ext2 *fs, struct cut *c,
                       const struct confirmed *con, uint32_t next)
{
    struct outcome f = {0};

    names_add(&f.outcome_names, c, con->con_path);
    outcome_owner(&f, con->con_object, con->con_hash);
    for (uint32_t i = next; i < c->cut_end; i++)
        outcome_of(c, &c->cut_event[i].event_change, &f);
    if (f.outcome_missing)
        return true;
    c->cut_certain++;
    return con->con_hash != 0 ? check_file(fs, c, con->con_path, &f)
                              : check_dir(fs, c, con->con_path, &f);
}

/* The file of an fsync that had returned since the last sync. */
static void check_fsync(struct ext2 *fs, struct cut *c, uint32_t i)
{
    const struct event *e = &c->cut_event[i];
    struct confirmed con = {
        .con_object = e->event_change.change_object,
        .con_hash = e->event_change.change_hash,
    };

    if (e->event_change.change_kind != CHANGE_FSYNC ||
        e->event_end > c->cut_records)
        return;
    memcpy(con.con_path, e->event_change.change_path, MODEL_PATH);
    check_name(fs, c, &con, i + 1);
}

/* ---- forbidden contents ------------------------------------------------- */

static bool was_there(const struct cut *c, const char *path)
{
    for (uint32_t i = 0; c->cut_sync != NULL && i < c->cut_sync->event_names;
         i++) {
        if (strcmp(c->cut_sync->event_confirmed[i].con_path, path) == 0)
            return true;
    }
    for (uint32_t i = c->cut_first; i < c->cut_end; i++) {
        const struct change *ch = &c->cut_event[i].event_change;

        if (strcmp(ch->change_path, path) == 0 ||
            strcmp(ch->change_other, path) == 0)
            return true;
    }
    return false;
}

static bool expected(const struct cut *c, const char *path)
{
    struct names s = {.name_count = 0};

    if (strcmp(path, "/lost+found") == 0 ||
        (c->cut_shelters && strstr(path, "/.replaced-") != NULL))
        return true;
    names_add(&s, c, path);
    for (uint32_t i = 0; i < s.name_count; i++) {
        if (was_there(c, s.name_path[i]))
            return true;
    }
    return s.name_full;
}

static int check_found(void *arg, const char *path, uint32_t file,
                       const struct fs_attr *attr)
{
    struct cut *c = arg;

    (void)file;
    (void)attr;
    if (!expected(c, path))
        wrong(c, "never existed", path);
    return 0;
}

/* ---- cutting ------------------------------------------------------------ */

static void find_sync(struct cut *c, struct event *events, uint32_t steps,
                      uint32_t records)
{
    c->cut_event = events;
    c->cut_records = records;
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
    /* changes made in memory by then may have been written with the next */
    while (c->cut_end < steps && events[c->cut_end].event_start <= records)
        c->cut_end++;
}

/* Checks the contents of a mounted file system. */
static void check_contents(struct cut *c, struct ext2 *fs)
{
    if (path_walk(fs, "/", check_found, c) < 0)
        c->cut_wrong = "walking fails";
    for (uint32_t i = 0; c->cut_sync != NULL && i < c->cut_sync->event_names;
         i++)
        check_name(fs, c, &c->cut_sync->event_confirmed[i], c->cut_first);
    for (uint32_t i = c->cut_first; i < c->cut_end; i++)
        check_fsync(fs, c, i);
}

/* e2fsck -p may find errors, and repairs them by itself. */
static void check_e2fsck(struct cut *c, const char *path)
{
    char said[4096];
    struct disk disk;
    struct ext2 *fs;
    int status = host_e2fsck("-p -f", path, said, sizeof(said));

    c->cut_shelters = true;
    if (status != 0 && status != 1) {
        host_print("%s", said);
        c->cut_wrong = "e2fsck cannot repair it";
        return;
    }
    disk_load(&disk, path);
    fs = disk_mount(&disk, CACHE);
    check_contents(c, fs);
    ext2_free(fs);
    disk_close(&disk);
}

/* Mounting repairs the same errors; then e2fsck finds nothing. */
static void check_recovery(struct cut *c, struct disk *disk, const char *path,
                           bool ask)
{
    char said[4096];
    struct ext2 *fs = disk_mount(disk, CACHE);

    check_contents(c, fs);
    if (ext2_read_only(fs) != NULL) {
        host_print("%s\n", disk->disk_said);
        c->cut_wrong = "it cannot be mounted";
    } else if (ext2_unmount(fs) < 0) {
        c->cut_wrong = "it cannot be unmounted";
    }
    ext2_free(fs);
    if (!ask || c->cut_wrong != NULL)
        return;
    disk_save(disk, path);
    if (host_e2fsck("-f -n", path, said, sizeof(said)) != 0) {
        host_print("%s%s\n", said, disk->disk_said);
        c->cut_wrong = "e2fsck finds errors after a mount";
    }
}

int powercut(const char *image, uint32_t seed, uint32_t steps, uint32_t cuts)
{
    char path[256];
    uint32_t random = seed + 77;
    uint32_t certain = 0;
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
        certain += c.cut_certain;
    }
    host_print("%u cuts in %u writes, %u names certain\n", cuts,
               disk.disk_records, certain);
    for (uint32_t i = 0; i < steps; i++)
        free(events[i].event_confirmed);
    free(events);
    free(before);
    disk_close(&cut_disk);
    disk_close(&disk);
    return 0;
}
