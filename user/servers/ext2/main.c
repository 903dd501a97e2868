/*
 * ext2: the file server. It joins three things that know nothing of each other:
 * the core (ext2.h), the messages of the kernel (user/lib/fs_server.h) and the
 * messages to a block server (user/lib/block.h).
 *
 *     ext2 SERVER DISK PATH      disk number DISK of SERVER, mounted on PATH
 *
 * Once a second it writes what nobody has asked to be written. It ends when the
 * file system has been unmounted.
 */
#include "user/servers/ext2/ext2.h"
#include "user/lib/block.h"
#include "user/lib/err.h"
#include "user/lib/fs_server.h"
#include "user/lib/number.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

#define CACHE_BYTES (1024u * 1024)
#define TICK_MS     1000
#define TICK_BIT    0

/* What the functions of both sides are given. */
static struct {
    struct block_device disk;
    int port;
} server;

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
    warnx("%s", text);
}

/* ---- the server --------------------------------------------------------- */

static void notified(void *fs, uint32_t bits)
{
    if ((bits & 1u << TICK_BIT) == 0)
        return;
    ext2_tick(fs);
    alarm(server.port, TICK_MS, TICK_BIT);
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
    .fs_notified = notified,
};

static struct ext2 *mount_disk(const char *name, uint32_t disk)
{
    struct ext2_disk access = {
        disk_read, disk_write,   disk_flush, disk_seconds,
        disk_say,  &server.disk, 0};
    const char *why = "no reason";
    struct ext2 *fs;
    int error;

    if (block_open(&server.disk, name, disk) < 0)
        err(errno == ENODEV ? EXIT_ABSENT : 1, "%s, disk %u", name, disk);
    access.disk_sectors = server.disk.block_sectors;
    error = ext2_mount(&access, CACHE_BYTES, &fs, &why);
    if (error < 0)
        errx(error == -EINVAL || error == -ENOSYS ? EXIT_ABSENT : 1,
             "%s, disk %u: %s", name, disk, why);
    return fs;
}

int main(int argc, char **argv)
{
    struct ext2 *fs;

    if (argc != 4)
        usage("SERVER DISK PATH");
    fs = mount_disk(argv[1], number_between(argv[2], 0, 3));
    server.port = port_create();
    if (server.port < 0 || alarm(server.port, TICK_MS, TICK_BIT) < 0)
        err(1, "port");
    if (fs_serve(server.port, argv[3], &functions, fs) < 0)
        err(1, "%s", argv[3]);
    ext2_free(fs);
    return 0;
}
