/*
 * How many expectations of the running case failed (ktest.h).
 */
#pragma once

#include "tools/workshop/ktest/ktest.h"

/* A case begins: none has failed. */
void ktest_begin(void);

/* Expectations that failed since. */
unsigned ktest_failures(void);

/* Why the case was skipped since; "" if it was not. */
const char *ktest_skipped(void);
