/*
 * uart: the driver of the second serial line (National Semiconductor PC16550D
 * data sheet, section 8), a program in ring 3.
 *
 *     UART_WRITE ──> writes: a ─ b ─ c ── pump ──> FIFO ──> wire
 *                    └ reply when its last byte is in the FIFO
 *     UART_READ ───> reads:  d ─ e <─┐
 *                    └ reply         ├── ring <── drain ── FIFO <── wire
 *
 * All transfers begin with an interrupt. While there are bytes to send,
 * "transmitter empty" is enabled, which interrupts at once if it is empty; each
 * interrupt fills the FIFO once. While the ring is full, "received" is disabled
 * and RTS dropped, until a client reads.
 *
 * The controller detects only edges: all causes must be inactive for a moment,
 * or no further interrupt would come. So each interrupt ends by disabling all
 * of them briefly; a new cause makes an edge when they are enabled again.
 */
#include "user/lib/err.h"
#include "user/lib/io.h"
#include "user/lib/ipc.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/lib/uart.h"

#define IRQ 3

enum {
    REG_DATA = 0x2f8, /* DLAB: low byte of the divisor */
    REG_IER = 0x2f9,  /* DLAB: its high byte */
    REG_FCR = 0x2fa,  /* write */
    REG_IIR = 0x2fa,  /* read */
    REG_LCR = 0x2fb,
    REG_MCR = 0x2fc,
    REG_LSR = 0x2fd,
    REG_SCRATCH = 0x2ff,

    IER_RECEIVE = 1,
    IER_TRANSMIT = 2,
    IIR_NONE = 1,    /* no interrupt is pending */
    IIR_FIFO = 0xc0, /* the FIFOs exist and are enabled */
    FCR_ENABLE_CLEAR_TRIGGER8 = 0x87,
    LCR_8N1 = 3,
    LCR_DLAB = 0x80,
    MCR_DTR = 1,
    MCR_RTS = 2,
    MCR_OUT2 = 8, /* lets the interrupt out on a PC */
    MCR_LOOP = 16,
    LSR_RECEIVED = 1,
    LSR_OVERRUN = 2, /* this and the next three: UART_OVERRUN … << 1 */
    LSR_DAMAGED = 0x1c,
    LSR_ERRORS = LSR_OVERRUN | LSR_DAMAGED,
    LSR_FIFO_FREE = 0x20,
};

/* A waiting client. */
struct job {
    struct job *job_next;
    uint32_t job_client;
    uint32_t job_size; /* bytes to send, or most to read */
    uint32_t job_done; /* bytes sent */
    uint8_t job_data[];
};

struct queue {
    struct job *queue_first;
    struct job **queue_end;
};

static struct queue writes = {.queue_end = &writes.queue_first};
static struct queue reads = {.queue_end = &reads.queue_first};

static uint8_t ring[UART_RING];
static uint32_t head; /* bytes ever inserted */
static uint32_t tail; /* bytes ever removed */

static uint32_t fifo_size;
static uint32_t errors; /* since the last reply to a reader */
static struct uart_status count = {.uart_baud = UART_BAUD};

/* ---- waiting clients ---------------------------------------------------- */

/* Adds a client, with a copy of the bytes to send, if any. */
static int enqueue(struct queue *q, uint32_t client, const void *data,
                   uint32_t size)
{
    uint32_t room = data != NULL ? size : 0;
    struct job *job = malloc(sizeof(*job) + room);

    if (job == NULL)
        return ENOMEM;
    *job = (struct job){.job_client = client, .job_size = size};
    if (room > 0)
        memcpy(job->job_data, data, room);
    *q->queue_end = job;
    q->queue_end = &job->job_next;
    return 0;
}

/* Replies to the first in a queue with *m and removes it; false: its client has
 * died or cannot receive the reply. */
static bool reply_to(struct queue *q, struct message *m)
{
    struct job *job = q->queue_first;
    bool taken = ipc_reply(job->job_client, m) == 0;

    q->queue_first = job->job_next;
    if (q->queue_first == NULL)
        q->queue_end = &q->queue_first;
    free(job);
    return taken;
}

/* ---- the device --------------------------------------------------------- */

/* Reads the line status; the device reports each error once. */
static uint8_t line_status(void)
{
    uint8_t lsr = inb(REG_LSR);

    errors |= (lsr & LSR_ERRORS) >> 1;
    count.uart_overruns += (lsr & LSR_OVERRUN) != 0;
    count.uart_errors += (lsr & LSR_DAMAGED) != 0;
    return lsr;
}

/* Enables the interrupts needed now. */
static void enable(void)
{
    bool room = head - tail < UART_RING;
    bool loops = count.uart_flags & UART_LOOPBACK;
    bool sends = writes.queue_first != NULL;

    outb(REG_MCR,
         MCR_DTR | MCR_OUT2 | (room ? MCR_RTS : 0) | (loops ? MCR_LOOP : 0));
    outb(REG_IER, (room ? IER_RECEIVE : 0) | (sends ? IER_TRANSMIT : 0));
}

/* Moves bytes from the FIFO into the ring, while there is room. */
static void drain(void)
{
    while (head - tail < UART_RING && (line_status() & LSR_RECEIVED)) {
        ring[head++ % UART_RING] = inb(REG_DATA);
        count.uart_received++;
    }
}

/* Fills the FIFO once with bytes to send. */
static void pump(void)
{
    uint32_t room = line_status() & LSR_FIFO_FREE ? fifo_size : 0;
    struct message done = {0};

    while (writes.queue_first != NULL) {
        struct job *job = writes.queue_first;

        for (; room > 0 && job->job_done < job->job_size; room--) {
            outb(REG_DATA, job->job_data[job->job_done++]);
            count.uart_sent++;
        }
        if (job->job_done < job->job_size)
            return;
        reply_to(&writes, &done);
    }
}

/* Replies to readers with bytes of the ring. */
static void feed_readers(void)
{
    static uint8_t bytes[UART_MAX];

    while (reads.queue_first != NULL && head != tail) {
        uint32_t n = MIN(head - tail, reads.queue_first->job_size);
        struct ipc_buffer b = {.ipc_send = bytes, .ipc_send_size = n};
        struct message m = {
            .msg_tag = IPC_DATA,
            .msg_word = {0, errors},
            .msg_buffer = &b,
        };

        for (uint32_t i = 0; i < n; i++)
            bytes[i] = ring[(tail + i) % UART_RING];
        if (!reply_to(&reads, &m))
            continue; /* the next client gets them */
        tail += n;
        errors = 0;
    }
}

/* A notification. Reading the cause clears "transmitter empty". */
static void interrupt(void)
{
    count.uart_interrupts++;
    count.uart_spurious += inb(REG_IIR) & IIR_NONE;
    outb(REG_IER, 0);
    drain();
    pump();
    feed_readers();
    irq_ack(IRQ);
    enable();
}

static void set_up(uint32_t baud, uint32_t flags)
{
    uint32_t divisor = UART_BAUD / baud;

    outb(REG_LCR, LCR_8N1);
    outb(REG_IER, 0);
    outb(REG_LCR, LCR_DLAB);
    outb(REG_DATA, (uint8_t)divisor);
    outb(REG_IER, (uint8_t)(divisor >> 8));
    outb(REG_LCR, LCR_8N1);
    count.uart_baud = baud;
    count.uart_flags = flags;
    enable();
}

/* A bus without a port reads as ones; the scratch register keeps a value. */
static bool probe(void)
{
    outb(REG_SCRATCH, 0x5a);
    if (inb(REG_SCRATCH) != 0x5a)
        return false;
    outb(REG_SCRATCH, 0xa5);
    return inb(REG_SCRATCH) == 0xa5;
}

/* ---- requests ----------------------------------------------------------- */

static int setup_request(const struct message *m)
{
    uint32_t baud = m->msg_word[0];

    if (baud == 0 || baud > UART_BAUD || UART_BAUD % baud != 0 ||
        UART_BAUD / baud > 0xffff || (m->msg_word[1] & ~UART_LOOPBACK) != 0)
        return EINVAL;
    set_up(baud, m->msg_word[1]);
    return 0;
}

/* Queues a write; the interrupt that follows at once sends it. */
static int write_request(const struct message *m)
{
    const struct ipc_buffer *b = m->msg_buffer;
    int error;

    if (b->ipc_received == 0)
        return EINVAL;
    error = enqueue(&writes, m->msg_client, b->ipc_receive, b->ipc_received);
    enable();
    return error;
}

static int read_request(const struct message *m)
{
    uint32_t most = MIN(m->msg_word[0], UART_MAX);
    int error = most > 0 ? enqueue(&reads, m->msg_client, NULL, most) : EINVAL;

    feed_readers();
    enable(); /* there may be room again */
    return error;
}

static void set_status_reply(struct message *m)
{
    count.uart_waiting = head - tail;
    m->msg_buffer->ipc_send = &count;
    m->msg_buffer->ipc_send_size = sizeof(count);
    m->msg_tag = IPC_DATA;
}

/* Executes a request; true: *m is now its reply. */
static bool serve(struct message *m)
{
    uint32_t label = IPC_LABEL(m->msg_tag);
    int error = EINVAL;
    bool queues = label == UART_WRITE || label == UART_READ;

    if (label == UART_WRITE)
        error = write_request(m);
    else if (label == UART_READ)
        error = read_request(m);
    else if (label == UART_SETUP)
        error = setup_request(m);
    else if (label == UART_STATUS)
        error = 0;
    m->msg_tag = 0;
    m->msg_word[0] = (uint32_t)-error;
    if (label == UART_STATUS)
        set_status_reply(m);
    return !queues || error != 0;
}

static void serve_all(int port) __attribute__((noreturn));
static void serve_all(int port)
{
    static uint8_t data[UART_MAX];
    struct ipc_buffer b = {
        .ipc_receive = data,
        .ipc_receive_max = sizeof(data),
    };
    struct message m = {.msg_buffer = &b};
    bool replied = false;

    for (;;) {
        int result =
            replied ? ipc_reply_receive(port, &m) : ipc_receive(port, &m);

        replied = false;
        if (result < 0)
            continue; /* the client could not receive the reply */
        if (b.ipc_received_handle >= 0)
            close(b.ipc_received_handle);
        if (m.msg_client == 0)
            interrupt();
        else
            replied = serve(&m);
    }
}

int main(void)
{
    int port = port_create();

    if (port < 0 || irq_bind(port, IRQ, 0) < 0)
        err(1, "interrupt %d (`run -s uart` grants it)", IRQ);
    if (!probe())
        errx(EXIT_ABSENT, "there is no second serial line");
    outb(REG_FCR, FCR_ENABLE_CLEAR_TRIGGER8);
    fifo_size = (inb(REG_IIR) & IIR_FIFO) == IIR_FIFO ? 16 : 1;
    set_up(UART_BAUD, 0);
    if (name_register("uart", port) < 0)
        err(1, "the name uart");
    serve_all(port);
}
