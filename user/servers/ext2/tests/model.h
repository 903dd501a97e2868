/*
 * A model of a file system in plain memory: its expected contents. A seeded
 * workload makes each change to both, and the two must agree.
 */
#pragma once

#include "user/servers/ext2/ext2.h"

#define MODEL_NAMES 160u
#define MODEL_PATH  128u

struct object {
    uint32_t obj_id;
    uint32_t obj_names;
    bool obj_dir;
    uint32_t obj_size;
    uint8_t *obj_data;
};

struct shadow {
    char sh_path[MODEL_PATH];
    struct object *sh_object;
};

/* The effect of an operation on a name. */
enum change_kind {
    CHANGE_NONE,
    CHANGE_MADE,     /* it did not exist before */
    CHANGE_CONTENTS, /* written, truncated or extended */
    CHANGE_REMOVED,
    CHANGE_MOVED,    /* it has another name: change_other, which was free */
    CHANGE_REPLACED, /* change_other lost its file to this */
    CHANGE_TREE,     /* a directory has another name, change_other */
    CHANGE_SYNC,
    CHANGE_FSYNC, /* of this name's file */
};

struct change {
    enum change_kind change_kind;
    char change_path[MODEL_PATH];
    char change_other[MODEL_PATH];
    uint32_t change_object; /* its obj_id */
    uint32_t change_hash;   /* of the file that was moved, or synced */
};

struct model {
    struct ext2 *model_fs;
    struct shadow model_name[MODEL_NAMES];
    uint32_t model_names;
    enum {
        MODE_MIXED,
        MODE_DIRECTORIES,
        MODE_LARGE,
        MODES
    } model_mode;
    uint32_t model_objects; /* created so far */
    uint32_t model_random;
    uint32_t model_file_max; /* bytes */
    uint32_t model_refused;  /* moves of directories: EXDEV */
    struct change model_last;
    const char *model_failed; /* the disagreement */
};

void model_begin(struct model *m, struct ext2 *fs, uint32_t seed,
                 uint32_t file_max);
void model_end(struct model *m);

/* Makes one operation on both; false if they disagree. ENOSPC counts as
 * agreement, and so does the refusal to move a directory. */
bool model_step(struct model *m);

/* Compares the file system with the model. */
bool model_compare(struct model *m);

struct shadow *model_find(struct model *m, const char *path);
uint32_t model_hash(const uint8_t *data, uint32_t n);
/* The hash of a file in a file system; 0: there is none. */
uint32_t path_hash(struct ext2 *fs, const char *path);
