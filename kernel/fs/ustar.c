/*
 * The initrd: a ustar archive (POSIX.1, "pax", ustar interchange format).
 *
 *     header | contents, filled up to 512 | header | … | zeroes | zeroes
 *
 * Nothing in the archive is trusted: each header must have the right checksum,
 * each length must be inside the archive. Errors are reported and skipped;
 * after an unreadable header the next good one is searched for.
 */
#include "drivers/console.h"
#include "kernel/fs/ramfs.h"
#include "kernel/lib/string.h"

#define BLOCK    512u
#define NAME_LEN 100u
#define PATH_LEN 256u /* prefix, slash, name */

struct header {
    char name[NAME_LEN];
    char mode[8];
    char uid[8];
    char gid[8];
    char size[12];
    char mtime[12];
    char checksum[8];
    char type;
    char linkname[100];
    char magic[6];
    char version[2];
    char uname[32];
    char gname[32];
    char devmajor[8];
    char devminor[8];
    char prefix[155];
    char unused[12];
};

_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

struct unpacking {
    const char *pos;
    const char *end;
    struct ramfs_node *root;
    unsigned broken;
    char path[PATH_LEN + 1]; /* of the current entry */
};

/* Names from the archive are escaped before they are printed. */
static void report_entry(struct unpacking *u, const char *name,
                         const char *what)
{
    char text[PATH_LEN + 1];

    u->broken++;
    strlcpy(text, name, sizeof(text));
    make_printable(text);
    kprintf("initrd: %s: %s\n", text, what);
}

/* ---- headers ------------------------------------------------------------ */

static uint32_t sum_of(const char *bytes, size_t n)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (uint8_t)bytes[i];
    return sum;
}

/* An octal number that ends at a blank, a NUL or the end of the field. */
static bool octal(const char *s, size_t n, uint32_t *value)
{
    const char *end = s + n;
    const char *first;
    uint32_t v = 0;

    while (s < end && *s == ' ')
        s++;
    for (first = s; s < end && *s >= '0' && *s <= '7'; s++) {
        if (v > UINT32_MAX / 8)
            return false;
        v = 8 * v + (uint32_t)(*s - '0');
    }
    *value = v;
    return s > first && (s == end || *s == ' ' || *s == '\0');
}

/* The checksum counts its own field as blanks. */
static bool is_header(const struct header *h)
{
    uint32_t sum = sum_of((const char *)h, BLOCK) -
                   sum_of(h->checksum, sizeof(h->checksum)) +
                   sizeof(h->checksum) * ' ';
    uint32_t want;

    return octal(h->checksum, sizeof(h->checksum), &want) && want == sum &&
           memcmp(h->magic, "ustar", 5) == 0;
}

/* The path in the header, which may be in two fields. GNU's variant uses the
 * prefix field for something else. */
static void take_path(struct unpacking *u, const struct header *h)
{
    char *to = u->path;

    if (h->magic[5] == '\0' && h->prefix[0] != '\0') {
        size_t n = strnlen(h->prefix, sizeof(h->prefix));

        memcpy(to, h->prefix, n);
        to[n] = '/';
        to += n + 1;
    }
    memcpy(to, h->name, NAME_LEN);
    to[NAME_LEN] = '\0';
}

/* ---- files -------------------------------------------------------------- */

/* These return NULL, or what is wrong with the entry. */

/* The first component of `name` in `dir`; created as `type` if missing. */
static const char *enter_component(struct ramfs_node *dir, const char *name,
                                   size_t n, enum file_type type,
                                   struct ramfs_node **out)
{
    if (n > NAME_MAX)
        return "a name in the path is too long";
    if (n == 2 && name[0] == '.' && name[1] == '.')
        return "the path leads out of the root";
    *out = dir;
    if (n == 0 || (n == 1 && name[0] == '.'))
        return NULL;
    if (ramfs_obtain(dir, name, n, type, out) < 0)
        return "not enough memory";
    return (*out)->node_type == type
               ? NULL
               : "a file and a directory have the same name";
}

/* Walks the directories of the first `n` bytes of the path, creating them. */
static const char *walk_directories(struct unpacking *u, size_t n,
                                    struct ramfs_node **dir)
{
    const char *p = u->path;
    const char *end = p + n;
    const char *wrong = NULL;

    *dir = u->root;
    while (p < end && wrong == NULL) {
        const char *name = p;

        while (p < end && *p != '/')
            p++;
        wrong = enter_component(*dir, name, (size_t)(p - name), FILE_DIRECTORY,
                                dir);
        p++;
    }
    return wrong;
}

static const char *add_file(struct unpacking *u, const char *data,
                            uint32_t size)
{
    struct ramfs_node *node;
    const char *wrong;
    size_t n = strlen(u->path);
    size_t dir = n;

    while (dir > 0 && u->path[dir - 1] != '/')
        dir--;
    if (dir == n || (dir == n - 1 && u->path[dir] == '.'))
        return "a file with the name of a directory";
    if (size > RAMFS_FILE_MAX)
        return "larger than 64 MiB";
    wrong = walk_directories(u, dir, &node);
    if (wrong == NULL)
        wrong =
            enter_component(node, u->path + dir, n - dir, FILE_REGULAR, &node);
    if (wrong == NULL)
        ramfs_file_archived(node, data, size);
    return wrong;
}

/* ---- the archive -------------------------------------------------------- */

/* Unpacks the entry with header `h`; u->pos is after it. False if the archive
 * ends within its contents. */
static bool take_entry(struct unpacking *u, const struct header *h)
{
    struct ramfs_node *dir;
    const char *wrong;
    uint32_t size = 0;

    take_path(u, h);
    if (!octal(h->size, sizeof(h->size), &size)) {
        report_entry(u, u->path, "its size is not a number");
        return true;
    }
    if (size > (size_t)(u->end - u->pos)) {
        report_entry(u, u->path, "the archive ends within this file");
        return false;
    }
    if (h->type == '0' || h->type == '\0')
        wrong = add_file(u, u->pos, size);
    else if (h->type == '5')
        wrong = walk_directories(u, strlen(u->path), &dir);
    else
        wrong = "only files and directories can be unpacked";
    if (wrong != NULL)
        report_entry(u, u->path, wrong);
    u->pos += MIN(ROUND_UP(size, BLOCK), (size_t)(u->end - u->pos));
    return true;
}

/* Moves to the next good header at or after u->pos; NULL at the end. */
static const struct header *next_header(struct unpacking *u)
{
    bool lost = false;

    while ((size_t)(u->end - u->pos) >= BLOCK) {
        const struct header *h = (const struct header *)u->pos;

        u->pos += BLOCK;
        if (is_header(h))
            return h;
        if (!lost && sum_of((const char *)h, BLOCK) == 0)
            return NULL;
        if (!lost)
            report_entry(u, "broken header", "searching for the next");
        lost = true;
    }
    if (!lost)
        report_entry(u, "no end mark", "the archive is truncated");
    return NULL;
}

unsigned ustar_unpack(const void *start, size_t size, struct ramfs_node *dir)
{
    struct unpacking u = {
        .pos = start, .end = (const char *)start + size, .root = dir};
    const struct header *h;

    if (size == 0)
        return 0;
    while ((h = next_header(&u)) != NULL)
        if (!take_entry(&u, h))
            break;
    return u.broken;
}
