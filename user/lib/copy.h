/*
 * Copying files to standard output and iterating over input files, for small
 * programs.
 */
#pragma once

#include "user/lib/stdio.h"

/* Writes bytes to standard output, past stdio. If it cannot, it ends the
 * program with status 1, after a message unless the output has no reader. */
void put_bytes(const void *bytes, size_t n);

/* Prints a file's contents; "-" is the standard input. Prints a message and
 * returns false on failure. Ends the program if the output has no reader. */
bool copy_file(const char *path);

/*
 * Calls `each` for every file in `paths`, which NULL ends, opened for reading;
 * for the standard input (named "-") if there is none. Reports files that
 * cannot be opened, and those whose ferror() is not 0 after `each`. False if
 * there was one, or if `each` returned false.
 */
bool for_each_file(char *const paths[],
                   bool (*each)(FILE *f, const char *name));
