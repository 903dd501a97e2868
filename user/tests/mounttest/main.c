/*
 * mounttest: mounts a file system of a child on /tmp, uses it, lets another
 * child take it over, and unmounts it. Everything is cleaned up after any
 * failure, so it can be run with each memory allocation failing in turn.
 *
 * mounttest -s PATH: serves the file system itself, on PATH; after the first
 * lookup of a name it never replies again. With -l it replies to everything but
 * lookups.
 *
 * The file system is one directory, which may have one file, "f".
 */
#include "user/lib/err.h"
#include "user/lib/fs_server.h"
#include "user/lib/ipc.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"

#define ROOT   1
#define FILE_F 2

static struct fs_attr f; /* 0 links: it does not exist */
static char contents[64];
static bool silent, silent_lookup;

/* ---- the server --------------------------------------------------------- */

static int do_stat(void *fs, struct fs_stat *out)
{
    (void)fs;
    out->fs_root = ROOT;
    strlcpy(out->fs_kind, "test", sizeof(out->fs_kind));
    return 0;
}

static int do_inode(void *fs, uint32_t file, struct fs_attr *out)
{
    (void)fs;
    *out = f;
    if (file == ROOT)
        *out = (struct fs_attr){.attr_type = FILE_DIRECTORY, .attr_nlink = 2};
    return file == ROOT || f.attr_nlink > 0 ? 0 : -ENOENT;
}

static int do_lookup(void *fs, uint32_t dir, const char *name, uint32_t *file)
{
    (void)fs;
    (void)dir;
    if (silent_lookup && fork() == 0)
        return -ENOENT; /* goes nowhere: the child was not called, but serves */
    while (silent || silent_lookup)
        sleep(1000);
    *file = FILE_F;
    return f.attr_nlink > 0 && strcmp(name, "f") == 0 ? 0 : -ENOENT;
}

static int do_create(void *fs, uint32_t dir, const char *name, uint32_t type,
                     uint32_t device, uint32_t *file)
{
    (void)fs;
    (void)dir;
    (void)name;
    (void)device;
    f = (struct fs_attr){.attr_type = type, .attr_nlink = 1};
    *file = FILE_F;
    return 0;
}

static int do_unlink(void *fs, uint32_t dir, const char *name, uint32_t file,
                     uint32_t *links)
{
    (void)fs;
    (void)dir;
    (void)name;
    (void)file;
    *links = f.attr_nlink = 0;
    return 0;
}

static ssize_t do_read(void *fs, uint32_t file, uint32_t offset, void *buf,
                       size_t n)
{
    (void)fs;
    (void)file;
    n = offset < f.attr_size ? MIN(n, f.attr_size - offset) : 0;
    memcpy(buf, contents + offset, n);
    return (ssize_t)n;
}

static ssize_t do_write(void *fs, uint32_t file, uint32_t offset,
                        const void *buf, size_t n, uint32_t *size)
{
    (void)fs;
    (void)file;
    if (offset + n > sizeof(contents))
        return -ENOSPC;
    memcpy(contents + offset, buf, n);
    *size = f.attr_size = offset + n;
    return (ssize_t)n;
}

static ssize_t do_getdents(void *fs, uint32_t dir, uint32_t *offset, void *buf,
                           size_t n)
{
    (void)fs;
    (void)dir;
    if (f.attr_nlink == 0 || (*offset)++ != 0)
        return 0;
    return (ssize_t)dirent_store(buf, n, FILE_F, FILE_REGULAR, "f", 1);
}

static const struct fs_functions functions = {
    .fs_stat = do_stat,
    .fs_inode = do_inode,
    .fs_lookup = do_lookup,
    .fs_create = do_create,
    .fs_unlink = do_unlink,
    .fs_read = do_read,
    .fs_write = do_write,
    .fs_getdents = do_getdents,
};

/* ---- its user ----------------------------------------------------------- */

#define PATH "/tmp"

static const char path[] = PATH;
static const char inside[] = PATH "/f";

/* Starts a child that serves; its pid, or -1. Other tasks cannot receive on the
 * port: the only other handle is closed once it is mounted. */
static pid_t start(int port)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(fs_serve(port, NULL, &functions, NULL) < 0);
    return pid;
}

static void end(pid_t pid)
{
    int status;

    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
}

/* A new server, mounted on `path`. */
static pid_t serve_next(void)
{
    int port = port_create();
    pid_t pid = port < 0 ? -1 : start(port);
    bool good = pid > 0 && mount(port, path) == 0;

    if (!good)
        warn("mount");
    if (port >= 0)
        close(port);
    if (good)
        return pid;
    end(pid);
    return -1;
}

/* Each step may fail. */
static void use(void)
{
    char buf[128];
    struct fs_stat st;
    int h = open(inside, O_RDWR | O_CREAT);
    int dir;

    if (h < 0)
        return;
    write(h, "hello", 5);
    lseek(h, 0, SEEK_SET);
    read(h, buf, sizeof(buf));
    fsync(h);
    dir = open(path, O_RDONLY);
    if (dir >= 0) {
        getdents(dir, buf, sizeof(buf));
        close(dir);
    }
    rename(inside, path);
    unlink(inside);
    read(h, buf, sizeof(buf));
    close(h);
    statfs(path, &st);
    sync();
}

static void clean_up(void)
{
    while (umount(path) < 0 && errno == ENOMEM)
        continue;
}

/* Two servers, one after the other. */
static int work(void)
{
    pid_t pid = serve_next();

    if (pid > 0) {
        use();
        end(pid);
        pid = serve_next();
        if (pid > 0)
            use();
    }
    clean_up();
    end(pid);
    return pid < 0;
}

/* A child does the work. If it is killed for lack of memory, its parent cleans
 * up. */
int main(int argc, char **argv)
{
    int status = 1;
    pid_t pid;

    if (argc == 3 && argv[1][0] == '-') {
        silent = argv[1][1] == 's';
        silent_lookup = argv[1][1] == 'l';
        return fs_serve(port_create(), argv[2], &functions, NULL) < 0;
    }
    if (argc != 1)
        usage("[-s|-l PATH]");
    pid = fork();
    if (pid == 0)
        _exit(work());
    if (pid > 0)
        waitpid(pid, &status, 0);
    clean_up();
    return status != 0;
}
