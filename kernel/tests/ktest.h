/*
 * The kernel's half of kernel/lib/ktest.h: how many expectations failed.
 */
#pragma once

#include "kernel/lib/ktest.h"

/* A case begins: none has failed. */
void ktest_begin(void);

/* Expectations that failed since. */
unsigned ktest_failures(void);
