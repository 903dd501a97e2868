/*
 * The 16550 UART (National Semiconductor PC16550D data sheet, section 8).
 *
 * When polling, a writer waits for the transmitter before each byte. With
 * interrupts, a writer only fills the ring; "transmitter empty" interrupts move
 * bytes to the 16-byte FIFO and are enabled only while the ring is not empty.
 *
 *     serial_write -> ring -> pump -> FIFO -> wire
 *     wire -> FIFO -> serial_receive -> sink
 *
 * Input is not lost: if the sink is full, the receive interrupt is disabled and
 * RTS dropped until serial_receive finds room.
 */
#include "drivers/serial.h"
#include "drivers/console.h"
#include "drivers/pic.h"
#include "kernel/x86/io.h"
#include "kernel/x86/trap.h"

#define COM1       0x3F8
#define SERIAL_IRQ 4
#define FIFO_SIZE  16
#define TX_SIZE    4096u /* a power of two */

#define SILENT_POLLS 2000

enum {
    REG_DATA = COM1,    /* DLAB: low byte of the divisor */
    REG_IER = COM1 + 1, /* DLAB: its high byte */
    REG_FCR = COM1 + 2, /* write */
    REG_IIR = COM1 + 2, /* read */
    REG_LCR = COM1 + 3,
    REG_MCR = COM1 + 4,
    REG_LSR = COM1 + 5,
    REG_SCRATCH = COM1 + 7,

    IER_RECEIVE = 1,
    IER_TRANSMIT = 2,
    IIR_NONE = 1, /* no interrupt is pending */
    FCR_ENABLE_CLEAR_TRIGGER8 = 0x87,
    LCR_8N1 = 3,
    LCR_DLAB = 0x80,
    MCR_DTR = 1,
    MCR_RTS = 2,
    MCR_OUT2 = 8, /* lets the interrupt out on a PC */
    LSR_RECEIVED = 1,
    LSR_FIFO_FREE = 0x20,
    LSR_ALL_SENT = 0x40,
    DIVISOR_115200 = 1,
};

static struct {
    bool present;
    bool interrupts;
    uint8_t ier;
    bool (*ready)(void);
    void (*sink)(uint8_t byte);
    uint32_t received; /* bytes ever passed to the sink */
    uint32_t head;     /* bytes ever inserted */
    uint32_t tail;     /* bytes ever removed */
    uint8_t ring[TX_SIZE];
} serial;

static void set_ier(uint8_t ier)
{
    if (ier == serial.ier)
        return;
    serial.ier = ier;
    outb(REG_IER, ier);
}

/* Moves up to one FIFO of bytes from the ring, if the FIFO is empty. */
static void pump(void)
{
    if (!(inb(REG_LSR) & LSR_FIFO_FREE))
        return;
    for (int i = 0; i < FIFO_SIZE && serial.tail != serial.head; i++)
        outb(REG_DATA, serial.ring[serial.tail++ % TX_SIZE]);
}

static void pump_all(void)
{
    while (serial.tail != serial.head)
        pump();
}

static void serial_put(uint8_t byte)
{
    while (serial.head - serial.tail == TX_SIZE)
        pump();
    serial.ring[serial.head++ % TX_SIZE] = byte;
}

void serial_write(const char *text, size_t n)
{
    spin_assert_held(&console_lock);
    if (!serial.present)
        return;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\n')
            serial_put('\r');
        serial_put((uint8_t)text[i]);
    }
    if (!serial.interrupts)
        pump_all();
    else if (n > 0)
        set_ier(serial.ier | IER_TRANSMIT);
}

struct serial_count serial_count(void)
{
    spin_assert_held(&console_lock);
    return (struct serial_count){serial.received, serial.head};
}

static void receive_byte(void)
{
    serial.received++;
    serial.sink(inb(REG_DATA));
}

void serial_receive(void)
{
    spin_assert_held(&console_lock);
    if (!serial.present)
        return;
    while (serial.ready() && (inb(REG_LSR) & LSR_RECEIVED))
        receive_byte();
    if (!serial.interrupts)
        return;
    if (serial.ready() == ((serial.ier & IER_RECEIVE) != 0))
        return;
    set_ier(serial.ier ^ IER_RECEIVE);
    outb(REG_MCR,
         MCR_DTR | MCR_OUT2 | (serial.ier & IER_RECEIVE ? MCR_RTS : 0));
}

/* The controller detects only edges: all causes must be inactive for a moment,
 * or no further interrupt would come. */
static void serial_irq(struct trapframe *tf UNUSED)
{
    spin_lock(&console_lock);
    do {
        serial_receive();
        pump();
        if (serial.tail == serial.head)
            set_ier(serial.ier & (uint8_t)~IER_TRANSMIT);
    } while (!(inb(REG_IIR) & IIR_NONE)); /* reading clears "empty" */
    spin_unlock(&console_lock);
}

void serial_drain(void)
{
    if (!serial.present)
        return;
    pump_all();
    while (!(inb(REG_LSR) & LSR_ALL_SENT))
        ;
}

void serial_enable_interrupts(void)
{
    if (!serial.present)
        return;
    irq_set_handler(SERIAL_IRQ, serial_irq);
    serial.interrupts = true;
    set_ier(IER_RECEIVE);
    pic_unmask(SERIAL_IRQ);
}

void serial_disable_interrupts(void)
{
    if (!serial.present)
        return;
    serial.interrupts = false;
    set_ier(serial.ier & IER_RECEIVE);
    outb(REG_MCR, MCR_DTR | MCR_RTS | MCR_OUT2);
    pump_all();
}

void serial_set_sink(bool (*ready)(void), void (*sink)(uint8_t byte))
{
    serial.ready = ready;
    serial.sink = sink;
}

/* A bus without a port reads as ones; the scratch register keeps a value. */
static bool probe(void)
{
    outb(REG_SCRATCH, 0x5A);
    if (inb(REG_SCRATCH) != 0x5A)
        return false;
    outb(REG_SCRATCH, 0xA5);
    return inb(REG_SCRATCH) == 0xA5;
}

/* Enabling the FIFOs drops received bytes. All are read first. Reading one lets
 * the next one come, but not at once: the line must first be silent for about a
 * millisecond. A byte that comes just after that is lost. */
static void enable_fifos(void)
{
    for (unsigned silent = 0; serial.ready() && silent < SILENT_POLLS; silent++)
        if (inb(REG_LSR) & LSR_RECEIVED) {
            receive_byte();
            silent = 0;
        }
    outb(REG_FCR, FCR_ENABLE_CLEAR_TRIGGER8);
}

bool serial_init(void)
{
    serial.present = probe();
    if (!serial.present)
        return false;
    outb(REG_IER, 0);
    outb(REG_LCR, LCR_DLAB);
    outb(REG_DATA, DIVISOR_115200);
    outb(REG_IER, 0); /* high byte of the divisor */
    outb(REG_LCR, LCR_8N1);
    enable_fifos();
    outb(REG_MCR, MCR_DTR | MCR_RTS | MCR_OUT2);
    return true;
}
