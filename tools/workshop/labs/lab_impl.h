/*
 * Shared by the files of this folder.
 */
#pragma once

#include "kernel/x86/multiboot.h"
#include "tools/workshop/labs/lab.h"

/* What became of the test: read from the machine's memory after its end
 * (tools/grading/stopped.py), hence volatile. */
extern volatile struct lab_result {
    const struct lab_test *over; /* NULL before */
    unsigned failures;           /* expectations */
    unsigned leaks;
} lab_result;

/* Finds the memory that lab_arena gives; once, before it. */
void lab_arena_init(const struct multiboot_info *info);
