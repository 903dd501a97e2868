/*
 * hellofs PATH: a read-only file system of two files, mounted on PATH. The
 * smallest file server; docs/file-server.md explains it line by line. memfs is
 * a complete one.
 */
#include "user/lib/err.h"
#include "user/lib/fs_server.h"
#include "user/lib/ipc.h"
#include "user/lib/string.h"

#define ROOT 1 /* file i of the table has the number ROOT + 1 + i */

static const struct {
    const char *name, *text;
} files[] = {
    {"hello", "Hello from ring 3.\n"},
    {"answer", "42\n"},
};

static bool is_file(uint32_t number)
{
    return number > ROOT && number - ROOT - 1 < ARRAY_SIZE(files);
}

static int hello_stat(void *fs, struct fs_stat *out)
{
    (void)fs;
    out->fs_root = ROOT;
    strlcpy(out->fs_kind, "hello", sizeof(out->fs_kind));
    return 0;
}

static int hello_inode(void *fs, uint32_t file, struct fs_attr *out)
{
    (void)fs;
    if (file != ROOT && !is_file(file))
        return -ENOENT;
    out->attr_type = file == ROOT ? FILE_DIRECTORY : FILE_REGULAR;
    out->attr_nlink = 1;
    if (file != ROOT)
        out->attr_size = (uint32_t)strlen(files[file - ROOT - 1].text);
    return 0;
}

static int hello_lookup(void *fs, uint32_t dir, const char *name,
                        uint32_t *file)
{
    (void)fs;
    for (uint32_t i = 0; dir == ROOT && i < ARRAY_SIZE(files); i++)
        if (strcmp(files[i].name, name) == 0) {
            *file = ROOT + 1 + i;
            return 0;
        }
    return -ENOENT;
}

static ssize_t hello_read(void *fs, uint32_t file, uint32_t offset, void *buf,
                          size_t n)
{
    const char *text;
    size_t size;

    (void)fs;
    if (!is_file(file))
        return -ENOENT;
    text = files[file - ROOT - 1].text;
    size = strlen(text);
    n = offset < size ? MIN(n, size - offset) : 0;
    memcpy(buf, text + offset, n);
    return (ssize_t)n;
}

static ssize_t hello_getdents(void *fs, uint32_t dir, uint32_t *offset,
                              void *buf, size_t n)
{
    static const char *const dots[] = {".", ".."};
    size_t used = 0, size = 1;

    (void)fs;
    if (dir != ROOT)
        return -ENOTDIR;
    for (; *offset<2 + ARRAY_SIZE(files); *offset += size> 0) {
        uint32_t i = *offset;
        const char *name = i < 2 ? dots[i] : files[i - 2].name;

        size = dirent_store(
            (char *)buf + used, n - used, i < 2 ? ROOT : ROOT + i - 1,
            i < 2 ? FILE_DIRECTORY : FILE_REGULAR, name, strlen(name));
        if (size == 0)
            return used > 0 ? (ssize_t)used : -EINVAL;
        used += size;
    }
    return (ssize_t)used;
}

int main(int argc, char *argv[])
{
    static const struct fs_functions functions = {
        .fs_stat = hello_stat,
        .fs_inode = hello_inode,
        .fs_lookup = hello_lookup,
        .fs_read = hello_read,
        .fs_getdents = hello_getdents,
    };
    int port = port_create();

    if (argc != 2)
        usage("PATH");
    if (port < 0 || fs_serve(port, argv[1], &functions, NULL) < 0)
        err(1, "%s", argv[1]);
    return 0;
}
