/*
 * The mounts, as /proc/mounts and /proc/statfs list them.
 */
#pragma once

#include "user/lib/stdio.h"

/* Copies the path of the next mount from the open list, as it was before it was
 * escaped for a column. False at the end, or after an error. */
bool mounts_next(FILE *list, char path[PATH_MAX]);

/* The same for /proc/statfs, with the mount's figures. *replied is false if its
 * server gave none in the five seconds that all servers have together. */
bool statfs_next(FILE *list, char path[PATH_MAX], struct fs_stat *out,
                 bool *replied);
