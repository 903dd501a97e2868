/*
 * Shared by the files of this folder.
 */
#pragma once

#include "kernel/x86/multiboot.h"

/* Finds the memory that lab_arena gives; once, before it. */
void lab_arena_init(const struct multiboot_info *info);
