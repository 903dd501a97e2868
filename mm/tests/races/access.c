/*
 * Each access to memory is a point of mm/tests/explore/, which may switch to
 * another task there.
 */
#include "mm/tests/explore/seeds.h"

#define POINT(at, size, kind)                                                  \
    do {                                                                       \
        if (fibers_running != NO_FIBER && seeds_accesses)                      \
            explore_access(at, size, kind,                                     \
                           (uintptr_t)__builtin_return_address(0));            \
    } while (0)

#define ON_READ(at, size)   POINT(at, size, EXPLORE_READ)
#define ON_WRITE(at, size)  POINT(at, size, EXPLORE_WRITE)
#define ON_STORE(at, size)  POINT(at, size, EXPLORE_ATOMIC)
#define ON_CHANGE(at, size) POINT(at, size, EXPLORE_ATOMIC)
/* A relaxed load is a read without a lock on purpose: it conflicts with
 * nothing. */
#define ON_LOAD(at, size, order)                                               \
    POINT(at, (order) == __ATOMIC_RELAXED ? 0 : (size), EXPLORE_ATOMIC)

#include "mm/tests/races/instrumented.h"
