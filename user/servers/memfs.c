/*
 * memfs PATH [KIND]: a file system in memory, mounted on PATH until it is
 * unmounted. The smallest complete file server; docs/file-server.md explains it
 * in parts.
 *
 *     node 1 (the root) ──> entry "a" ──> node 2, a file ──> bytes
 *                      └──> entry "d" ──> node 3, a directory ──> entries …
 *
 * A file is a node, found by its number; a directory's node has a list of
 * entries. Both are allocated by malloc.
 */
#include "user/lib/err.h"
#include "user/lib/fs_server.h"
#include "user/lib/ipc.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

#define ROOT      1
#define BYTES_MAX MIB(1) /* limit for all files together */

struct node {
    struct node *node_next; /* in the list of all nodes */
    uint32_t node_number;
    uint32_t node_parent; /* of a directory */
    struct fs_attr node_attr;
    char *node_bytes;           /* of a file; attr_size of them */
    struct entry *node_entries; /* of a directory, newest first */
};

struct entry {
    struct entry *entry_next;
    struct node *entry_node;
    uint32_t entry_cookie; /* ascends in the list: position for getdents */
    char entry_name[NAME_MAX + 1];
};

static const char *kind = "mem";
static struct node *nodes;
static uint32_t last_number;
static uint32_t bytes_used;
static uint32_t last_cookie = 1; /* "." is 0 and ".." is 1 */

/* ---- nodes and entries -------------------------------------------------- */

static struct node *node_of(uint32_t number)
{
    struct node *n = nodes;

    while (n != NULL && n->node_number != number)
        n = n->node_next;
    return n;
}

/* A new node without links, or NULL. */
static struct node *node_create(uint32_t type, uint32_t device)
{
    struct node *n = calloc(1, sizeof(*n));

    if (n == NULL)
        return NULL;
    n->node_number = ++last_number;
    n->node_attr.attr_type = type;
    n->node_attr.attr_device = device;
    n->node_next = nodes;
    nodes = n;
    return n;
}

static void node_free(struct node *n)
{
    struct node **at = &nodes;

    while (*at != n)
        at = &(*at)->node_next;
    *at = n->node_next;
    bytes_used -= n->node_attr.attr_size;
    free(n->node_bytes);
    free(n);
}

/* The link to the entry, or the end of the list. */
static struct entry **find(struct node *dir, const char *name)
{
    struct entry **at = &dir->node_entries;

    while (*at != NULL && strcmp((*at)->entry_name, name) != 0)
        at = &(*at)->entry_next;
    return at;
}

static int enter(struct node *dir, const char *name, struct node *n)
{
    struct entry *e = malloc(sizeof(*e));

    if (e == NULL)
        return -ENOSPC;
    strlcpy(e->entry_name, name, sizeof(e->entry_name));
    e->entry_node = n;
    e->entry_cookie = ++last_cookie;
    e->entry_next = dir->node_entries;
    dir->node_entries = e;
    return 0;
}

static void leave(struct entry **at)
{
    struct entry *e = *at;

    *at = e->entry_next;
    free(e);
}

/* A directory's links: its entry, its own ".", and ".." of those below. */
static void count_child(struct node *dir, struct node *child, int by)
{
    if (child->node_attr.attr_type != FILE_DIRECTORY)
        return;
    child->node_parent = dir->node_number;
    dir->node_attr.attr_nlink += (uint32_t)by;
}

/* ---- lookup ------------------------------------------------------------- */

static int do_stat(void *fs, struct fs_stat *out)
{
    (void)fs;
    out->fs_root = ROOT;
    out->fs_block_size = 1;
    out->fs_blocks = BYTES_MAX;
    out->fs_blocks_free = BYTES_MAX - bytes_used;
    strlcpy(out->fs_kind, kind, sizeof(out->fs_kind));
    return 0;
}

static int do_inode(void *fs, uint32_t file, struct fs_attr *out)
{
    const struct node *n = node_of(file);

    (void)fs;
    if (n == NULL)
        return -ENOENT;
    *out = n->node_attr;
    out->attr_blocks = (out->attr_size + 4095) / 4096;
    return 0;
}

static int do_lookup(void *fs, uint32_t dir, const char *name, uint32_t *file)
{
    struct node *d = node_of(dir);
    const struct entry *e;

    (void)fs;
    if (d == NULL)
        return -ENOENT;
    e = *find(d, name);
    if (e == NULL && strcmp(name, "..") != 0)
        return -ENOENT;
    *file = e == NULL ? d->node_parent : e->entry_node->node_number;
    return 0;
}

static int do_name(void *fs, uint32_t dir, char *name)
{
    const struct node *d = node_of(dir);
    const struct node *parent = d == NULL ? NULL : node_of(d->node_parent);
    const struct entry *e = parent == NULL ? NULL : parent->node_entries;

    (void)fs;
    while (e != NULL && e->entry_node != d)
        e = e->entry_next;
    if (e == NULL)
        return -ENOENT;
    strlcpy(name, e->entry_name, NAME_MAX + 1);
    return 0;
}

/* The entry with the lowest cookie from `least` on; the list is in descending
 * order. */
static const struct entry *entry_from(const struct node *d, uint32_t least)
{
    const struct entry *found = NULL;

    for (const struct entry *e = d->node_entries; e != NULL; e = e->entry_next)
        if (e->entry_cookie >= least)
            found = e;
    return found;
}

static ssize_t do_getdents(void *fs, uint32_t dir, uint32_t *offset, void *buf,
                           size_t n)
{
    const struct node *d = node_of(dir);
    size_t used = 0, size;

    (void)fs;
    if (d == NULL || d->node_attr.attr_type != FILE_DIRECTORY)
        return -ENOTDIR;
    for (;;) {
        const struct entry *e = entry_from(d, *offset);
        const struct node *of = *offset == 0   ? d
                                : *offset == 1 ? node_of(d->node_parent)
                                : e == NULL    ? NULL
                                               : e->entry_node;
        const char *name = *offset == 0   ? "."
                           : *offset == 1 ? ".."
                           : e == NULL    ? NULL
                                          : e->entry_name;

        if (of == NULL)
            return (ssize_t)used;
        size = dirent_store((char *)buf + used, n - used, of->node_number,
                            of->node_attr.attr_type, name, strlen(name));
        if (size == 0)
            return used > 0 ? (ssize_t)used : -EINVAL;
        used += size;
        *offset = *offset < 2 ? *offset + 1 : e->entry_cookie + 1;
    }
}

/* ---- changing directories ----------------------------------------------- */

static int do_create(void *fs, uint32_t dir, const char *name, uint32_t type,
                     uint32_t device, uint32_t *file)
{
    struct node *d = node_of(dir);
    struct node *n;

    (void)fs;
    if (d == NULL || d->node_attr.attr_nlink == 0)
        return -ENOENT;
    n = node_create(type, device);
    if (n == NULL)
        return -ENOSPC;
    if (enter(d, name, n) < 0) {
        node_free(n);
        return -ENOSPC;
    }
    n->node_attr.attr_nlink = type == FILE_DIRECTORY ? 2 : 1;
    count_child(d, n, 1);
    *file = n->node_number;
    return 0;
}

static int do_link(void *fs, uint32_t dir, const char *name, uint32_t file)
{
    struct node *d = node_of(dir);
    struct node *n = node_of(file);

    (void)fs;
    if (d == NULL || n == NULL || d->node_attr.attr_nlink == 0)
        return -ENOENT;
    if (enter(d, name, n) < 0)
        return -ENOSPC;
    n->node_attr.attr_nlink++;
    return 0;
}

/* Removes an entry. A directory then has no links, a file one less. */
static void remove_entry(struct node *dir, struct entry **at)
{
    struct node *n = (*at)->entry_node;

    leave(at);
    if (n->node_attr.attr_type == FILE_DIRECTORY)
        n->node_attr.attr_nlink = 0;
    else
        n->node_attr.attr_nlink--;
    count_child(dir, n, -1);
}

static int do_unlink(void *fs, uint32_t dir, const char *name, uint32_t file,
                     uint32_t *links)
{
    struct node *d = node_of(dir);
    struct node *n = node_of(file);
    struct entry **at = d == NULL ? NULL : find(d, name);

    (void)fs;
    if (at == NULL || *at == NULL || (*at)->entry_node != n)
        return -ENOENT;
    remove_entry(d, at);
    *links = n->node_attr.attr_nlink;
    return 0;
}

static int do_rmdir(void *fs, uint32_t dir, const char *name, uint32_t file)
{
    const struct node *n = node_of(file);
    uint32_t links;

    if (n != NULL && n->node_entries != NULL)
        return -ENOTEMPTY;
    return do_unlink(fs, dir, name, file, &links);
}

/* Looks up the file at `to`. The kernel has checked that it may be replaced,
 * except whether a directory is empty. */
static int do_rename(void *fs, uint32_t from_dir, const char *from,
                     uint32_t to_dir, const char *to, uint32_t file)
{
    struct node *a = node_of(from_dir);
    struct node *b = node_of(to_dir);
    struct node *n = node_of(file);
    struct entry **target;

    (void)fs;
    if (a == NULL || b == NULL || *find(a, from) == NULL ||
        (*find(a, from))->entry_node != n)
        return -ENOENT;
    target = find(b, to);
    if (*target != NULL && (*target)->entry_node->node_entries != NULL)
        return -ENOTEMPTY;
    if (enter(b, to, n) < 0)
        return -ENOSPC;
    /* The new entry precedes the old one in the list. */
    target = &b->node_entries->entry_next;
    while (*target != NULL && strcmp((*target)->entry_name, to) != 0)
        target = &(*target)->entry_next;
    if (*target != NULL)
        remove_entry(b, target);
    leave(find(a, from));
    count_child(a, n, -1);
    count_child(b, n, 1);
    return 0;
}

/* ---- contents ----------------------------------------------------------- */

static ssize_t do_read(void *fs, uint32_t file, uint32_t offset, void *buf,
                       size_t n)
{
    const struct node *f = node_of(file);

    (void)fs;
    if (f == NULL)
        return -ENOENT;
    if (offset >= f->node_attr.attr_size)
        return 0;
    n = MIN(n, f->node_attr.attr_size - offset);
    memcpy(buf, f->node_bytes + offset, n);
    return (ssize_t)n;
}

static int do_truncate(void *fs, uint32_t file, uint32_t size)
{
    struct node *f = node_of(file);
    char *bytes;

    (void)fs;
    if (f == NULL)
        return -ENOENT;
    if (size > BYTES_MAX - bytes_used + f->node_attr.attr_size)
        return -ENOSPC;
    bytes = realloc(f->node_bytes, size);
    if (bytes == NULL && size > 0)
        return -ENOSPC;
    f->node_bytes = bytes;
    if (size > f->node_attr.attr_size)
        memset(bytes + f->node_attr.attr_size, 0,
               size - f->node_attr.attr_size);
    bytes_used += size - f->node_attr.attr_size;
    f->node_attr.attr_size = size;
    return 0;
}

static ssize_t do_write(void *fs, uint32_t file, uint32_t offset,
                        const void *buf, size_t n, uint32_t *size)
{
    struct node *f = node_of(file);
    int error = f == NULL ? -ENOENT : 0;

    if (error == 0 && offset + n > f->node_attr.attr_size)
        error = do_truncate(fs, file, offset + n);
    if (error != 0)
        return error;
    memcpy(f->node_bytes + offset, buf, n);
    *size = f->node_attr.attr_size;
    return (ssize_t)n;
}

static int do_release(void *fs, uint32_t file)
{
    struct node *n = node_of(file);

    (void)fs;
    if (n == NULL || n->node_attr.attr_nlink != 0)
        return -EINVAL;
    node_free(n);
    return 0;
}

/* ---- starting ----------------------------------------------------------- */

int main(int argc, char *argv[])
{
    static const struct fs_functions functions = {
        .fs_stat = do_stat,
        .fs_inode = do_inode,
        .fs_lookup = do_lookup,
        .fs_name = do_name,
        .fs_create = do_create,
        .fs_link = do_link,
        .fs_unlink = do_unlink,
        .fs_rmdir = do_rmdir,
        .fs_rename = do_rename,
        .fs_read = do_read,
        .fs_write = do_write,
        .fs_truncate = do_truncate,
        .fs_getdents = do_getdents,
        .fs_release = do_release,
    };
    struct node *root;
    int port = port_create();

    if (argc < 2 || argc > 3)
        usage("PATH [KIND]");
    kind = argc == 3 ? argv[2] : kind;
    root = node_create(FILE_DIRECTORY, 0);
    if (port < 0 || root == NULL)
        err(1, "cannot start");
    root->node_parent = ROOT;
    root->node_attr.attr_nlink = 2;
    if (fs_serve(port, argv[1], &functions, NULL) < 0)
        err(1, "%s", argv[1]);
    return 0;
}
