/*
 * Error numbers with their POSIX names. System calls and kernel functions
 * return them negated.
 */
#pragma once

#define EPERM        1  /* not allowed */
#define ENOENT       2  /* no such file or directory */
#define ESRCH        3  /* no such task */
#define EINTR        4  /* killed while waiting */
#define EIO          5  /* input/output error */
#define E2BIG        7  /* arguments are too long */
#define ENOEXEC      8  /* not an executable */
#define EBADF        9  /* no such handle, or of the wrong kind */
#define ECHILD       10 /* no child to wait for */
#define EAGAIN       11 /* try again later */
#define ENOMEM       12 /* not enough memory */
#define EACCES       13 /* permission denied */
#define EFAULT       14 /* bad address */
#define EBUSY        16 /* in use */
#define EEXIST       17 /* already exists */
#define EXDEV        18 /* on another file system */
#define ENODEV       19 /* no such device */
#define ENOTDIR      20 /* not a directory */
#define EISDIR       21 /* is a directory */
#define EINVAL       22 /* invalid argument */
#define EMFILE       24 /* too many handles */
#define ENOTTY       25 /* not a console */
#define EFBIG        27 /* file too large */
#define ENOSPC       28 /* no space left */
#define ESPIPE       29 /* cannot seek */
#define EROFS        30 /* read-only file system */
#define EMLINK       31 /* too many links */
#define EPIPE        32 /* the other end is closed */
#define ERANGE       34 /* does not fit in the buffer */
#define EDEADLK      35 /* would deadlock */
#define ENAMETOOLONG 36 /* name too long */
#define ENOSYS       38 /* no such system call */
#define ENOTEMPTY    39 /* directory is not empty */
#define EMSGSIZE     90 /* message too long */
#define ETIMEDOUT    110
