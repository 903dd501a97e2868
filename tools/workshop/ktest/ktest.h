/*
 * One way of writing a test for two homes: the kernel runs these under the
 * shell's `test` command and prints KTAP; the host build runs the same cases
 * under cmocka and the sanitizers.
 *
 *     KTEST(kmem, S23_colour_sequence)
 *     {
 *         KT_EQ(colour_of(slab), 8);
 *     }
 *
 * A case registers itself through a linker section, so adding one is adding
 * the function. An expectation that fails records where and what, and the
 * case goes on (KT_…) or ends (KT_REQUIRE).
 */
#pragma once

#include "kernel/lib/types.h"

struct ktest {
    const char *ktest_suite;
    const char *ktest_name;
    void (*ktest_run)(void);
};

extern const struct ktest __start_ktests[];
extern const struct ktest __stop_ktests[];

#define KTEST(suite, name)                                                     \
    static void ktest_##suite##_##name(void);                                  \
    static const struct ktest ktest_entry_##suite##_##name                     \
        __attribute__((used, section("ktests"), aligned(sizeof(void *)))) = {  \
            #suite, #name, ktest_##suite##_##name};                            \
    static void ktest_##suite##_##name(void)

/* Supplied by each home: notes a failed expectation of the running case. */
void ktest_fail(const char *file, int line, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Supplied by each home: notes that `what` is false, undoes what the case has
 * asked for with ktest_undo, and ends the case. Only in the case's own task. */
void ktest_stop(const char *file, int line, const char *what)
    __attribute__((noreturn));

/* Supplied by each home: fn(arg) is called if ktest_stop ends the case, the
 * latest first and each pair once. It frees what the case holds then, which may
 * be nothing. */
void ktest_undo(void (*fn)(void *arg), void *arg);

/* Kernel only. Likewise, but fn(arg) is also called if the case ends by itself:
 * the variables of its functions no longer exist then. */
void ktest_finally(void (*fn)(void *arg), void *arg);

/* Likewise. Undoes, and ends the case, which has failed or is skipped. */
void ktest_end(void) __attribute__((noreturn));

/* Supplied by each home: whether so much memory is free and not promised to
 * programs. If not, the running case is skipped. */
bool ktest_enough(size_t bytes);

/* Likewise. Whether a tick of the time-stamp counter is an instruction. */
bool ktest_ticks_are_exact(void);

/* Likewise. Whether the clock interrupts at any instruction; in v86 it does
 * not. */
bool ktest_ticks_come_anywhere(void);

/* Likewise. Notes why the running case is skipped. */
void ktest_skip(const char *why);

/* Likewise. What is wrong, and where; NULL: nothing. */
typedef const char *ktest_verifier(const char **where);

/* Likewise. Notes a failed expectation if the verifier finds something; or if
 * it does not find `text`. */
void ktest_sound(const char *file, int line, ktest_verifier *verify);
void ktest_unsound(const char *file, int line, ktest_verifier *verify,
                   const char *text);

#define KT_FAIL(...) ktest_fail(__FILE__, __LINE__, __VA_ARGS__)

#define KT_TRUE(e)                                                             \
    do {                                                                       \
        if (!(e))                                                              \
            KT_FAIL("not true: %s", #e);                                       \
    } while (0)

#define KT_CMP(a, op, b)                                                       \
    do {                                                                       \
        unsigned long long kt_a = (unsigned long long)(a);                     \
        unsigned long long kt_b = (unsigned long long)(b);                     \
        if (!(kt_a op kt_b))                                                   \
            KT_FAIL("%s " #op " %s: got %llu (0x%llx), want " #op " %llu", #a, \
                    #b, kt_a, kt_a, kt_b);                                     \
    } while (0)

#define KT_EQ(a, b) KT_CMP(a, ==, b)
#define KT_NE(a, b) KT_CMP(a, !=, b)
#define KT_LE(a, b) KT_CMP(a, <=, b)
#define KT_GE(a, b) KT_CMP(a, >=, b)

/* Kernel only. */
#define KT_SOUND(verify)         ktest_sound(__FILE__, __LINE__, verify)
#define KT_UNSOUND(verify, text) ktest_unsound(__FILE__, __LINE__, verify, text)

/* For a condition that the rest of the case needs, such as an allocation. */
#define KT_REQUIRE(e)                                                          \
    do {                                                                       \
        if (!(e))                                                              \
            ktest_stop(__FILE__, __LINE__, #e);                                \
    } while (0)

/* Skips the case on a machine with less free memory. Before anything else. */
#define KT_NEEDS(bytes)                                                        \
    do {                                                                       \
        if (!ktest_enough(bytes))                                              \
            return;                                                            \
    } while (0)

/* Skips the case on a machine of which `e` is not true. */
#define KT_NEEDS_THAT(e, why)                                                  \
    do {                                                                       \
        if (!(e)) {                                                            \
            ktest_skip(why);                                                   \
            return;                                                            \
        }                                                                      \
    } while (0)

/* For a case that compares times. */
#define KT_NEEDS_COUNTING()                                                    \
    KT_NEEDS_THAT(ktest_ticks_are_exact(),                                     \
                  "compares times; make ICOUNT=1 counts instructions")

/* For a case in which the clock has to interrupt one function. */
#define KT_NEEDS_TICKS_ANYWHERE()                                              \
    KT_NEEDS_THAT(ktest_ticks_come_anywhere(),                                 \
                  "needs ticks of the clock at any instruction")

#define KT_PTR(p) ((unsigned long long)(uintptr_t)(p))
