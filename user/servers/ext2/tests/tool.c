/*
 * ext2tool IMAGE: changes an ext2 image with the core of the file server.
 *
 * Reads commands from standard input, one in a line:
 *
 *     mkdir PATH              put FILE PATH       a file of the host's
 *     rmdir PATH              get PATH FILE
 *     rm PATH                 write PATH OFFSET BYTES SEED
 *     mv PATH PATH            truncate PATH BYTES
 *     ln PATH PATH            node PATH NUMBER
 *     ls PATH                 every file below, with type, links and size
 *     list PATH OFFSET        names in a directory from a getdents offset on
 *     many PATH FROM TO       empty files PATH0 …
 *     df    sync              counts                 fsync PATH
 *     orphan PATH             removes its name while it is open
 *     breaks                  from now on every write fails
 *     crash                   ends without an unmount
 *     records                 for `ext2tool cuts`: cuts the power from here on
 *     fails ERROR COMMAND …   expects this error of the command
 *
 * An unknown command or an error ends it with status 1 and the reason, and
 * leaves the image unchanged; at the end the file system is unmounted and the
 * image written.
 */
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "user/lib/stdlib.h"
#include "user/servers/ext2/tests/disk.h"
#include "user/servers/ext2/tests/host.h"
#include "user/servers/ext2/tests/paths.h"
#include "user/servers/ext2/tests/suites.h"
#include "tools/test/budget.h"

#define WORDS_MAX 8
#define STEPS     10000000000 /* 20 times what the longest test takes */

static uint32_t number(const char *word)
{
    char *end;
    unsigned long value = strtoul(word, &end, 10);

    if (*end != 0 || end == word)
        host_fail("not a number: %s", word);
    return (uint32_t)value;
}

void pattern(uint8_t *data, size_t n, uint32_t seed)
{
    uint32_t state = seed * 2654435761u + 1;

    for (size_t i = 0; i < n; i++)
        data[i] = (uint8_t)(random_next(&state) >> 8);
}

static int do_write(struct ext2 *fs, char **w)
{
    uint32_t n = number(w[3]);
    uint8_t *data = malloc(n + 1u);
    int r;

    pattern(data, n, number(w[4]));
    r = path_write(fs, w[1], number(w[2]), data, n);
    free(data);
    return r >= 0 && (uint32_t)r < n ? -ENOSPC : r;
}

static int do_put(struct ext2 *fs, char **w)
{
    size_t n;
    uint8_t *data = host_load(w[1], &n);
    int r = path_write(fs, w[2], 0, data, n);

    free(data);
    return r >= 0 && (size_t)r < n ? -ENOSPC : r;
}

static int do_get(struct ext2 *fs, char **w)
{
    int32_t size;
    uint8_t *data = path_read(fs, w[1], &size);

    if (data == NULL)
        return size;
    host_save(w[2], data, (size_t)size);
    free(data);
    return 0;
}

static int print_file(void *arg, const char *path, uint32_t file,
                      const struct fs_attr *attr)
{
    static const char types[] = "?-dc";

    (void)arg;
    (void)file;
    host_print("%c %u %u %s\n", types[MIN(attr->attr_type, 3u)],
               attr->attr_nlink, attr->attr_size, path);
    return 0;
}

static int do_list(struct ext2 *fs, char **w)
{
    uint32_t offset = number(w[2]);
    char buf[512] __attribute__((aligned(4)));
    uint32_t dir;
    int n = path_find(fs, w[1], &dir);

    if (n == 0)
        n = ext2_getdents(fs, dir, &offset, buf, sizeof(buf));
    for (int i = 0; i < n;) {
        const struct dirent *d = (const struct dirent *)(buf + i);

        host_print("%s\n", d->d_name);
        i += d->d_reclen;
    }
    return n;
}

static int do_many(struct ext2 *fs, char **w)
{
    char path[256];

    for (uint32_t i = number(w[2]); i < number(w[3]); i++) {
        int r;

        snprintf(path, sizeof(path), "%s%u", w[1], (unsigned)i);
        r = path_create(fs, path, FILE_REGULAR, 0);
        if (r < 0)
            return r;
    }
    return 0;
}

static int do_df(struct ext2 *fs)
{
    struct fs_stat stat;

    ext2_stat(fs, &stat);
    host_print("%u of %u blocks free, %u of %u files\n", stat.fs_blocks_free,
               stat.fs_blocks, stat.fs_files_free, stat.fs_files);
    return 0;
}

static int do_counts(struct ext2 *fs)
{
    struct ext2_counts c;

    ext2_counts(fs, &c);
    host_print("hits %u misses %u reads %u sectors %u writes %u sectors %u "
               "flushes %u commits %u journaled %u errors %u\n",
               c.count_hits, c.count_misses, c.count_reads,
               c.count_read_sectors, c.count_writes, c.count_write_sectors,
               c.count_flushes, c.count_commits, c.count_journaled,
               c.count_errors);
    return 0;
}

static int do_orphan(struct ext2 *fs, const char *path)
{
    uint32_t file, links;
    int r = path_find(fs, path, &file);

    return r < 0 ? r : ext2_unlink(fs, 2, path + 1, file, &links);
}

static bool is(const char *word, const char *name, int words, int want)
{
    return strcmp(word, name) == 0 && words == want + 1;
}

static int run(struct ext2 *fs, int n, char **w)
{
    if (is(w[0], "mkdir", n, 1))
        return path_create(fs, w[1], FILE_DIRECTORY, 0);
    if (is(w[0], "rmdir", n, 1))
        return path_rmdir(fs, w[1]);
    if (is(w[0], "rm", n, 1))
        return path_unlink(fs, w[1]);
    if (is(w[0], "orphan", n, 1))
        return do_orphan(fs, w[1]);
    if (is(w[0], "mv", n, 2))
        return path_rename(fs, w[1], w[2]);
    if (is(w[0], "ln", n, 2))
        return path_link(fs, w[1], w[2]);
    if (is(w[0], "node", n, 2))
        return path_create(fs, w[1], FILE_DEVICE, number(w[2]));
    if (is(w[0], "ls", n, 1))
        return path_walk(fs, w[1], print_file, NULL);
    if (is(w[0], "put", n, 2))
        return do_put(fs, w);
    if (is(w[0], "get", n, 2))
        return do_get(fs, w);
    if (is(w[0], "write", n, 4))
        return do_write(fs, w);
    if (is(w[0], "truncate", n, 2))
        return path_truncate(fs, w[1], number(w[2]));
    if (is(w[0], "list", n, 2))
        return do_list(fs, w);
    if (is(w[0], "many", n, 3))
        return do_many(fs, w);
    if (is(w[0], "df", n, 0))
        return do_df(fs);
    if (is(w[0], "counts", n, 0))
        return do_counts(fs);
    if (is(w[0], "sync", n, 0))
        return ext2_sync(fs, 0);
    if (is(w[0], "fsync", n, 1))
        return path_fsync(fs, w[1]);
    host_fail("unknown command: %s", w[0]);
}

static void line(struct ext2 *fs, char *text)
{
    char *words[WORDS_MAX] = {NULL};
    char **w = words;
    int n = 0;
    int want = 0;
    int r;

    for (char *at = text; *at != 0 && n < WORDS_MAX;) {
        words[n++] = at;
        at = strchr(at, ' ');
        if (at == NULL)
            break;
        *at++ = 0;
    }
    if (n == 0)
        return;
    if (strcmp(w[0], "fails") == 0 && n > 2) {
        want = -(int)number(w[1]);
        w += 2;
        n -= 2;
    }
    r = run(fs, n, w);
    if (want != 0 ? r != want : r < 0)
        host_fail("%s %s: %d", w[0], n > 1 ? w[1] : "", r);
}

/* Executes a command about the disk itself; false: it is another command. */
static bool disk_line(struct disk *disk, const char *text, uint8_t *before)
{
    if (strcmp(text, "breaks") == 0) {
        disk->disk_broken = true;
        return true;
    }
    if (strcmp(text, "records") != 0 || before == NULL)
        return false;
    memcpy(before, disk->disk_image, 512u * disk->disk_sectors);
    disk->disk_recording = true;
    return true;
}

/* All lines of standard input, up to the last or to "crash": true. */
static bool lines(struct ext2 *fs, struct disk *disk, uint8_t *before)
{
    char text[1024];

    while (host_line(text, sizeof(text))) {
        const char *wrong;

        if (strcmp(text, "crash") == 0)
            return true;
        if (!disk_line(disk, text, before))
            line(fs, text);
        wrong = ext2_verify(fs);
        if (wrong != NULL)
            host_fail("broken: %s", wrong);
    }
    return false;
}

static int commands(const char *image)
{
    struct disk disk;
    struct ext2 *fs;
    int r = 0;

    disk_load(&disk, image);
    fs = disk_mount(&disk, 1u << 18);
    if (ext2_read_only(fs) != NULL)
        host_print("read-only: %s\n", ext2_read_only(fs));
    if (!lines(fs, &disk, NULL))
        r = ext2_unmount(fs);
    ext2_free(fs);
    if (r < 0)
        host_fail("cannot unmount: %d", r);
    if (disk.disk_said[0] != 0)
        host_print("said: %s\n", disk.disk_said);
    disk_save(&disk, image);
    disk_close(&disk);
    return 0;
}

static int cuts(const char *image, uint32_t ways)
{
    char path[256];
    uint8_t *before;
    struct disk disk;
    struct ext2 *fs;
    size_t size;

    disk_load(&disk, image);
    before = host_load(image, &size);
    fs = disk_mount(&disk, 1u << 16);
    lines(fs, &disk, before);
    ext2_free(fs);
    snprintf(path, sizeof(path), "%s.cut", image);
    cut_everywhere(&disk, before, ways, path);
    free(before);
    disk_close(&disk);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "fuzz") == 0)
        return fuzz(argv[2], number(argv[3]), number(argv[4]));
    budget_begin("ext2tool", STEPS);
    if (argc == 2)
        return commands(argv[1]);
    if (argc == 6 && strcmp(argv[1], "soak") == 0)
        return soak(argv[2], number(argv[3]), number(argv[4]), number(argv[5]));
    if (argc == 6 && strcmp(argv[1], "powercut") == 0)
        return powercut(argv[2], number(argv[3]), number(argv[4]),
                        number(argv[5]));
    if (argc == 4 && strcmp(argv[1], "cuts") == 0)
        return cuts(argv[2], number(argv[3]));
    host_fail("usage: ext2tool IMAGE < commands\n"
              "       ext2tool soak IMAGE SEED STEPS BYTES\n"
              "       ext2tool powercut IMAGE SEED STEPS CUTS\n"
              "       ext2tool cuts IMAGE WAYS < commands\n"
              "       ext2tool fuzz IMAGE SEED MUTATIONS");
}
