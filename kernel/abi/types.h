/*
 * Shared by kernel and programs: sizes, flags, structures. All fields are
 * little-endian and naturally aligned; addresses are 32 bits.
 */
#pragma once

#include "kernel/lib/types.h"

typedef int32_t pid_t;
typedef int32_t ssize_t;
typedef int32_t off_t;

#define PATH_MAX    1024 /* bytes of a path, with its NUL */
#define NAME_MAX    59   /* bytes of one name in it, without */
#define HANDLES_MAX 256  /* handles of one task */
#define ARG_MAX     8192 /* bytes of arguments and environment, pointers too */
#define PIPE_SIZE                                                              \
    4096 /* bytes that a pipe holds; also PIPE_BUF: a write of
                            no more is not mixed with others' */

/* ---- files -------------------------------------------------------------- */

#define O_RDONLY    0
#define O_WRONLY    1
#define O_RDWR      2
#define O_ACCMODE   3
#define O_CREAT     0x40
#define O_EXCL      0x80
#define O_TRUNC     0x200
#define O_APPEND    0x400
#define O_DIRECTORY 0x10000
#define O_CLOEXEC   0x80000

#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2

enum file_type {
    FILE_REGULAR = 1,
    FILE_DIRECTORY,
    FILE_DEVICE,
    FILE_PIPE,
    FILE_PORT,
};

struct stat {
    uint32_t st_fs;   /* which file system */
    uint32_t st_ino;  /* number within it */
    uint32_t st_type; /* enum file_type */
    uint32_t st_nlink;
    uint32_t st_size;   /* bytes */
    uint32_t st_blocks; /* 4 KiB pages that it occupies */
    uint32_t st_device; /* of a device node: its number */
};

/* getdents fills a buffer with these, one after the other. */
struct dirent {
    uint32_t d_ino;
    uint16_t d_reclen; /* bytes to the next one; a multiple of 4 */
    uint8_t d_type;    /* enum file_type */
    uint8_t d_namlen;
    char d_name[]; /* with a NUL */
};

/* ---- tasks -------------------------------------------------------------- */

/* How a task ended, as returned by wait(). */
#define WEXITSTATUS(s) ((s) >> 8 & 0xff) /* its exit code, or 0 */
#define WTERMSIG(s)    ((s)&0x7f)        /* what ended it, or 0 */
#define WIFEXITED(s)   (WTERMSIG(s) == 0)

#define WNOHANG 1

/* Signals. kill() takes any from 0 (only tests) to 31. */
#define SIGINT  2
#define SIGILL  4
#define SIGTRAP 5
#define SIGFPE  8
#define SIGKILL 9
#define SIGSEGV 11
#define SIGTERM 15
#define SIG_MAX 31

/* ---- memory ------------------------------------------------------------- */

#define PROT_READ  1
#define PROT_WRITE 2

/* ---- the console -------------------------------------------------------- */

/* Modes of ttymode. TTY_COOKED: whole lines, echoed and edited. TTY_RAW: each
 * key at once as one byte; keys without a character are the control characters
 * of Emacs (^P ^N ^B ^F ^A ^E ^D for up, down, left, right, home, end, delete).
 * ^C and ^\ act in both. */
#define TTY_COOKED 0
#define TTY_RAW    1
