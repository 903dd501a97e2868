/*
 * Copying to and from programs: the running one, through kernel/x86/copy.asm,
 * whose faults the page fault handler recognizes; and any, through its page
 * tables.
 */
#include "kernel/vm/user.h"
#include "kernel/vm/space.h"
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

int space_transfer(struct space *to, uaddr_t dst, struct space *from,
                   uaddr_t src, size_t n)
{
    int error = 0;

    while (n != 0) {
        size_t part = MIN(n, PAGE_SIZE - (dst & PAGE_MASK));
        void *out = space_touch(to, dst, true, &error);
        const void *in;

        part = MIN(part, PAGE_SIZE - (src & PAGE_MASK));
        in = out == NULL ? NULL : space_touch(from, src, false, &error);
        if (in == NULL)
            return error;
        copy_bytes(out, in, part);
        dst += part;
        src += part;
        n -= part;
    }
    return 0;
}
