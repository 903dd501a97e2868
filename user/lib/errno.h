/*
 * Error numbers, and where the last one is.
 */
#pragma once

#include "kernel/abi/errno.h"

/* Set by whatever failed and returned -1 or NULL; nobody sets it to 0. A
 * program is one task, so there is one. */
extern int errno;
