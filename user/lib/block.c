/*
 * A client of block servers (user/lib/block.h).
 *
 * The server may die at any moment. Then a call of its port fails with EPIPE,
 * and a new server publishes another port under the same name. The client waits
 * for it and repeats the request: repeating reads and writes is harmless. The
 * new server must be of the same session as the first, so that no other program
 * can take its place, and must have the same disk, recognized by its size.
 */
#include "user/lib/block.h"
#include "user/lib/string.h"

#define TRIES    3  /* for a read or write that ends with EIO */
#define PAUSE_MS 10 /* interval of looking for a server */

/* Closes a dead port. */
static void forget(struct block_device *dev)
{
    if (dev->block_port >= 0)
        close(dev->block_port);
    dev->block_port = -1;
}

/* One call: 0, or the negated error of the server or of the call. */
static int call_once(struct block_device *dev, struct message *m)
{
    if (ipc_call(dev->block_port, m) < 0)
        return -errno;
    return (int)m->msg_word[0];
}

/* Whether the server at the new port has the same disk. */
static int check_disk(struct block_device *dev)
{
    struct message m = {.msg_tag = BLOCK_INFO, .msg_word = {dev->block_disk}};
    int result = call_once(dev, &m);

    if (result < 0)
        return result;
    if (dev->block_sectors == 0)
        dev->block_sectors = m.msg_word[1];
    return dev->block_sectors == m.msg_word[1] ? 0 : -ENODEV;
}

/* Looks the server up, once. A stranger's port is no server. */
static int connect(struct block_device *dev)
{
    uint32_t session;
    int result;

    dev->block_port = name_lookup_owner(dev->block_server, &session);
    if (dev->block_port < 0)
        return -errno;
    if (dev->block_sectors == 0)
        dev->block_session = session;
    result = session == dev->block_session ? check_disk(dev) : -ENOENT;
    if (result < 0)
        forget(dev);
    return result;
}

/* Whether a later attempt may succeed: there was no server, or no memory for
 * the request. */
static bool may_pass(int result)
{
    return result == -EPIPE || result == -ENOENT || result == -ENOMEM;
}

/* Calls the server, or its successors, for at most the patience. */
static int call_patiently(struct block_device *dev, const struct message *ask,
                          struct message *m)
{
    uint32_t start = uptime_ms();

    for (;;) {
        int result = dev->block_port < 0 ? connect(dev) : 0;

        if (result == 0) {
            *m = *ask;
            result = call_once(dev, m);
        }
        if (!may_pass(result))
            return result;
        forget(dev);
        if (uptime_diff(uptime_ms(), start) >= BLOCK_PATIENCE_MS)
            return result;
        sleep_ms(PAUSE_MS);
    }
}

/* Sends a request; errno is `error` if no server comes. After EIO a flush is
 * not repeated: it would succeed without the sectors that the drive dropped. */
static int request(struct block_device *dev, struct message *ask, int error)
{
    unsigned tries = IPC_LABEL(ask->msg_tag) == BLOCK_FLUSH ? 1 : TRIES;
    struct message m;
    int result = -EIO;

    for (unsigned i = 0; i < tries && result == -EIO; i++)
        result = call_patiently(dev, ask, &m);
    if (result >= 0) {
        *ask = m;
        return 0;
    }
    errno = may_pass(result) && error != 0 ? error : -result;
    return -1;
}

int block_open(struct block_device *dev, const char *server, uint32_t disk)
{
    struct message m = {.msg_tag = BLOCK_INFO, .msg_word = {disk}};

    *dev = (struct block_device){.block_port = -1, .block_disk = disk};
    if (strlcpy(dev->block_server, server, sizeof(dev->block_server)) >=
        sizeof(dev->block_server)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return request(dev, &m, 0);
}

/* One request of at most BLOCK_MAX sectors; `b` describes the bytes. */
static int move(struct block_device *dev, uint32_t label, uint32_t first,
                uint32_t sectors, struct ipc_buffer *b)
{
    struct message m = {
        .msg_tag = label | (label == BLOCK_WRITE ? IPC_DATA : 0),
        .msg_word = {dev->block_disk, first, sectors},
        .msg_buffer = b,
    };

    if (request(dev, &m, EIO) < 0)
        return -1;
    if (label == BLOCK_READ && b->ipc_received != sectors * BLOCK_SECTOR) {
        errno = EIO;
        return -1;
    }
    return 0;
}

int block_read(struct block_device *dev, uint32_t first, uint32_t sectors,
               void *buf)
{
    char *to = buf;

    while (sectors > 0) {
        uint32_t n = MIN(sectors, BLOCK_MAX);
        struct ipc_buffer b = {.ipc_receive = to,
                               .ipc_receive_max = n * BLOCK_SECTOR};

        if (move(dev, BLOCK_READ, first, n, &b) < 0)
            return -1;
        first += n;
        sectors -= n;
        to += n * BLOCK_SECTOR;
    }
    return 0;
}

int block_write(struct block_device *dev, uint32_t first, uint32_t sectors,
                const void *buf)
{
    const char *from = buf;

    while (sectors > 0) {
        uint32_t n = MIN(sectors, BLOCK_MAX);
        struct ipc_buffer b = {.ipc_send = from,
                               .ipc_send_size = n * BLOCK_SECTOR};

        if (move(dev, BLOCK_WRITE, first, n, &b) < 0)
            return -1;
        first += n;
        sectors -= n;
        from += n * BLOCK_SECTOR;
    }
    return 0;
}

int block_flush(struct block_device *dev)
{
    struct message m = {.msg_tag = BLOCK_FLUSH, .msg_word = {dev->block_disk}};

    return request(dev, &m, EIO);
}
