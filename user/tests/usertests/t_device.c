/*
 * Devices, the console's calls, and /proc.
 */
#include "user/tests/usertests/test.h"
#include "user/lib/dirent.h"
#include "user/lib/string.h"

TEST(device, null)
{
    char c = 'x';
    struct stat st;
    int h = open("/dev/null", O_RDWR);

    CHECK(h >= 0);
    EQUAL(read(h, &c, 1), 0);
    EQUAL(c, 'x');
    EQUAL(write(h, &c, 1), 1);
    EQUAL(fstat(h, &st), 0);
    EQUAL(st.st_type, FILE_DEVICE);
    EQUAL(st.st_device, 2); /* kernel/fs/device.h */
    EQUAL(st.st_blocks, 0);
    FAILS(lseek(h, 0, SEEK_SET), ESPIPE);
    FAILS(ftruncate(h, 0), EINVAL);
}

TEST(device, zero)
{
    char buf[100];
    int h = open("/dev/zero", O_RDWR);

    CHECK(h >= 0);
    memset(buf, 'x', sizeof(buf));
    EQUAL(read(h, buf, sizeof(buf) - 1), sizeof(buf) - 1);
    for (size_t i = 0; i < sizeof(buf) - 1; i++)
        EQUAL(buf[i], 0);
    EQUAL(buf[sizeof(buf) - 1], 'x');
    EQUAL(write(h, buf, sizeof(buf)), sizeof(buf));
}

TEST(device, no_console)
{
    int ends[2];
    int null = open("/dev/null", O_RDWR);
    int file;

    make_file("f", "");
    file = open("f", O_RDWR);
    make_pipe(ends);
    FAILS(ttymode(null, TTY_RAW), ENOTTY);
    FAILS(ttymode(file, TTY_RAW), ENOTTY);
    FAILS(ttymode(ends[0], TTY_COOKED), ENOTTY);
    FAILS(tcsetpgrp(null, 0), ENOTTY);
    FAILS(tcsetpgrp(file, getpid()), ENOTTY);
}

/* Sets modes and groups, and restores them. */
TEST(device, console)
{
    int h = open("/dev/console", O_RDWR);
    int mode;

    CHECK(h >= 0);
    mode = ttymode(h, TTY_RAW);
    CHECK(mode == TTY_COOKED || mode == TTY_RAW);
    EQUAL(ttymode(h, TTY_COOKED), TTY_RAW);
    EQUAL(ttymode(h, mode), TTY_COOKED);
    FAILS(ttymode(h, 2), EINVAL);
    FAILS(ttymode(h, -1), EINVAL);
    FAILS(tcsetpgrp(h, -5), EINVAL);
    FAILS(tcsetpgrp(h, 0x7fffffff), ESRCH);
    FAILS(lseek(h, 0, SEEK_SET), ESPIPE);
    EQUAL(write(h, "", 0), 0);
    EQUAL(read(h, &mode, 0), 0);
}

/* ---- /proc -------------------------------------------------------------- */

/* Reads a file to its end in pieces of `piece` bytes; returns its size. */
static size_t read_all(const char *path, size_t piece)
{
    char buf[512];
    size_t all = 0;
    ssize_t n;
    int h = open(path, O_RDONLY);

    CHECK(h >= 0);
    while ((n = read(h, buf, piece)) > 0)
        all += (size_t)n;
    EQUAL(n, 0);
    EQUAL(close(h), 0);
    return all;
}

TEST(device, proc_reads)
{
    char path[NAME_MAX + 8] = "/proc/";
    const struct dirent *entry;
    unsigned files = 0;
    DIR *d = opendir("/proc");

    CHECK(d != NULL);
    while ((entry = readdir(d)) != NULL) {
        if (entry->d_type != FILE_REGULAR)
            continue;
        strlcpy(path + 6, entry->d_name, sizeof(path) - 6);
        CHECK(read_all(path, 512) > 0);
        CHECK(read_all(path, 1) > 0);
        files++;
    }
    closedir(d);
    CHECK(files >= 5);
}

TEST(device, proc_is_read_only)
{
    FAILS(open("/proc/kmastat", O_WRONLY), EROFS);
    FAILS(open("/proc/kmastat", O_RDWR), EROFS);
    FAILS(open("/proc/new", O_WRONLY | O_CREAT), EROFS);
    FAILS(mkdir("/proc/new"), EROFS);
    FAILS(unlink("/proc/kmastat"), EROFS);
    FAILS(rename("/proc/kmastat", "/proc/new"), EROFS);
    FAILS(link("/proc/kmastat", "/proc/new"), EROFS);
    FAILS(open("/proc/nothing", O_RDONLY), ENOENT);
}

/* The text is fixed when the file is opened. */
TEST(device, proc_snapshot)
{
    static char first[4000], again[4000];
    int h = open("/proc/tasks", O_RDONLY);
    ssize_t n = read(h, first, sizeof(first));

    CHECK(n > 0);
    EQUAL(lseek(h, 0, SEEK_SET), 0);
    kill(spawn((void (*)(int))_exit, 0), SIGKILL);
    EQUAL(read(h, again, sizeof(again)), n);
    EQUAL(memcmp(first, again, (size_t)n), 0);
}
