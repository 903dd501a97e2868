/*
 * Memory of programs, as the kernel reads and writes it.
 *
 * A pointer from a program is marked __user and never dereferenced. The range
 * is checked once, where the system call begins (user_range); then these
 * functions copy, and a fault on the way is either one that the program would
 * have been allowed (a page that is filled in now) or comes back as -EFAULT, or
 * -ENOMEM if there is no memory for that page. They may sleep, so no spin lock
 * may be held.
 */
#pragma once

#include "kernel/abi/errno.h"
#include "kernel/lib/types.h"

#define __user

typedef uintptr_t uaddr_t;

#define USER_BASE 0x00400000u /* below it nothing is ever mapped */
#define USER_TOP  0xC0000000u

/* Whether [p, p + n) lies in user space as a whole. n may be 0. */
static inline bool user_range(const void __user *p, size_t n)
{
    return (uaddr_t)p < USER_TOP && n <= USER_TOP - (uaddr_t)p;
}

/*
 * Copies n bytes where source or destination may be a program's memory whose
 * range has been checked, or the kernel's own. 0, -EFAULT or -ENOMEM: then a
 * part may have been copied. This is what files, pipes and devices use for
 * their buffers, so that the kernel itself can read and write them as well.
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
 * -EFAULT, -ENOMEM, or -ENAMETOOLONG if there is no NUL in time. */
int copy_string_from_user(char *dst, const char __user *src, size_t max);
