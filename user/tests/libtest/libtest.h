/*
 * Tests of the C library and of the small programs, as a program: prints KTAP
 * (the kernel's tests do too), ends with status 1 if a case failed.
 *
 * Each part of the library has a file, whose table of cases main.c lists.
 */
#pragma once

#include "user/lib/unistd.h"

struct test {
    const char *test_name; /* "part.case" */
    void (*test_run)(void);
};

extern const struct test malloc_tests[];
extern const struct test memory_tests[];
extern const struct test text_tests[];
extern const struct test stdio_tests[];
extern const struct test process_tests[];
extern const struct test program_tests[];

/* Reports a failure and continues. */
void test_failed(const char *file, int line, const char *what);

#define CHECK(e)                                                               \
    do {                                                                       \
        if (!(e))                                                              \
            test_failed(__FILE__, __LINE__, #e);                               \
    } while (0)

/* Runs `f` in a child without stderr; returns its status. */
int test_in_child(void (*f)(void));
