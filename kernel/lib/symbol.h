/*
 * From an address to the function that contains it, from a table that the
 * build takes out of the linked kernel (tools/symbols.py) and links in again.
 */
#pragma once

#include "kernel/lib/types.h"

struct symbol {
    uintptr_t symbol_addr;
    const char *symbol_name;
};

/* The function that contains `addr`, or NULL if none does. *offset (may be
 * NULL) gets the distance from its start. */
const char *symbol_lookup(uintptr_t addr, uintptr_t *offset);

/* The address of the function or object called `name`, or 0. */
uintptr_t symbol_address(const char *name);

/* Writes "name+0x1c", or the bare hexadecimal address where no symbol fits,
 * and returns buf. */
const char *symbol_format(uintptr_t addr, char *buf, size_t size);
