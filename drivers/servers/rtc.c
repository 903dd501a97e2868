/*
 * rtc: the driver of a PC's clock (Motorola MC146818 data sheet). It is the
 * smallest driver; docs/driver.md explains it line by line.
 *
 *     RTC_TIME ──> read_clock ─────────────────────────────────> reply
 *     RTC_WAIT ──> waiting … interrupt ──> tick ──> read_clock ──> reply
 */
#include "user/lib/err.h"
#include "user/lib/io.h"
#include "user/lib/ipc.h"
#include "user/lib/rtc.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

enum {
    IRQ = 8,
    PORT_INDEX = 0x70, /* selects a register */
    PORT_DATA = 0x71,  /* its contents */

    REG_A = 10,
    A_UPDATING = 0x80, /* an update runs, or begins within 244 us */
    REG_B = 11,
    B_24_HOURS = 0x02,
    B_BINARY = 0x04,
    B_INTERRUPT = 0x10, /* after each update */
    REG_C = 12,         /* cause of the interrupt; reading clears it */
    C_UPDATED = 0x10,
    REG_D = 13,
    D_NOTHING = 0xff, /* reads on a bus without a clock */
    HOUR_PM = 0x80,
};

/* ---- the device --------------------------------------------------------- */

static uint8_t get(uint8_t reg)
{
    outb(PORT_INDEX, reg);
    return inb(PORT_DATA);
}

static void put(uint8_t reg, uint8_t value)
{
    outb(PORT_INDEX, reg);
    outb(PORT_DATA, value);
}

struct registers {
    uint8_t second, minute, hour, day, month, year, format;
};

static struct registers read_once(void)
{
    while (get(REG_A) & A_UPDATING)
        yield();
    return (struct registers){get(0), get(2), get(4),    get(7),
                              get(8), get(9), get(REG_B)};
}

static struct registers read_stable(void)
{
    struct registers r, again = read_once();

    do {
        r = again;
        again = read_once();
    } while (memcmp(&r, &again, sizeof(r)) != 0);
    return r;
}

static unsigned number(const struct registers *r, uint8_t value)
{
    return r->format & B_BINARY ? value : (value >> 4) * 10u + (value & 15);
}

static unsigned hour(const struct registers *r)
{
    unsigned h = number(r, r->hour & (uint8_t)~HOUR_PM);

    if (r->format & B_24_HOURS)
        return h;
    return h % 12 + (r->hour & HOUR_PM ? 12 : 0);
}

/* ---- requests ----------------------------------------------------------- */

static void read_clock(struct message *m)
{
    struct registers r = read_stable();
    unsigned year = number(&r, r.year);
    unsigned month = number(&r, r.month);
    unsigned day = number(&r, r.day);
    unsigned minute = number(&r, r.minute);
    unsigned second = number(&r, r.second);
    bool sense = year < 100 && month - 1 < 12 && day - 1 < 31 &&
                 hour(&r) < 24 && minute < 60 && second < 60;

    m->msg_tag = 0;
    m->msg_word[0] = sense ? 0 : (uint32_t)-EIO;
    m->msg_word[1] = RTC_DATE(year + (year < 80 ? 2000 : 1900), month, day);
    m->msg_word[2] = RTC_DAYTIME(hour(&r), minute, second);
}

static uint32_t *waiting; /* clients that wait in RTC_WAIT */
static size_t waiters;

static int wait_for_tick(uint32_t client)
{
    uint32_t *more = realloc(waiting, (waiters + 1) * sizeof(*waiting));

    if (more == NULL)
        return ENOMEM;
    waiting = more;
    if (waiters == 0) {
        get(REG_C);
        put(REG_B, get(REG_B) | B_INTERRUPT);
    }
    waiting[waiters++] = client;
    return 0;
}

static bool serve(struct message *m)
{
    int error = EINVAL;

    if (m->msg_tag == RTC_TIME) {
        read_clock(m);
        return true;
    }
    if (m->msg_tag == RTC_WAIT)
        error = wait_for_tick(m->msg_client);
    m->msg_tag = 0;
    m->msg_word[0] = (uint32_t)-error;
    return error != 0;
}

/* ---- interrupts --------------------------------------------------------- */

static void tick(void)
{
    struct message now = {0};

    if (get(REG_C) & C_UPDATED) {
        put(REG_B, get(REG_B) & (uint8_t)~B_INTERRUPT);
        read_clock(&now);
        for (size_t i = 0; i < waiters; i++)
            ipc_reply(waiting[i], &now);
        waiters = 0;
    }
    irq_ack(IRQ);
}

int main(void)
{
    int port = port_create();
    struct message m = {0};
    bool replied = false;

    if (port < 0 || irq_bind(port, IRQ, 0) < 0)
        err(1, "interrupt %d (`run -s rtc` grants it)", IRQ);
    if (get(REG_D) == D_NOTHING)
        errx(EXIT_ABSENT, "there is no clock");
    put(REG_B, get(REG_B) & (B_24_HOURS | B_BINARY));
    if (name_register("rtc", port) < 0)
        err(1, "the name rtc");
    for (;;) {
        int result =
            replied ? ipc_reply_receive(port, &m) : ipc_receive(port, &m);

        replied = false;
        if (result < 0)
            continue;
        if (m.msg_client == 0)
            tick();
        else
            replied = serve(&m);
    }
}
