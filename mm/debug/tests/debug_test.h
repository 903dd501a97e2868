/*
 * What the tests of the debugging modes share: caches in modes, errors that are
 * expected, and the repair of buffers with which an error was found.
 *
 * Tests that make the allocator report something run on the host only, where
 * its output is captured; see test_error_check.
 */
#pragma once

#include "tools/workshop/stress/fail.h"
#include "mm/debug/debug.h"
#include "mm/tests/kmem_test.h"

/* The modes with these letters. */
unsigned test_modes(const char *letters);

/* A cache "t_debug" of this kind in these modes. */
struct kmem_cache *test_debug(const char *letters, size_t size, size_t align,
                              bool constructed);

/* The same cache in other modes; fails the case if that is refused. */
void test_switch(struct kmem_cache *cp, const char *letters);

/* The bufctl of a buffer of the debug layout, in use or free. */
struct kmem_bufctl_debug *test_bufctl(struct kmem_cache *cp, const void *buf);

/* Repairs a buffer that was busy when its damage stopped the machine, and frees
 * it. */
void test_accept_damage(struct kmem_cache *cp, void *buf);

#ifdef MM_HOST
/* `stmt` must make the allocator report an error of this kind, and stop. The
 * log goes on. */
#define TEST_ERROR(kind, stmt)                                                 \
    do {                                                                       \
        test_error_begin();                                                    \
        KT_PANICS(stmt, kmem_error_title(kind));                               \
        test_error_check(__FILE__, __LINE__, kind);                            \
    } while (0)

/* `stmt` must make it report nothing. */
#define TEST_NO_ERROR(stmt)                                                    \
    do {                                                                       \
        test_error_begin();                                                    \
        stmt;                                                                  \
        test_error_check(__FILE__, __LINE__, KMERR_NONE);                      \
    } while (0)

void test_error_begin(void);
void test_error_check(const char *file, int line, enum kmem_error kind);

/* host_printed contains `text` after `from`: returns its end. Fails the
 * case at this line, and returns `from`, if it does not. */
#define TEST_SAYS(from, text) test_says(__FILE__, __LINE__, from, text)
const char *test_says(const char *file, int line, const char *from,
                      const char *text);
#endif
