/*
 * System calls as C functions, with their POSIX names if they have one.
 *
 * Functions that can fail return -1 (or MAP_FAILED) and set errno. A handle is
 * a POSIX file descriptor: 0, 1 and 2 are open when a program starts. The stubs
 * are in user/lib/syscall.asm; functions built from several calls are in
 * user/lib/process.c.
 */
#pragma once

#include "kernel/abi/fs.h"
#include "kernel/abi/syscall.h"
#include "kernel/abi/types.h"
#include "user/lib/errno.h"

#define STDIN_FILENO  0
#define STDOUT_FILENO 1
#define STDERR_FILENO 2

#define MAP_FAILED ((void *)-1)

extern char **environ; /* "NAME=value", ended by NULL */

/* ---- tasks -------------------------------------------------------------- */

pid_t getpid(void);
pid_t getppid(void);

/* Ends the program at once: nothing is flushed, no atexit function runs. */
void _exit(int status) __attribute__((noreturn));

/* 0 in the child, its pid in the parent. */
pid_t fork(void);

/* Run another program in this task; return only on failure. execve is the
 * system call; execvp searches for a name without '/' in the directories of
 * PATH (in /bin and /sbin if there is no PATH). */
int execve(const char *path, char *const argv[], char *const envp[]);
int execv(const char *path, char *const argv[]);
int execvp(const char *file, char *const argv[]);

/* The pid of a child that has ended; *status (may be NULL) gets its
 * status. pid -1 means any child; WNOHANG: 0 if none has ended yet. */
pid_t waitpid(pid_t pid, int *status, int options);
pid_t wait(int *status);

/* Kills a task (or a group, by a negative pid) with signal `sig`. */
int kill(pid_t pid, int sig);

/* Moves a task (0: the caller) to a group (0: one with its own number). */
int setpgid(pid_t pid, pid_t pgid);

/* For privileged tasks: the caller loses its privilege and takes the grant of
 * that server, which comes into force when it executes the server's program,
 * and is lost with any other. NULL: only drops the privilege. */
int grant_take(const char *server);

/* Lets another task of the same priority run. */
int yield(void);

int sleep_ms(uint32_t ms);
unsigned sleep(unsigned seconds);

/* Milliseconds since boot, modulo 2^31. */
uint32_t uptime_ms(void);

/* `later` - `earlier` for times of that clock less than 2^30 ms (12 days)
 * apart; negative if `earlier` is later. */
static inline int32_t uptime_diff(uint32_t later, uint32_t earlier)
{
    return (int32_t)((later - earlier) << 1) / 2;
}

/* ---- memory ------------------------------------------------------------- */

/* Moves the end of the heap by `change` bytes; returns the old end, or
 * MAP_FAILED. malloc uses it too, and tolerates other users. */
void *sbrk(int32_t change);

/* Zeroed pages; `prot` is PROT_READ | PROT_WRITE or less. */
void *mmap(size_t length, int prot);
int munmap(void *addr, size_t length);

/* For servers with that grant. map_device: physical memory from `first` on, a
 * multiple of 4096, uncached. dma_alloc: zeroed pages, physically contiguous
 * from *first on. MAP_FAILED with EPERM if not granted. Not inherited by
 * fork. */
void *map_device(uint32_t first, size_t bytes);
void *dma_alloc(size_t pages, uint32_t *first);

/* ---- files -------------------------------------------------------------- */

int open(const char *path, uint32_t flags);
int close(int handle);
ssize_t read(int handle, void *buf, size_t n);
ssize_t write(int handle, const void *buf, size_t n);
off_t lseek(int handle, off_t offset, int whence);
int stat(const char *path, struct stat *out);
int fstat(int handle, struct stat *out);
int ftruncate(int handle, uint32_t size);
ssize_t getdents(int handle, void *buf, size_t n);
int mkdir(const char *path);
int rmdir(const char *path);
int unlink(const char *path);
int rename(const char *from, const char *to);
int link(const char *from, const char *to);
int chdir(const char *path);
int getcwd(char *buf, size_t size); /* returns the length */
int dup(int handle);
int dup2(int handle, int to);
int pipe(int ends[2]); /* ends[0] is read, ends[1] written */

/* Mounts the file server of a port (kernel/abi/fs.h) on a directory. Not for
 * the server itself, which must reply: use fs_serve (user/lib/fs_server.h). */
int mount(int port, const char *path);
int umount(const char *path);

/* Return when all earlier writes, or those to this file, are on disk. */
int sync(void);
int fsync(int handle);

/* Status of the file system that contains `path`. */
int statfs(const char *path, struct fs_stat *out);

/* Writes all `n` bytes, in several calls if needed: 0, or -1. */
int write_all(int handle, const void *buf, size_t n);

/* Sets a FILE_DEVICE's input to whole lines or single keys. */
int ttymode(int handle, int mode);
int tcsetpgrp(int handle, pid_t pgid);

/* 1 if the handle is the console's, else 0 and errno. */
int isatty(int handle);

/* ---- options (user/lib/getopt.c) ---------------------------------------- */

extern char *optarg; /* the argument of the option found */
extern int optind;   /* the first word that is not an option */

/* The next option letter of `letters` (followed by ':': it takes an argument),
 * -1 after the last, '?' after a message for an unknown one. As in POSIX; all
 * words after the first operand are operands. */
int getopt(int argc, char *const argv[], const char *letters);

/* ---- system calls by number (user/lib/syscall.asm) ---------------------- */

/* Any system call with EBX, ECX, EDX, ESI, EDI, EBP as given. Returns EAX: an
 * error is negative, errno is unchanged. */
int32_t syscall_raw(uint32_t number, const uint32_t registers[6]);
