/*
 * Reading directories: getdents with a buffer.
 */
#pragma once

#include "kernel/abi/types.h"

typedef struct dir DIR;

/* NULL and errno on failure: ENOENT, ENOTDIR, ENOMEM … */
DIR *opendir(const char *path);

/* The next entry ("." and ".." too), valid until the next call on this DIR;
 * NULL at the end, or on an error with errno set. */
struct dirent *readdir(DIR *d);

/* 0, or -1 and errno: also if a readdir failed, so that a program which checks
 * this knows that it has seen all entries. */
int closedir(DIR *d);
