/*
 * Running a case, and what became of it (ktest.h).
 */
#pragma once

#include "tools/workshop/ktest/ktest.h"

/* Whether a case belongs to `what`: NULL for all, "suite" or "suite.case". */
bool ktest_selected(const struct ktest *t, const char *what);

/* Whether a case does. False after an error line. */
bool ktest_exists(const char *what);

/* Calls `run` for each case that belongs to `what`, with its number from 1 on,
 * until ^C. `run` prints the case's line of KTAP and returns whether it passed;
 * printed here are the lines before and after. 0, or 1 if a case failed. */
int ktest_each(const char *what,
               bool (*run)(const struct ktest *t, unsigned number, void *arg),
               void *arg);

/* Runs a case. If it is stopped, calls `undo` unless that is NULL, after
 * what the case has to undo. */
void ktest_run(void (*run)(void), void (*undo)(void *arg));

/* For leak_check: a leak is a failed expectation. */
void ktest_leak(const char *line);

/* While `when` is set and returns true, a failed expectation skips the case.
 * NULL: it fails, as always. */
void ktest_excuse(bool (*when)(void));

/* Expectations that failed since. */
unsigned ktest_failures(void);

/* Why the case was skipped since; "" if it was not. */
const char *ktest_skipped(void);
