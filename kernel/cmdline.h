/*
 * The kernel's command line: options given by the boot loader.
 */
#pragma once

#include "kernel/lib/option.h"

/* Copies the line and carries out its options, one after the other. Those not
 * known, or with a wrong value, are reported and ignored. */
void cmdline_parse(const char *line);

/* The same with the caller's table of `n` options. Splits `text` in place, and
 * the values point into it, so it must last as long as they do. Returns the
 * number of ignored words. */
unsigned cmdline_read(char *text, const struct boot_option *table, size_t n);

/* The value of mem= in bytes; SIZE_MAX without it. */
size_t cmdline_mem_limit(void);

/* Whether the heap is debugged: kmem.debug=, or a kernel with DEBUG=1. */
bool cmdline_debugs(void);
