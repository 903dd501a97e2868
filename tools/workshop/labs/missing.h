/*
 * In the hand-out of a lab, a call of lab_missing() replaces each part of the
 * solution (docs/labs.md). Then the kernel panics, a program ends, or the tests
 * on the host fail.
 */
#pragma once

/* Task "2.1" is to be written; `page` is the hand-out's text about it. */
void lab_missing(const char *task, const char *page)
    __attribute__((noreturn, cold));
