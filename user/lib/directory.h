/*
 * Where things go: what programs that copy and move have in common.
 */
#pragma once

#include "kernel/abi/types.h"

bool is_folder(const char *path);

/* Where `from` is to go: `to` itself, or, if that is a folder, the place of
 * that name in it, put together in `inside`. NULL after a message. */
const char *place_in(const char *from, const char *to, char inside[PATH_MAX]);
