/*
 * The mounts, as /proc/mounts lists them.
 */
#pragma once

#include "user/lib/stdio.h"

/* Copies the path of the next mount from the open list, as it was before it was
 * escaped for a column. False at the end, or after an error. */
bool mounts_next(FILE *list, char path[PATH_MAX]);
