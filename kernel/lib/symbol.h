/*
 * From addresses to functions, by a table that the build extracts from the
 * linked kernel (tools/run/symbols.py) and links into it.
 */
#pragma once

#include "kernel/lib/types.h"

struct symbol {
    uintptr_t symbol_addr;
    const char *symbol_name; /* NULL: the function before ends here */
};

/* Generated. symbol_functions entries for functions, sorted by address, then
 * objects; symbol_count in all. */
extern const struct symbol symbol_table[];
extern const uint32_t symbol_functions;
extern const uint32_t symbol_count;

/* The function that contains `addr`, or NULL. *offset (may be NULL) gets the
 * distance from its start. */
const char *symbol_lookup(uintptr_t addr, uintptr_t *offset);

/* The data object at or before `addr`, or NULL; *offset gets the distance. */
const char *symbol_object(uintptr_t addr, uintptr_t *offset);

/* The address of the function or object called `name`, or 0. */
uintptr_t symbol_address(const char *name);

/* Writes "name+0x1c", or the address in hexadecimal if there is no symbol, and
 * returns buf. */
const char *symbol_format(uintptr_t addr, char *buf, size_t size);

/* The same for a return address. If the call was the last instruction of a
 * function, as of one that never returns, another function may begin there. */
const char *symbol_caller(uintptr_t addr, char *buf, size_t size);
