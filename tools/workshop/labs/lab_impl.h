/*
 * What the files of this folder share.
 */
#pragma once

#include "boot/multiboot.h"

/* Finds the memory that lab_arena gives; once, before it. */
void lab_arena_init(const struct multiboot_info *info);
