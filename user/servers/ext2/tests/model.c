/* The model, and the workload. */
#include "user/servers/ext2/tests/model.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "user/lib/stdlib.h"
#include "user/servers/ext2/tests/disk.h"
#include "user/servers/ext2/tests/paths.h"
#include "user/servers/ext2/tests/suites.h"

static uint32_t dice(struct model *m, uint32_t n)
{
    return random_next(&m->model_random) % n;
}

static bool disagree(struct model *m, const char *what)
{
    m->model_failed = what;
    return false;
}

uint32_t model_hash(const uint8_t *data, uint32_t n)
{
    uint32_t hash = 2166136261u;

    for (uint32_t i = 0; i < n; i++)
        hash = (hash ^ data[i]) * 16777619u;
    return hash | 1;
}

uint32_t path_hash(struct ext2 *fs, const char *path)
{
    int32_t size;
    uint8_t *data = path_read(fs, path, &size);
    uint32_t hash = 0;

    if (data != NULL)
        hash = model_hash(data, (uint32_t)size);
    free(data);
    return hash;
}

/* ---- the model ----------------------------------------------------------- */

struct shadow *model_find(struct model *m, const char *path)
{
    for (uint32_t i = 0; i < m->model_names; i++) {
        if (strcmp(m->model_name[i].sh_path, path) == 0)
            return &m->model_name[i];
    }
    return NULL;
}

static void add(struct model *m, const char *path, struct object *o)
{
    struct shadow *s = &m->model_name[m->model_names++];

    snprintf(s->sh_path, sizeof(s->sh_path), "%s", path);
    s->sh_object = o;
    o->obj_names++;
}

static void drop(struct model *m, struct shadow *s)
{
    struct object *o = s->sh_object;

    *s = m->model_name[--m->model_names];
    if (--o->obj_names == 0) {
        free(o->obj_data);
        free(o);
    }
}

static void resize(struct object *o, uint32_t size)
{
    o->obj_data = realloc(o->obj_data, size + 1u);
    if (size > o->obj_size)
        memset(o->obj_data + o->obj_size, 0, size - o->obj_size);
    o->obj_size = size;
}

static bool has_children(const struct model *m, const char *path)
{
    size_t n = strlen(path);

    for (uint32_t i = 0; i < m->model_names; i++) {
        if (strncmp(m->model_name[i].sh_path, path, n) == 0 &&
            m->model_name[i].sh_path[n] == '/')
            return true;
    }
    return false;
}

/* ---- choosing ------------------------------------------------------------ */

/* A random entry, a directory or not; or NULL. */
static struct shadow *choose(struct model *m, bool dir)
{
    uint32_t from = m->model_names > 0 ? dice(m, m->model_names) : 0;

    for (uint32_t i = 0; i < m->model_names; i++) {
        struct shadow *s = &m->model_name[(from + i) % m->model_names];

        if (s->sh_object->obj_dir == dir)
            return s;
    }
    return NULL;
}

/* A random path, which may be in use. There are few names, so that they repeat;
 * those of directories have equal lengths, except for some of move_to. */
static void new_path(struct model *m, bool dir, char *out)
{
    struct shadow *parent = dice(m, 4) > 0 ? choose(m, true) : NULL;
    const char *at = parent == NULL ? "" : parent->sh_path;

    if (strlen(at) > MODEL_PATH - 72)
        at = "";
    if (dir) {
        snprintf(out, MODEL_PATH, "%.56s/dir%02u", at, (unsigned)dice(m, 12));
    } else {
        uint32_t n = dice(m, 60);

        snprintf(out, MODEL_PATH, "%.56s/file%0*u", at, (int)(2 + n % 7 * 9),
                 (unsigned)n);
    }
}

static bool note(struct model *m, enum change_kind kind, const char *path,
                 const char *other)
{
    m->model_last.change_kind = kind;
    snprintf(m->model_last.change_path, MODEL_PATH, "%s", path);
    snprintf(m->model_last.change_other, MODEL_PATH, "%s", other);
    return true;
}

/* ---- operations ---------------------------------------------------------- */

static bool do_create(struct model *m, bool dir)
{
    char path[MODEL_PATH];
    bool there;
    int r;

    if (m->model_names >= MODEL_NAMES - 1)
        return true;
    new_path(m, dir, path);
    there = model_find(m, path) != NULL;
    r = path_create(m->model_fs, path, dir ? FILE_DIRECTORY : FILE_REGULAR, 0);
    if (r == -ENOSPC)
        return true;
    if (r != (there ? -EEXIST : 0))
        return disagree(m, "create");
    if (!there) {
        struct object *o = calloc(1, sizeof(*o));

        o->obj_dir = dir;
        o->obj_id = ++m->model_objects;
        add(m, path, o);
        note(m, CHANGE_MADE, path, "");
    }
    return true;
}

static bool do_write(struct model *m)
{
    struct shadow *s = choose(m, false);
    uint32_t offset, n;
    uint8_t *data;
    int r;

    if (s == NULL)
        return true;
    offset =
        dice(m, 3) == 0 ? dice(m, m->model_file_max) : s->sh_object->obj_size;
    if (m->model_mode == MODE_LARGE && dice(m, 4) == 0)
        offset = dice(m, 20 * m->model_file_max);
    n = 1 + dice(m, dice(m, 4) == 0 ? m->model_file_max : 3000);
    data = malloc(n);
    pattern(data, n, random_next(&m->model_random));
    note(m, CHANGE_CONTENTS, s->sh_path, "");
    m->model_last.change_object = s->sh_object->obj_id;
    r = path_write(m->model_fs, s->sh_path, offset, data, n);
    if (r > 0) {
        if (offset + (uint32_t)r > s->sh_object->obj_size)
            resize(s->sh_object, offset + (uint32_t)r);
        memcpy(s->sh_object->obj_data + offset, data, (uint32_t)r);
    }
    free(data);
    return r > 0 || r == -ENOSPC ? true : disagree(m, "write");
}

static bool do_truncate(struct model *m)
{
    struct shadow *s = choose(m, false);
    uint32_t size;

    if (s == NULL)
        return true;
    size = dice(m, dice(m, 2) ? s->sh_object->obj_size + 1 : m->model_file_max);
    note(m, CHANGE_CONTENTS, s->sh_path, "");
    m->model_last.change_object = s->sh_object->obj_id;
    if (path_truncate(m->model_fs, s->sh_path, size) != 0)
        return disagree(m, "truncate");
    resize(s->sh_object, size);
    return true;
}

static bool do_unlink(struct model *m)
{
    struct shadow *s = choose(m, false);

    if (s == NULL)
        return true;
    note(m, CHANGE_REMOVED, s->sh_path, "");
    if (path_unlink(m->model_fs, s->sh_path) != 0)
        return disagree(m, "unlink");
    drop(m, s);
    return true;
}

static bool do_rmdir(struct model *m)
{
    struct shadow *s = choose(m, true);
    int r;

    if (s == NULL)
        return true;
    r = path_rmdir(m->model_fs, s->sh_path);
    if (has_children(m, s->sh_path))
        return r == -ENOTEMPTY
                   ? true
                   : disagree(m, "rmdir of a directory with entries");
    if (r != 0)
        return disagree(m, "rmdir");
    note(m, CHANGE_REMOVED, s->sh_path, "");
    drop(m, s);
    return true;
}

static bool do_link(struct model *m)
{
    struct shadow *s = choose(m, false);
    char path[MODEL_PATH];
    bool there;
    int r;

    if (s == NULL || m->model_names >= MODEL_NAMES - 1)
        return true;
    new_path(m, false, path);
    there = model_find(m, path) != NULL;
    r = path_link(m->model_fs, s->sh_path, path);
    if (r == -ENOSPC)
        return true;
    if (r != (there ? -EEXIST : 0))
        return disagree(m, "link");
    if (!there) {
        add(m, path, s->sh_object);
        note(m, CHANGE_MADE, path, "");
    }
    return true;
}

static bool do_rename(struct model *m)
{
    struct shadow *s = choose(m, false);
    struct shadow *victim;
    char path[MODEL_PATH], from[MODEL_PATH];
    int r;

    if (s == NULL)
        return true;
    new_path(m, false, path);
    snprintf(from, sizeof(from), "%s", s->sh_path);
    r = path_rename(m->model_fs, from, path);
    if (r == -ENOSPC)
        return true;
    if (r != 0)
        return disagree(m, "rename");
    victim = model_find(m, path);
    note(m, victim == NULL ? CHANGE_MOVED : CHANGE_REPLACED, from, path);
    m->model_last.change_object = s->sh_object->obj_id;
    m->model_last.change_hash =
        model_hash(s->sh_object->obj_data, s->sh_object->obj_size);
    if (victim != NULL && victim->sh_object == s->sh_object)
        return note(m, CHANGE_NONE, "", "");
    if (victim != NULL)
        drop(m, victim);
    snprintf(model_find(m, from)->sh_path, MODEL_PATH, "%s", path);
    return true;
}

/* Length of a path before its last name. */
static int parent_size(const char *path)
{
    size_t n = strlen(path);

    while (path[n - 1] != '/')
        n--;
    return (int)n;
}

/* A new name for a directory: in the same directory or another; a longer one;
 * or that of another directory. */
static void move_to(struct model *m, const char *from, char *out)
{
    const char *other = choose(m, true)->sh_path;
    uint32_t n = dice(m, 12);

    switch (dice(m, 6)) {
    case 0:
        snprintf(out, MODEL_PATH, "%s", other);
        break;
    case 1:
        snprintf(out, MODEL_PATH, "%.56s/directory-with-a-long-name-%02u",
                 strlen(other) > MODEL_PATH - 72 ? "" : other, (unsigned)n);
        break;
    case 2:
    case 3:
        new_path(m, true, out);
        break;
    default:
        snprintf(out, MODEL_PATH, "%.*sdir%02u", parent_size(from), from,
                 (unsigned)n);
    }
}

static bool below(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    return strncmp(path, dir, n) == 0 && (path[n] == 0 || path[n] == '/');
}

/* Whether all names below a directory stay short enough. */
static bool names_fit(const struct model *m, const char *from, const char *to)
{
    for (uint32_t i = 0; i < m->model_names; i++) {
        const char *path = m->model_name[i].sh_path;

        if (below(path, from) &&
            strlen(path) - strlen(from) + strlen(to) >= MODEL_PATH)
            return false;
    }
    return true;
}

static void move_names(struct model *m, const char *from, const char *to)
{
    char path[2 * MODEL_PATH];

    for (uint32_t i = 0; i < m->model_names; i++) {
        struct shadow *s = &m->model_name[i];

        if (!below(s->sh_path, from))
            continue;
        snprintf(path, sizeof(path), "%s%s", to, s->sh_path + strlen(from));
        memcpy(s->sh_path, path, MODEL_PATH);
    }
}

static bool do_rename_dir(struct model *m)
{
    struct shadow *s = choose(m, true);
    struct shadow *victim;
    char from[MODEL_PATH], to[MODEL_PATH];
    int want, r;

    if (s == NULL)
        return true;
    snprintf(from, sizeof(from), "%s", s->sh_path);
    move_to(m, from, to);
    if (below(to, from) || !names_fit(m, from, to))
        return true;
    victim = model_find(m, to);
    want = victim != NULL && has_children(m, to) ? -ENOTEMPTY : 0;
    r = path_rename(m->model_fs, from, to);
    m->model_refused += r == -EXDEV;
    if (r == -ENOSPC || (r == -EXDEV && want == 0))
        return true;
    if (r != want)
        return disagree(m, "rename of a directory");
    if (r < 0)
        return true;
    note(m, CHANGE_TREE, from, to);
    if (victim != NULL)
        drop(m, victim);
    move_names(m, from, to);
    return true;
}

static bool do_sync(struct model *m)
{
    note(m, CHANGE_SYNC, "", "");
    return ext2_sync(m->model_fs, 0) == 0 ? true : disagree(m, "sync");
}

static bool do_fsync(struct model *m)
{
    struct shadow *s = choose(m, false);

    if (s == NULL)
        return true;
    note(m, CHANGE_FSYNC, s->sh_path, "");
    m->model_last.change_object = s->sh_object->obj_id;
    m->model_last.change_hash =
        model_hash(s->sh_object->obj_data, s->sh_object->obj_size);
    return path_fsync(m->model_fs, s->sh_path) == 0 ? true
                                                    : disagree(m, "fsync");
}

bool model_step(struct model *m)
{
    /* limits of n for each operation, in the order of the tests below */
    static const uint8_t mix[MODES][9] = {
        {18, 25, 52, 58, 68, 71, 76, 88, 92},
        {12, 40, 48, 50, 58, 72, 74, 82, 93},
        {12, 15, 62, 72, 80, 81, 83, 91, 93},
    };
    const uint8_t *below = mix[m->model_mode];
    uint32_t n = dice(m, 100);

    note(m, CHANGE_NONE, "", "");
    if (n < below[0])
        return do_create(m, false);
    if (n < below[1])
        return do_create(m, true);
    if (n < below[2])
        return do_write(m);
    if (n < below[3])
        return do_truncate(m);
    if (n < below[4])
        return do_unlink(m);
    if (n < below[5])
        return do_rmdir(m);
    if (n < below[6])
        return do_link(m);
    if (n < below[7])
        return do_rename(m);
    if (n < below[8])
        return do_rename_dir(m);
    return dice(m, 3) == 0 ? do_sync(m) : do_fsync(m);
}

/* ---- comparing ----------------------------------------------------------- */

static int seen(void *arg, const char *path, uint32_t file,
                const struct fs_attr *attr)
{
    struct model *m = arg;
    struct shadow *s = model_find(m, path);

    (void)file;
    if (strcmp(path, "/lost+found") == 0)
        return 0;
    if (s == NULL)
        return disagree(m, "an unexpected name");
    if (s->sh_object->obj_dir != (attr->attr_type == FILE_DIRECTORY))
        disagree(m, "wrong type");
    if (!s->sh_object->obj_dir && attr->attr_nlink != s->sh_object->obj_names)
        disagree(m, "wrong number of links");
    return 0;
}

static bool same(struct model *m, const struct shadow *s)
{
    int32_t size;
    uint8_t *data = path_read(m->model_fs, s->sh_path, &size);
    bool good = data != NULL && (uint32_t)size == s->sh_object->obj_size &&
                memcmp(data, s->sh_object->obj_data, (uint32_t)size) == 0;

    free(data);
    return good;
}

bool model_compare(struct model *m)
{
    uint32_t file;

    for (uint32_t i = 0; i < m->model_names; i++) {
        const struct shadow *s = &m->model_name[i];

        if (path_find(m->model_fs, s->sh_path, &file) != 0)
            return disagree(m, "a missing name");
        if (!s->sh_object->obj_dir && s->sh_object->obj_size > 0 && !same(m, s))
            return disagree(m, "wrong contents");
    }
    if (path_walk(m->model_fs, "/", seen, m) < 0)
        return disagree(m, "walking");
    return m->model_failed == NULL;
}

void model_begin(struct model *m, struct ext2 *fs, uint32_t seed,
                 uint32_t file_max)
{
    memset(m, 0, sizeof(*m));
    m->model_fs = fs;
    m->model_random = seed * 2654435761u + 1;
    m->model_file_max = file_max;
    m->model_mode = seed % MODES;
}

void model_end(struct model *m)
{
    while (m->model_names > 0)
        drop(m, &m->model_name[m->model_names - 1]);
}
