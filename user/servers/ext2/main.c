/*
 * ext2 [-v] SERVER DISK PATH: serves the ext2 file system on a disk.
 *
 * The disk is number DISK of a block server (user/lib/block.h); the file system
 * is mounted on PATH. The server exits with 0 after it was unmounted, or with
 * another status after a message if it cannot serve the disk. -v: prints
 * statistics at the end.
 *
 *     kernel ── fs_serve ── ext2_… ── disk_… ── block_… ── ata
 *
 * Changes are on disk after a second or two, also without a sync: an alarm
 * comes each second.
 */
#include "user/lib/block.h"
#include "user/lib/err.h"
#include "user/lib/fs_server.h"
#include "user/lib/number.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/unistd.h"
#include "user/servers/ext2/ext2.h"

#define CACHE     (1u << 20) /* bytes of blocks */
#define TICK_MS   1000u
#define TICK_BIT  0u
#define DISKS_MAX 2u

static struct block_device device;
static int port;

/* ---- the disk ----------------------------------------------------------- */

static int disk_read(void *arg, uint32_t first, uint32_t sectors, void *buf)
{
    return block_read(arg, first, sectors, buf) < 0 ? -errno : 0;
}

static int disk_write(void *arg, uint32_t first, uint32_t sectors,
                      const void *buf)
{
    return block_write(arg, first, sectors, buf) < 0 ? -errno : 0;
}

static int disk_flush(void *arg)
{
    return block_flush(arg) < 0 ? -errno : 0;
}

static uint32_t disk_seconds(void *arg)
{
    (void)arg;
    return uptime_ms() / 1000;
}

static void disk_say(void *arg, const char *text)
{
    (void)arg;
    tellx("%s", text);
}

/* ---- the server --------------------------------------------------------- */

static void set_alarm(void)
{
    if (alarm(port, TICK_MS, TICK_BIT) < 0)
        warn("no alarm: changes are written only by sync");
}

static void handle_alarm(void *fs, uint32_t bits)
{
    if (bits & 1u << TICK_BIT) {
        ext2_sync(fs, 0); /* errors have been reported; reading goes on */
        set_alarm();
    }
}

static const struct fs_functions functions = {
    .fs_stat = ext2_stat,
    .fs_inode = ext2_inode,
    .fs_lookup = ext2_lookup,
    .fs_name = ext2_name,
    .fs_create = ext2_create,
    .fs_link = ext2_link,
    .fs_unlink = ext2_unlink,
    .fs_rmdir = ext2_rmdir,
    .fs_rename = ext2_rename,
    .fs_read = ext2_read,
    .fs_write = ext2_write,
    .fs_truncate = ext2_truncate,
    .fs_getdents = ext2_getdents,
    .fs_release = ext2_release,
    .fs_sync = ext2_sync,
    .fs_unmount = ext2_unmount,
    .fs_notified = handle_alarm,
};

/* Not by err.h: the reason may have several lines. */
static void print_reason(const char *server, uint32_t disk, const char *kind,
                         const char *why)
{
    fprintf(stderr, "%s: %s, disk %u: %s%s\n", program_name, server,
            (unsigned)disk, kind, why);
}

static struct ext2 *open_disk(const char *server, uint32_t disk)
{
    struct ext2_disk with = {
        .disk_read = disk_read,
        .disk_write = disk_write,
        .disk_flush = disk_flush,
        .disk_seconds = disk_seconds,
        .disk_say = disk_say,
        .disk_arg = &device,
    };
    struct ext2 *fs;
    const char *why;
    int error;

    if (block_open(&device, server, disk) < 0)
        err(errno == ENODEV ? EXIT_ABSENT : 1, "%s, disk %u", server,
            (unsigned)disk);
    with.disk_sectors = device.block_sectors;
    error = ext2_mount(&with, CACHE, &fs, &why);
    if (error < 0) {
        print_reason(server, disk, "", why);
        exit(error == -EINVAL || error == -ENOSYS ? EXIT_ABSENT : 1);
    }
    if (ext2_read_only(fs) != NULL)
        print_reason(server, disk, "read-only: ", ext2_read_only(fs));
    return fs;
}

static void report(const struct ext2 *fs)
{
    struct ext2_counts c;

    ext2_counts(fs, &c);
    printf("ext2: blocks asked for %u, read from the disk %u\n"
           "      requests: %u reads, %u writes, %u flushes\n"
           "      sectors: %u read, %u written; commits %u, errors %u\n",
           c.count_hits + c.count_misses, c.count_misses, c.count_reads,
           c.count_writes, c.count_flushes, c.count_read_sectors,
           c.count_write_sectors, c.count_commits, c.count_errors);
}

int main(int argc, char **argv)
{
    bool verbose = false;
    uint32_t disk;
    struct ext2 *fs;
    int option;

    while ((option = getopt(argc, argv, "v")) != -1) {
        if (option != 'v')
            usage("[-v] SERVER DISK PATH");
        verbose = true;
    }
    if (argc - optind != 3)
        usage("[-v] SERVER DISK PATH");
    disk = number_between(argv[optind + 1], 0, DISKS_MAX - 1);
    fs = open_disk(argv[optind], disk);
    port = port_create();
    if (port < 0)
        err(1, "no port");
    set_alarm();
    if (fs_serve(port, argv[optind + 2], &functions, fs) < 0)
        err(1, "%s", argv[optind + 2]);
    if (verbose)
        report(fs);
    ext2_free(fs);
    return 0;
}
