/*
 * Copying to and from programs, through kernel/x86/copy.asm, whose faults the
 * page fault handler recognizes.
 */
#include "kernel/vm/user.h"
#include "kernel/x86/copy.h"

int user_copy(void *dst, const void *src, size_t n)
{
    return copy_bytes(dst, src, n);
}

int user_zero(void *dst, size_t n)
{
    return copy_zero(dst, n);
}

int copy_string_from_user(char *dst, const char __user *src, size_t max)
{
    size_t room = (uaddr_t)src < USER_TOP ? USER_TOP - (uaddr_t)src : 0;
    int n;

    if (room == 0)
        return -EFAULT;
    n = copy_string(dst, src, MIN(max, room));
    if (n >= 0 && (size_t)n == MIN(max, room))
        return room < max ? -EFAULT : -ENAMETOOLONG;
    return n;
}
