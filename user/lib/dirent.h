/*
 * Reading directories: getdents with a buffer in front of it.
 */
#pragma once

#include "kernel/abi/types.h"

typedef struct dir DIR;

/* NULL and errno if that fails: ENOENT, ENOTDIR, ENOMEM … */
DIR *opendir(const char *path);

/* The next entry ("." and ".." come too), good until the next call on this
 * DIR; NULL at the end, or with errno set if it was an error. */
struct dirent *readdir(DIR *d);

int closedir(DIR *d);
