/*
 * Disks for programs: requests to a block server (drivers/servers/ata), which
 * publishes its port under a name.
 *
 * A request is one call of the port. The reply's label is 0, its word 0 the
 * result: 0, or a negated error number (EIO: the disk failed; EINVAL: beyond
 * the end of the disk; ENODEV: no such disk; ENOMEM: no memory for it now).
 *
 *                  word 0   word 1        word 2  bytes
 *     BLOCK_INFO   disk     -             -       -; reply's word 1: sectors
 *     BLOCK_READ   disk     first sector  sectors -; reply's bytes: contents
 *     BLOCK_WRITE  disk     first sector  sectors contents
 *     BLOCK_FLUSH  disk     -             -       -
 *     BLOCK_COUNTS -        -             -       -; reply's bytes:
 *                                                 struct block_counts
 *
 * Disk 0 is the primary master, 1 the slave. When BLOCK_FLUSH returns, all
 * writes completed before it was sent are on disk. Replies come in any
 * order.
 */
#pragma once

#include "user/lib/block_counts.h"
#include "user/lib/ipc.h"

#define BLOCK_SECTOR 512u /* bytes */
#define BLOCK_MAX    128u /* sectors in one request: 64 KiB */

enum block_request {
    BLOCK_INFO = 1,
    BLOCK_READ,
    BLOCK_WRITE,
    BLOCK_FLUSH,
    BLOCK_COUNTS,
};

/* A disk and its server. */
struct block_device {
    char block_server[PORT_NAME_MAX + 1];
    int block_port; /* -1: look it up */
    uint32_t block_disk;
    uint32_t block_sectors; /* 0: no server yet */
    uint32_t block_session; /* the servers' */
};

/*
 * Looks up the server and asks for the disk's size. 0, or -1 with errno. Waits
 * up to BLOCK_PATIENCE_MS for a server of that name.
 */
int block_open(struct block_device *dev, const char *server, uint32_t disk);

/*
 * Read, write and flush any number of sectors, in requests of BLOCK_MAX. 0, or
 * -1 with errno. If the server dies, waits up to BLOCK_PATIENCE_MS for the next
 * and repeats the request; likewise on ENOMEM. Repeats a read or write twice on
 * EIO; if a flush fails, completed writes may be lost, and no later flush
 * reports it.
 */
int block_read(struct block_device *dev, uint32_t first, uint32_t sectors,
               void *buf);
int block_write(struct block_device *dev, uint32_t first, uint32_t sectors,
                const void *buf);
int block_flush(struct block_device *dev);

#define BLOCK_PATIENCE_MS 10000
