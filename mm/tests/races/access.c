/*
 * The functions that instrumented code calls: gcc -fsanitize=thread inserts one
 * before each access to memory, and makes each atomic access by one. Instead of
 * the thread sanitizer's, these tell mm/tests/explore/, which may switch there.
 */
#include "mm/tests/explore/seeds.h"

#define POINT(at, size, kind)                                                  \
    do {                                                                       \
        if (explore_runs && seeds_accesses)                                    \
            explore_access(at, size, kind,                                     \
                           (uintptr_t)__builtin_return_address(0));            \
    } while (0)

void __tsan_init(void);
void __tsan_func_entry(void *caller);
void __tsan_func_exit(void);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void)
{
}

#define ACCESS(name, size, kind)                                               \
    void name(const void *at);                                                 \
    void name(const void *at)                                                  \
    {                                                                          \
        POINT(at, size, kind);                                                 \
    }
#define ACCESSES(size)                                                         \
    ACCESS(__tsan_read##size, size, EXPLORE_READ)                              \
    ACCESS(__tsan_write##size, size, EXPLORE_WRITE)                            \
    ACCESS(__tsan_unaligned_read##size, size, EXPLORE_READ)                    \
    ACCESS(__tsan_unaligned_write##size, size, EXPLORE_WRITE)
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_read_range(const void *at, size_t size);
void __tsan_write_range(const void *at, size_t size);

void __tsan_read_range(const void *at, size_t size)
{
    POINT(at, size, EXPLORE_READ);
}

void __tsan_write_range(const void *at, size_t size)
{
    POINT(at, size, EXPLORE_WRITE);
}

/* A relaxed load is a read without a lock on purpose (MM_UNLOCKED): a point,
 * but it conflicts with nothing. */
#define ATOMICS(bits)                                                          \
    uint##bits##_t __tsan_atomic##bits##_load(const uint##bits##_t *at,        \
                                              int order);                      \
    uint##bits##_t __tsan_atomic##bits##_load(const uint##bits##_t *at,        \
                                              int order)                       \
    {                                                                          \
        POINT(at, order == __ATOMIC_RELAXED ? 0 : bits / 8, EXPLORE_ATOMIC);   \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                          \
    }                                                                          \
    void __tsan_atomic##bits##_store(uint##bits##_t *at, uint##bits##_t value, \
                                     int order);                               \
    void __tsan_atomic##bits##_store(uint##bits##_t *at, uint##bits##_t value, \
                                     int order)                                \
    {                                                                          \
        (void)order;                                                           \
        POINT(at, bits / 8, EXPLORE_ATOMIC);                                   \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                         \
    }                                                                          \
    ATOMIC_CHANGE(bits, exchange, __atomic_exchange_n)                         \
    ATOMIC_CHANGE(bits, fetch_add, __atomic_fetch_add)                         \
    ATOMIC_CHANGE(bits, fetch_sub, __atomic_fetch_sub)
#define ATOMIC_CHANGE(bits, name, builtin)                                     \
    uint##bits##_t __tsan_atomic##bits##_##name(                               \
        uint##bits##_t *at, uint##bits##_t value, int order);                  \
    uint##bits##_t __tsan_atomic##bits##_##name(                               \
        uint##bits##_t *at, uint##bits##_t value, int order)                   \
    {                                                                          \
        (void)order;                                                           \
        POINT(at, bits / 8, EXPLORE_ATOMIC);                                   \
        return builtin(at, value, __ATOMIC_SEQ_CST);                           \
    }
ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)
