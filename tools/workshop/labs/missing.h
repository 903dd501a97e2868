/*
 * What stands in the hand-out of a lab where its solution stood
 * (docs/labs.md). Each home says it in its own way: the kernel panics, a
 * program ends, the tests on the host fail.
 */
#pragma once

/* Task "2.1" is to be written; `page` is the hand-out's text about it. */
void lab_missing(const char *task, const char *page)
    __attribute__((noreturn, cold));
