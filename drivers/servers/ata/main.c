/*
 * ata: the driver of the primary ATA channel, a program in ring 3.
 * user/lib/block.h defines its requests; its name is `ata`.
 *
 *     ata [-v] [-t MS] [-n NAME]
 *         -v   reports errors on the console. For debugging only: printing
 *              waits while the kernel shell owns the console
 *         -t   ms that a drive may take for a block (5000)
 *         -n   publishes its port under another name
 *
 * One port receives everything: calls are requests, bit IRQ_BIT is the
 * interrupt, bit ALARM_BIT the alarm. The reply to a call is sent when its
 * request has ended, not when it is received: clients wait in the kernel while
 * the driver accepts more requests and chooses among them. The state machine
 * (channel.h) does the rest; this file gives it ports, a clock and replies.
 *
 * The bytes of a write come with its call, so each write has a buffer until its
 * reply. All reads use one buffer: its bytes are sent as soon as they are
 * there.
 */
#include "drivers/servers/ata/channel.h"
#include "user/lib/block.h"
#include "user/lib/err.h"
#include "user/lib/io.h"
#include "user/lib/number.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

#define BASE    0x1f0
#define CONTROL 0x3f6
#define LINE    14

#define IRQ_BIT   0
#define ALARM_BIT 1

#define BUFFER        (BLOCK_MAX * BLOCK_SECTOR)
#define PUBLISH_MS    10 /* interval of looking for a name server */
#define PUBLISH_TRIES 200

#define SPARES 4 /* buffers kept for later writes */

_Static_assert(ATA_MAX == BLOCK_MAX && ATA_SECTOR == BLOCK_SECTOR,
               "the driver and its clients mean the same");

struct request {
    struct ata_request req_ata;
    uint32_t req_client;
    void *req_buffer; /* of a write, else NULL */
};

static struct ata_channel channel;
static int port;
static bool verbose;
static uint8_t reading[BUFFER];

/* ---- buffers ------------------------------------------------------------ */

static void *spare[SPARES];
static unsigned spares;

static void *take_buffer(void)
{
    return spares > 0 ? spare[--spares] : malloc(BUFFER);
}

static void give_buffer(void *buffer)
{
    if (buffer != NULL && spares < SPARES)
        spare[spares++] = buffer;
    else
        free(buffer);
}

/* ---- the core's environment --------------------------------------------- */

static uint16_t address(enum ata_register reg)
{
    return reg == ATA_CONTROL ? CONTROL : (uint16_t)(BASE + reg);
}

static uint8_t io_in(void *self, enum ata_register reg)
{
    (void)self;
    return inb(address(reg));
}

static void io_out(void *self, enum ata_register reg, uint8_t value)
{
    (void)self;
    outb(address(reg), value);
}

static void io_in_data(void *self, void *buf, uint32_t n)
{
    (void)self;
    insw(BASE + ATA_DATA, buf, n * ATA_SECTOR / 2);
}

static void io_out_data(void *self, const void *buf, uint32_t n)
{
    (void)self;
    outsw(BASE + ATA_DATA, buf, n * ATA_SECTOR / 2);
}

static uint32_t io_now(void *self)
{
    (void)self;
    return uptime_ms();
}

static void io_alarm(void *self, uint32_t ms)
{
    (void)self;
    if (alarm(port, ms, ALARM_BIT) < 0)
        err(1, "alarm");
}

static void io_tell(void *self, uint32_t drive, const char *what,
                    uint8_t status, uint8_t error)
{
    (void)self;
    if (verbose)
        warnx("disk %u: %s, status %02x, error %02x", (unsigned)drive, what,
              status, error);
}

static const char *const operations[] = {
    [ATA_OP_INFO] = "info",
    [ATA_OP_READ] = "read",
    [ATA_OP_WRITE] = "write",
    [ATA_OP_FLUSH] = "flush",
};

static void reply_to(uint32_t client, struct message *m, int error)
{
    m->msg_word[0] = (uint32_t)-error;
    /* A client that died, or cannot receive the reply, is not our error. */
    ipc_reply(client, m);
}

static void io_done(void *self, struct ata_request *ar, int error)
{
    struct request *r = container_of(ar, struct request, req_ata);
    struct ipc_buffer b = {.ipc_send = ar->req_data,
                           .ipc_send_size = ar->req_sectors * BLOCK_SECTOR};
    struct message m = {.msg_tag = 0};

    (void)self;
    if (error == EIO && verbose)
        warnx("disk %u: %s of sectors %u to %u failed", (unsigned)ar->req_drive,
              operations[ar->req_operation], (unsigned)ar->req_lba,
              (unsigned)(ar->req_lba + ar->req_sectors - 1));
    if (error == 0 && ar->req_operation == ATA_OP_READ) {
        m.msg_tag = IPC_DATA;
        m.msg_buffer = &b;
    }
    if (error == 0 && ar->req_operation == ATA_OP_INFO)
        m.msg_word[1] =
            channel.ch_drive[ar->req_drive].drive_identity.id_sectors;
    reply_to(r->req_client, &m, error);
    give_buffer(r->req_buffer);
    free(r);
}

static const struct ata_io io = {
    .io_in = io_in,
    .io_out = io_out,
    .io_in_data = io_in_data,
    .io_out_data = io_out_data,
    .io_now = io_now,
    .io_alarm = io_alarm,
    .io_done = io_done,
    .io_tell = io_tell,
};

/* ---- requests ----------------------------------------------------------- */

static const enum ata_operation meaning[] = {
    [BLOCK_INFO] = ATA_OP_INFO,
    [BLOCK_READ] = ATA_OP_READ,
    [BLOCK_WRITE] = ATA_OP_WRITE,
    [BLOCK_FLUSH] = ATA_OP_FLUSH,
};

/* Whether a call is valid, as far as it can be known without the drive. */
static int check(const struct message *m, uint32_t received)
{
    uint32_t label = IPC_LABEL(m->msg_tag);
    uint32_t sectors = m->msg_word[2];

    if (label < BLOCK_INFO || label > BLOCK_FLUSH)
        return ENOSYS;
    if (m->msg_word[0] >= ATA_DRIVES)
        return ENODEV;
    if (label != BLOCK_READ && label != BLOCK_WRITE)
        return 0;
    if (sectors == 0 || sectors > BLOCK_MAX)
        return EINVAL;
    if (label == BLOCK_WRITE && received != sectors * BLOCK_SECTOR)
        return EINVAL;
    return 0;
}

static void reply_counts(uint32_t client)
{
    struct ipc_buffer b = {.ipc_send = &channel.ch_counts,
                           .ipc_send_size = sizeof(channel.ch_counts)};
    struct message m = {.msg_tag = IPC_DATA, .msg_buffer = &b};

    reply_to(client, &m, 0);
}

/* Turns a call into a request. A write keeps its buffer, so the next call needs
 * another one; returns it. */
static void *accept(struct message *m, void *incoming)
{
    int error = check(m, m->msg_buffer->ipc_received);
    enum block_request label = IPC_LABEL(m->msg_tag);
    bool writes = error == 0 && label == BLOCK_WRITE;
    struct request *r = error == 0 ? malloc(sizeof(*r)) : NULL;
    void *next = writes ? take_buffer() : incoming;

    if (r == NULL || next == NULL) {
        struct message reply = {.msg_tag = 0};

        free(r);
        if (writes)
            give_buffer(next);
        reply_to(m->msg_client, &reply, error != 0 ? error : ENOMEM);
        return incoming;
    }
    *r = (struct request){
        .req_ata = {.req_operation = meaning[label],
                    .req_drive = m->msg_word[0],
                    .req_lba = m->msg_word[1],
                    .req_sectors = m->msg_word[2],
                    .req_data = writes ? incoming : reading},
        .req_client = m->msg_client,
        .req_buffer = writes ? incoming : NULL,
    };
    ata_submit(&channel, &r->req_ata);
    return next;
}

static void handle_notification(uint32_t bits)
{
    if ((bits & 1u << IRQ_BIT) != 0) {
        ata_interrupt(&channel);
        irq_ack(LINE);
    }
    if ((bits & 1u << ALARM_BIT) != 0)
        ata_alarm(&channel);
}

static void serve(void) __attribute__((noreturn));
static void serve(void)
{
    void *incoming = take_buffer();

    if (incoming == NULL)
        err(1, "no buffer");
    for (;;) {
        struct ipc_buffer b = {.ipc_receive = incoming,
                               .ipc_receive_max = BUFFER};
        struct message m = {.msg_buffer = &b};

        if (ipc_receive(port, &m) < 0)
            continue;
        if (b.ipc_received_handle >= 0)
            close(b.ipc_received_handle); /* not expected */
        if (m.msg_client == 0)
            handle_notification(m.msg_word[0]);
        else if (IPC_LABEL(m.msg_tag) == BLOCK_COUNTS)
            reply_counts(m.msg_client);
        else
            incoming = accept(&m, incoming);
    }
}

/* Waits for a name server, which may not have been started yet. Programs reach
 * the disk through a file server only. */
static void publish(const char *name)
{
    for (unsigned i = 0; name_register_for_servers(name, port) < 0; i++) {
        if (errno != ENOENT || i == PUBLISH_TRIES)
            err(1, "%s", name);
        sleep_ms(PUBLISH_MS);
    }
}

int main(int argc, char **argv)
{
    const char *name = "ata";
    uint32_t timeout = ATA_TIMEOUT_MS;
    int c;

    while ((c = getopt(argc, argv, "vt:n:")) != -1) {
        if (c == 'v')
            verbose = true;
        else if (c == 't')
            timeout = number_between(optarg, 1, 1000000);
        else if (c == 'n')
            name = optarg;
        else
            usage("[-v] [-t MS] [-n NAME]");
    }
    memset(reading, 0, sizeof(reading)); /* while there is memory */
    port = port_create();
    if (port < 0)
        err(1, "port");
    if (irq_bind(port, LINE, IRQ_BIT) < 0)
        err(1, "interrupt line %d", LINE);
    ata_open(&channel, &io, timeout);
    publish(name);
    serve();
}
