/*
 * ramdisk: a block server (user/lib/block.h) whose disk is a file in RAM.
 *
 *     ramdisk [-n NAME] IMAGE        publishes disk 0 under NAME, or "ramdisk"
 *
 * Provides a disk without hardware: a file server on it executes exactly the
 * same instructions each time, which an emulated drive does not allow. The
 * image is an ordinary file of the RAM file system and always up to date, so a
 * flush does nothing.
 */
#include "user/lib/block.h"
#include "user/lib/err.h"

static uint8_t data[BLOCK_MAX * BLOCK_SECTOR];

struct disk {
    int disk_image; /* the file's handle */
    uint32_t disk_sectors;
};

/* Whether these sectors are on the disk and fit in a message. */
static bool within(const struct disk *d, uint32_t first, uint32_t sectors)
{
    return sectors != 0 && sectors <= BLOCK_MAX && first < d->disk_sectors &&
           sectors <= d->disk_sectors - first;
}

static int seek(const struct disk *d, uint32_t first)
{
    off_t at = (off_t)(first * BLOCK_SECTOR);

    return lseek(d->disk_image, at, SEEK_SET) == at ? 0 : EIO;
}

static int read_sectors(const struct disk *d, struct message *m)
{
    uint32_t bytes = m->msg_word[2] * BLOCK_SECTOR;

    if (!within(d, m->msg_word[1], m->msg_word[2]))
        return EINVAL;
    if (seek(d, m->msg_word[1]) != 0 ||
        read(d->disk_image, data, bytes) != (ssize_t)bytes)
        return EIO;
    m->msg_tag = IPC_DATA;
    m->msg_buffer->ipc_send_size = bytes;
    return 0;
}

static int write_sectors(const struct disk *d, const struct message *m)
{
    uint32_t bytes = m->msg_word[2] * BLOCK_SECTOR;

    if (!within(d, m->msg_word[1], m->msg_word[2]) ||
        m->msg_buffer->ipc_received != bytes)
        return EINVAL;
    if (seek(d, m->msg_word[1]) != 0 ||
        write_all(d->disk_image, data, bytes) != 0)
        return EIO;
    return 0;
}

/* Executes a request and builds the reply. */
static void execute(const struct disk *d, struct message *m)
{
    uint32_t label = IPC_LABEL(m->msg_tag);
    int error = 0;

    m->msg_tag = 0;
    if (label < BLOCK_INFO || label > BLOCK_FLUSH)
        error = EINVAL;
    else if (m->msg_word[0] != 0)
        error = ENODEV;
    else if (label == BLOCK_INFO)
        m->msg_word[1] = d->disk_sectors;
    else if (label == BLOCK_READ)
        error = read_sectors(d, m);
    else if (label == BLOCK_WRITE)
        error = write_sectors(d, m);
    m->msg_word[0] = (uint32_t)-error;
}

static void serve(int port, const struct disk *d) __attribute__((noreturn));
static void serve(int port, const struct disk *d)
{
    struct ipc_buffer b = {
        .ipc_send = data,
        .ipc_receive = data,
        .ipc_receive_max = sizeof(data),
    };
    struct message m = {.msg_buffer = &b};
    int result = ipc_receive(port, &m);

    for (;;) {
        if (result == 0 && b.ipc_received_handle >= 0)
            close(b.ipc_received_handle);
        if (result == 0 && m.msg_client != 0) {
            execute(d, &m);
            result = ipc_reply_receive(port, &m);
        } else {
            /* a client that did not receive its reply, or a notification */
            result = ipc_receive(port, &m);
        }
    }
}

static struct disk open_disk(const char *path)
{
    struct disk d = {.disk_image = open(path, O_RDWR)};
    struct stat st;

    if (d.disk_image < 0 || fstat(d.disk_image, &st) < 0)
        err(1, "%s", path);
    d.disk_sectors = st.st_size / BLOCK_SECTOR;
    if (d.disk_sectors == 0)
        errx(1, "%s: smaller than one sector", path);
    return d;
}

int main(int argc, char **argv)
{
    const char *name = "ramdisk";
    struct disk d;
    int port;
    int c;

    while ((c = getopt(argc, argv, "n:")) != -1) {
        if (c != 'n')
            usage("[-n NAME] IMAGE");
        name = optarg;
    }
    if (argc - optind != 1)
        usage("[-n NAME] IMAGE");
    d = open_disk(argv[optind]);
    port = port_create();
    if (port < 0)
        err(1, "port");
    if (name_register(name, port) < 0)
        err(1, "%s", name);
    serve(port, &d);
}
