/*
 * The functions that instrumented code calls: gcc -fsanitize=thread inserts one
 * before each access to memory, and makes each atomic access by one. Instead of
 * the thread sanitizer's, these are a test program's own. The one file of it
 * that includes this defines, each for `size` bytes at `at`:
 *
 *     ON_READ(at, size)
 *     ON_WRITE(at, size)
 *     ON_LOAD(at, size, order)     atomic; a relaxed load is MM_UNLOCKED's
 *     ON_STORE(at, size)
 *     ON_CHANGE(at, size)          a read and a write in one instruction
 */
#include "kernel/lib/types.h"

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

#define ACCESS(name, size, on)                                                 \
    void name(const void *at);                                                 \
    void name(const void *at)                                                  \
    {                                                                          \
        on(at, size);                                                          \
    }
#define ACCESSES(size)                                                         \
    ACCESS(__tsan_read##size, size, ON_READ)                                   \
    ACCESS(__tsan_write##size, size, ON_WRITE)                                 \
    ACCESS(__tsan_unaligned_read##size, size, ON_READ)                         \
    ACCESS(__tsan_unaligned_write##size, size, ON_WRITE)
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_read_range(const void *at, size_t size);
void __tsan_write_range(const void *at, size_t size);

void __tsan_read_range(const void *at, size_t size)
{
    ON_READ(at, size);
}

void __tsan_write_range(const void *at, size_t size)
{
    ON_WRITE(at, size);
}

#define ATOMICS(bits)                                                          \
    uint##bits##_t __tsan_atomic##bits##_load(const uint##bits##_t *at,        \
                                              int order);                      \
    uint##bits##_t __tsan_atomic##bits##_load(const uint##bits##_t *at,        \
                                              int order)                       \
    {                                                                          \
        ON_LOAD(at, bits / 8, order);                                          \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                          \
    }                                                                          \
    void __tsan_atomic##bits##_store(uint##bits##_t *at, uint##bits##_t value, \
                                     int order);                               \
    void __tsan_atomic##bits##_store(uint##bits##_t *at, uint##bits##_t value, \
                                     int order)                                \
    {                                                                          \
        (void)order;                                                           \
        ON_STORE(at, bits / 8);                                                \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                         \
    }                                                                          \
    bool __tsan_atomic##bits##_compare_exchange_strong(                        \
        uint##bits##_t *at, uint##bits##_t *wanted, uint##bits##_t value,      \
        int order, int otherwise);                                             \
    bool __tsan_atomic##bits##_compare_exchange_strong(                        \
        uint##bits##_t *at, uint##bits##_t *wanted, uint##bits##_t value,      \
        int order, int otherwise)                                              \
    {                                                                          \
        (void)order;                                                           \
        (void)otherwise;                                                       \
        ON_CHANGE(at, bits / 8);                                               \
        return __atomic_compare_exchange_n(                                    \
            at, wanted, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);     \
    }                                                                          \
    ATOMIC_CHANGE(bits, exchange, __atomic_exchange_n)                         \
    ATOMIC_CHANGE(bits, fetch_add, __atomic_fetch_add)                         \
    ATOMIC_CHANGE(bits, fetch_or, __atomic_fetch_or)                           \
    ATOMIC_CHANGE(bits, fetch_sub, __atomic_fetch_sub)
#define ATOMIC_CHANGE(bits, name, builtin)                                     \
    uint##bits##_t __tsan_atomic##bits##_##name(                               \
        uint##bits##_t *at, uint##bits##_t value, int order);                  \
    uint##bits##_t __tsan_atomic##bits##_##name(                               \
        uint##bits##_t *at, uint##bits##_t value, int order)                   \
    {                                                                          \
        (void)order;                                                           \
        ON_CHANGE(at, bits / 8);                                               \
        return builtin(at, value, __ATOMIC_SEQ_CST);                           \
    }
ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)
