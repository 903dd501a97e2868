/*
 * How the kernel reads and writes the memory of programs.
 *
 * A pointer from a program is marked __user and never dereferenced. Its range
 * is checked once, at the start of the system call (user_range). Then these
 * functions copy. A fault is either resolved, as it would be for the program (a
 * page is filled in), or becomes -EFAULT, or -ENOMEM if there is no memory for
 * the page. They may sleep, so no spin lock may be held.
 */
#pragma once

#include "kernel/abi/errno.h"
#include "kernel/lib/types.h"

#define __user

typedef uintptr_t uaddr_t;

#define USER_BASE 0x00400000u /* nothing is ever mapped below it */
#define USER_TOP  0xC0000000u

/* Whether all of [p, p + n) is in user space. n may be 0. */
static inline bool user_range(const void __user *p, size_t n)
{
    return (uaddr_t)p < USER_TOP && n <= USER_TOP - (uaddr_t)p;
}

/*
 * Copies n bytes. Each address is in a program's memory, with its range
 * checked, or in the kernel's. 0, -EFAULT or -ENOMEM; a part may then have been
 * copied. Files, pipes and devices use this for their buffers, so that the
 * kernel can read and write them too.
 */
int user_copy(void *dst, const void *src, size_t n);

/* The same with zeroes. */
int user_zero(void *dst, size_t n);

/* With the range check: 0, -EFAULT or -ENOMEM. */
static inline int copy_from_user(void *dst, const void __user *src, size_t n)
{
    return user_range(src, n) ? user_copy(dst, src, n) : -EFAULT;
}

static inline int copy_to_user(void __user *dst, const void *src, size_t n)
{
    return user_range(dst, n) ? user_copy(dst, src, n) : -EFAULT;
}

/* Copies a string of at most max - 1 bytes and its NUL. Returns its length,
 * -EFAULT, -ENOMEM, or -ENAMETOOLONG if no NUL was found. */
int copy_string_from_user(char *dst, const char __user *src, size_t max);
