/*
 * Files to standard output, and lines out of files: what many small programs
 * consist of.
 */
#pragma once

#include "user/lib/stdio.h"

/* Prints a file's contents; "-" is the standard input. False after a message
 * if that failed. Ends the program if nobody reads the output. */
bool copy_file(const char *path);

/*
 * Calls `each` for every file named in `paths`, which NULL ends, opened for
 * reading; for the standard input (whose name is "-") if there is none. Files
 * that cannot be opened are reported. False if there was one, or `each`
 * returned false.
 */
bool for_each_file(char *const paths[],
                   bool (*each)(FILE *f, const char *name));
