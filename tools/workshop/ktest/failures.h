/*
 * Running a case, and what became of it (ktest.h).
 */
#pragma once

#include "tools/workshop/ktest/ktest.h"

/* Whether a case belongs to `what`: NULL for all, "suite" or "suite.case"; and
 * how many do. */
bool ktest_selected(const struct ktest *t, const char *what);
unsigned ktest_count(const char *what);

/* Runs a case. If it is stopped, calls `undo` unless that is NULL, after
 * what the case has to undo. */
void ktest_run(void (*run)(void), void (*undo)(void *arg));

/* While `when` is set and returns true, a failed expectation skips the case.
 * NULL: it fails, as always. */
void ktest_excuse(bool (*when)(void));

/* Expectations that failed since. */
unsigned ktest_failures(void);

/* Why the case was skipped since; "" if it was not. */
const char *ktest_skipped(void);
