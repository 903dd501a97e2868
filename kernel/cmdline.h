/*
 * The kernel's command line: options given by the boot loader.
 */
#pragma once

#include "kernel/lib/types.h"

struct cmdline_option {
    const char *option_name; /* "mem=" */
    const char *option_form; /* "mem=MIB" */
    const char *option_help;
    /* Takes the value; false says that it is not a right one. */
    bool (*option_set)(const char *value);
};

/* Copies the line and carries out its options, one after the other. Those not
 * known, or with a wrong value, are reported and ignored. A key (gradekey=) is
 * wiped out of `line` and of the copy. */
void cmdline_parse(char *line);

/* The same by a table of `n` options of the caller's. Cuts `text` into pieces
 * that the options are given, so it must last as long as their values. Returns
 * how many words were ignored. */
unsigned cmdline_read(char *text, const struct cmdline_option *table, size_t n);

/* The value of run=: shell commands for after boot, or NULL. */
const char *cmdline_run(void);

/* The value of mem= in bytes; SIZE_MAX without it. */
size_t cmdline_mem_limit(void);

/* The value of kmem.fail=, NULL without it. */
const char *cmdline_fail(void);

/* The value of start=, "" without it; at most so many characters. */
const char *cmdline_start(void);
#define CMDLINE_START_MAX 120

/* The value of kmem.verify=, 0 without it. */
uint32_t cmdline_verify(void);

/* All options; *n gets their number. */
const struct cmdline_option *cmdline_options(size_t *n);
