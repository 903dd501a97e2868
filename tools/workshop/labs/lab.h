/*
 * Tests of the labs (docs/labs.md): how to write one, and functions for them.
 *
 *     LAB_TEST(2, split, LAB_EARLY)
 *     {
 *         KT_EQ(order_of(page), 0);
 *     }
 *
 * is the test 2.split. The kernel option grade=2.split runs it, alone, and ends
 * the machine: so every test has a machine of its own, and cannot break another
 * test. Expectations are those of tools/workshop/ktest/ktest.h.
 * The tested code may be missing or wrong in any way; a test says what it
 * expected, in words that help its author.
 */
#pragma once

#include "kernel/x86/multiboot.h"
#include "tools/workshop/ktest/ktest.h"

/* When a test runs. */
enum lab_stage {
    LAB_EARLY, /* before memmap_init: no page array, no heap; interrupts off.
                  The first 896 MiB are mapped. */
    LAB_PAGES, /* after it, before kmem_init: frames, buddy, segkmem */
    LAB_UP,    /* in place of the shell, in the kernel's own task */
    LAB_BARE,  /* the same; the check for leaks does not use kmem_reap() and
                  inode_reclaim(), and compares objects in use alone */
};

struct lab_test {
    const char *lab_name; /* "2.split" */
    enum lab_stage lab_stage;
    void (*lab_run)(void);
    const char *lab_panics; /* how the text of the panic that ends it begins or
                               ends, or NULL */
};

extern const struct lab_test __start_lab_tests[];
extern const struct lab_test __stop_lab_tests[];

#define LAB_TEST(lab, name, stage) LAB_TEST_PANICS(lab, name, stage, NULL)

/* A test that the tested code must end, with a panic whose text begins or ends
 * with `part`, so that it cannot name every reason, after the test has called
 * lab_must_panic(). It has passed if no expectation failed before; no leaks are
 * looked for. One that returns has failed. */
#define LAB_TEST_PANICS(lab, name, stage, part)                                \
    static void lab_##lab##_##name(void);                                      \
    static const struct lab_test lab_entry_##lab##_##name __attribute__((      \
        used, section("lab_tests"), aligned(sizeof(void *)))) = {              \
        #lab "." #name, stage, lab_##lab##_##name, part};                      \
    static void lab_##lab##_##name(void)

/* ---- for tests ---------------------------------------------------------- */

/* Unused memory, zeroed, at a multiple of `align`, a power of two. NULL if
 * there is not so much. LAB_EARLY only; never freed. */
void *lab_arena(size_t bytes, size_t align);

/* A row of the leak table that the test counts itself, a leak if the numbers
 * differ: "free pages", now, before. The heap's own check, in stages LAB_UP
 * and LAB_BARE, needs no rows. */
void lab_held(const char *what, size_t now, size_t before);

/* A hanging test is ended after so many seconds of the machine's time, counted
 * from here; 2 until a test says otherwise, at most 30. */
void lab_seconds(unsigned seconds);

/* The code that follows must panic: in a LAB_TEST_PANICS, while it runs. */
void lab_must_panic(void);

/* ---- for the command `lab` ---------------------------------------------- */

/* Runs a test of stages LAB_UP and LAB_BARE in a running kernel, leaks
 * included. True if it passed. */
bool labs_try(const struct lab_test *t);

/* The test of that name, or NULL. */
const struct lab_test *labs_find(const char *name);
