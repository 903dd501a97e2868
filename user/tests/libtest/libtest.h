/*
 * Tests of the C library and of the small programs, as a program: prints KTAP
 * (the kernel's tests do too), ends with status 1 if a case failed.
 *
 * Each part of the library has a file. A case registers itself in the linker
 * section `tests`, as those of usertests do.
 */
#pragma once

#include "user/lib/unistd.h"

struct test {
    const char *test_name; /* "part.case" */
    void (*test_run)(void);
};

extern const struct test __start_tests[];
extern const struct test __stop_tests[];

/* A case, in the order of the source: TEST(malloc, sizes) { ... }. */
#define TEST(part, name)                                                       \
    static void test_##part##_##name(void);                                    \
    static const struct test entry_##part##_##name __attribute__((             \
        used, no_reorder, section("tests"), aligned(sizeof(void *)))) = {      \
        #part "." #name, test_##part##_##name};                                \
    static void test_##part##_##name(void)

/* Reports a failure and continues. */
void test_failed(const char *file, int line, const char *what);

#define CHECK(e)                                                               \
    do {                                                                       \
        if (!(e))                                                              \
            test_failed(__FILE__, __LINE__, #e);                               \
    } while (0)

/* Runs `f` in a child without stderr; returns its status. */
int test_in_child(void (*f)(void));

/* Runs f(arg) in a child and stores its output as a string; returns its status.
 */
int test_output(void (*f)(const void *arg), const void *arg, char *text,
                size_t size);
