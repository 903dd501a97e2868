/*
 * The texts of kernel/abi/errno.h.
 */
#include "user/lib/errno.h"
#include "user/lib/string.h"

static const struct {
    int error;
    const char *text;
} errors[] = {
    {0, "no error"},
    {EPERM, "operation not permitted"},
    {ENOENT, "no such file or directory"},
    {ESRCH, "no such task"},
    {EINTR, "interrupted"},
    {EIO, "input/output error"},
    {E2BIG, "too long"},
    {ENOEXEC, "not an executable"},
    {EBADF, "bad handle"},
    {ECHILD, "no child to wait for"},
    {EAGAIN, "try again"},
    {ENOMEM, "out of memory"},
    {EACCES, "permission denied"},
    {EFAULT, "bad address"},
    {EBUSY, "in use"},
    {EEXIST, "exists already"},
    {EXDEV, "on another file system"},
    {ENODEV, "no such device"},
    {ENOTDIR, "not a directory"},
    {EISDIR, "is a directory"},
    {EINVAL, "invalid argument"},
    {EMFILE, "too many open handles"},
    {ENOTTY, "not a console"},
    {EFBIG, "file too large"},
    {ENOSPC, "no space left"},
    {ESPIPE, "cannot seek"},
    {EROFS, "read-only file system"},
    {EMLINK, "too many links"},
    {EPIPE, "the other end is closed"},
    {ERANGE, "out of range"},
    {EDEADLK, "deadlock avoided"},
    {ENAMETOOLONG, "name too long"},
    {ENOSYS, "no such system call"},
    {ENOTEMPTY, "directory not empty"},
    {EMSGSIZE, "message too long"},
    {ETIMEDOUT, "timed out"},
};

const char *strerror(int error)
{
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
        if (errors[i].error == error)
            return errors[i].text;
    return "unknown error";
}
