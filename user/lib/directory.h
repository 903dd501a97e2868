/*
 * The target of a copy or a move (cp, mv).
 */
#pragma once

#include "kernel/abi/types.h"

bool is_directory(const char *path);

/* The path that `from` gets: `to` itself, or, if that is a directory, the same
 * name in it, composed in `inside`. NULL after a message. */
const char *target_path(const char *from, const char *to,
                        char inside[PATH_MAX]);
