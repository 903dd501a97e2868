/*
 * Error numbers, and the last error.
 */
#pragma once

#include "kernel/abi/errno.h"

/* Set by functions that fail and return -1 or NULL; never reset to 0. A program
 * is one task, so there is one. */
extern int errno;
