/*
 * The channel of sim.h.
 */
#include "drivers/servers/ata/tests/sim.h"

#include <assert.h>
#include <string.h>

#define EVENTS_MAX 2000000

static unsigned sim_random(struct sim *s)
{
    s->sim_seed ^= s->sim_seed << 13;
    s->sim_seed ^= s->sim_seed >> 17;
    s->sim_seed ^= s->sim_seed << 5;
    return s->sim_seed;
}

static unsigned selected(const struct sim *s)
{
    return (s->sim_regs[ATA_DEVICE] & ATA_DEVICE_1) != 0;
}

static struct sim_drive *current(struct sim *s)
{
    return &s->sim_drive[selected(s)];
}

/* The line follows INTRQ unless nIEN is set; the controller detects its
 * rise. */
static void move_line(struct sim *s)
{
    bool line = s->sim_intrq && !(s->sim_regs[ATA_CONTROL] & ATA_NIEN);

    if (line && !s->sim_line)
        s->sim_irq = true;
    s->sim_line = line;
}

static void raise_irq(struct sim *s)
{
    s->sim_intrq = true;
    move_line(s);
}

/* ---- the drive ---------------------------------------------------------- */

static void busy(struct sim *s, struct sim_drive *d)
{
    d->sd_work = SIM_BUSY;
    d->sd_status = ATA_BSY;
    d->sd_due = s->sim_time + s->sim_latency;
}

static void idle(struct sim_drive *d, uint8_t status, uint8_t error)
{
    d->sd_work = SIM_IDLE;
    d->sd_status = status;
    d->sd_error = error;
}

static void put_text(uint8_t *at, size_t n, const char *text, char last)
{
    for (size_t i = 0; i < n; i++)
        at[i ^ 1] = i < strlen(text) ? (uint8_t)text[i] : ' ';
    at[strlen(text) ^ 1] = (uint8_t)last;
}

static void put_word(uint8_t *block, unsigned word, unsigned value)
{
    block[2 * word] = (uint8_t)value;
    block[2 * word + 1] = (uint8_t)(value >> 8);
}

static void fill_identity(struct sim_drive *d)
{
    uint8_t sum = 0;
    uint8_t *b = d->sd_block;

    memset(b, 0, ATA_SECTOR);
    put_word(b, ATA_ID_GENERAL, d->sd_general);
    put_text(b + 2 * ATA_ID_SERIAL, 20, "S", d->sd_serial);
    put_text(b + 2 * ATA_ID_MODEL, 40, "SIMULATED DRIVE", '1');
    put_word(b, ATA_ID_MULTIPLE, 0x8000 | d->sd_multiple_max);
    put_word(b, ATA_ID_ABILITIES, 0x200);
    put_word(b, ATA_ID_SECTORS, d->sd_sectors & 0xffff);
    put_word(b, ATA_ID_SECTORS + 1, d->sd_sectors >> 16);
    put_word(b, ATA_ID_INTEGRITY, 0xa5);
    for (unsigned i = 0; i < 511; i++)
        sum = (uint8_t)(sum + b[i]);
    b[511] = (uint8_t)(0u - sum + d->sd_garbled);
    d->sd_garbled = false;
}

static uint32_t block_sectors(const struct sim_drive *d)
{
    bool multiple = d->sd_command == ATA_READ_MULTIPLE ||
                    d->sd_command == ATA_WRITE_MULTIPLE;

    return MIN(d->sd_left, multiple ? d->sd_multiple : 1);
}

/* Sets DRQ: a block may be transferred. */
static void offer(struct sim_drive *d, enum sim_work work)
{
    uint32_t n = block_sectors(d);

    d->sd_work = work;
    d->sd_status = ATA_DRDY | ATA_DRQ;
    d->sd_at = 0;
    d->sd_size = n * ATA_SECTOR;
    if (d->sd_command == ATA_IDENTIFY)
        fill_identity(d);
    else if (work == SIM_SENDS)
        memcpy(d->sd_block, d->sd_image + d->sd_lba * ATA_SECTOR, d->sd_size);
}

static bool takes_data(const struct sim_drive *d)
{
    return d->sd_command == ATA_WRITE_SECTORS ||
           d->sd_command == ATA_WRITE_MULTIPLE;
}

static bool sends_data(const struct sim_drive *d)
{
    return d->sd_command == ATA_READ_SECTORS ||
           d->sd_command == ATA_READ_MULTIPLE || d->sd_command == ATA_IDENTIFY;
}

/* Whether the next block to be read contains the bad sector. */
static bool bad_block(const struct sim *s, const struct sim_drive *d)
{
    return s->sim_bad_lba != 0 && d->sd_command != ATA_IDENTIFY &&
           sends_data(d) && d->sd_lba <= s->sim_bad_lba &&
           s->sim_bad_lba < d->sd_lba + block_sectors(d);
}

/* BSY ends without a fault. */
static void proceed(struct sim *s, struct sim_drive *d)
{
    bool first = takes_data(d) && d->sd_size == 0;

    if (bad_block(s, d))
        idle(d, ATA_DRDY | ATA_ERR, ATA_UNC);
    else if (d->sd_left > 0 && sends_data(d))
        offer(d, SIM_SENDS);
    else if (d->sd_left > 0 && takes_data(d))
        offer(d, SIM_TAKES);
    else
        idle(d, ATA_DRDY, 0);
    if (!first)
        raise_irq(s);
}

static void proceed_with_fault(struct sim *s, struct sim_drive *d,
                               enum sim_fault fault)
{
    switch (fault) {
    case SIM_ERR:
        idle(d, ATA_DRDY | ATA_ERR, ATA_UNC);
        break;
    case SIM_FAULT:
        idle(d, ATA_DRDY | ATA_DF, 0);
        break;
    case SIM_NO_DRQ:
        idle(d, ATA_DRDY, 0);
        break;
    case SIM_EXTRA_DRQ:
        d->sd_left++;
        proceed(s, d);
        d->sd_status |= ATA_DRQ;
        return;
    case SIM_LOST:
        proceed(s, d);
        s->sim_irq = false;
        return;
    case SIM_STUCK_DRQ:
        proceed(s, d);
        d->sd_stuck = true;
        return;
    case SIM_EARLY:
        d->sd_due = s->sim_time + s->sim_latency;
        break;
    case SIM_NOT_READY:
        proceed(s, d);
        d->sd_status &= (uint8_t)~ATA_DRDY;
        return;
    case SIM_REMOVED:
    case SIM_RESET_HANGS:
        s->sim_dead = true;
        d->sd_due = SIM_NEVER;
        return;
    default: /* SIM_HANGS */
        d->sd_due = SIM_NEVER;
        return;
    }
    raise_irq(s);
}

static void busy_ends(struct sim *s, struct sim_drive *d)
{
    uint32_t step = s->sim_step++;

    if (s->sim_fault != SIM_GOOD && step >= s->sim_fault_first &&
        step - s->sim_fault_first < s->sim_fault_steps)
        proceed_with_fault(s, d, s->sim_fault);
    else
        proceed(s, d);
}

static void abort_command(struct sim *s, struct sim_drive *d)
{
    idle(d, ATA_DRDY | ATA_ERR, ATA_ABRT);
    raise_irq(s);
}

static void set_multiple(struct sim *s, struct sim_drive *d, unsigned count)
{
    if (count == 0 || count > d->sd_multiple_max || d->sd_no_multiple) {
        abort_command(s, d);
        return;
    }
    d->sd_multiple = count;
    busy(s, d);
}

static void begin_command(struct sim *s, uint8_t code)
{
    struct sim_drive *d = current(s);
    uint32_t count = s->sim_regs[ATA_COUNT];

    if (!d->sd_present)
        return;
    if ((d->sd_status & (ATA_BSY | ATA_DRQ)) != 0) {
        s->sim_violations++;
        return;
    }
    d->sd_command = code;
    d->sd_size = 0;
    d->sd_lba = (uint32_t)s->sim_regs[ATA_LBA_LOW] |
                (uint32_t)s->sim_regs[ATA_LBA_MID] << 8 |
                (uint32_t)s->sim_regs[ATA_LBA_HIGH] << 16 |
                (uint32_t)(s->sim_regs[ATA_DEVICE] & 0xf) << 24;
    d->sd_left = code == ATA_IDENTIFY ? 1 : count == 0 ? 256 : count;
    if (code == ATA_SET_MULTIPLE) {
        d->sd_left = 0;
        set_multiple(s, d, count);
    } else if (code == ATA_FLUSH_CACHE) {
        d->sd_left = 0;
        d->sd_flushed++;
        busy(s, d);
    } else if (code == ATA_IDENTIFY) {
        busy(s, d);
    } else if ((!takes_data(d) && !sends_data(d)) || block_sectors(d) == 0 ||
               (s->sim_regs[ATA_DEVICE] & ATA_LBA) == 0 ||
               d->sd_lba + d->sd_left > d->sd_sectors) {
        abort_command(s, d);
    } else {
        busy(s, d);
    }
}

/* The host has transferred the whole block. */
static void block_ends(struct sim *s, struct sim_drive *d)
{
    uint32_t n = d->sd_size / ATA_SECTOR;

    if (d->sd_work == SIM_TAKES)
        memcpy(d->sd_image + d->sd_lba * ATA_SECTOR, d->sd_block, d->sd_size);
    d->sd_lba += n;
    d->sd_left -= MIN(n, d->sd_left);
    if (d->sd_work == SIM_SENDS && d->sd_left == 0)
        idle(d, ATA_DRDY | (d->sd_stuck ? ATA_DRQ : 0), 0);
    else
        busy(s, d);
    d->sd_stuck = false;
}

/* ---- registers ---------------------------------------------------------- */

static uint8_t status(struct sim *s)
{
    struct sim_drive *d = current(s);

    if (s->sim_reset)
        return ATA_BSY;
    if (s->sim_dead)
        return s->sim_fault == SIM_REMOVED ? ATA_FLOATING : ATA_BSY;
    if (d->sd_present)
        return d->sd_status;
    return selected(s) == 1 && s->sim_drive[0].sd_present ? ATA_NOBODY
                                                          : ATA_FLOATING;
}

static uint8_t reg_in(void *self, enum ata_register reg)
{
    struct sim *s = self;

    if (reg == ATA_STATUS) {
        s->sim_intrq = false;
        move_line(s);
    }
    if (s->sim_noise > 0 && sim_random(s) % 100 < s->sim_noise)
        return (uint8_t)sim_random(s);
    if (reg == ATA_STATUS || reg == ATA_CONTROL)
        return status(s);
    if (reg == ATA_ERROR)
        return current(s)->sd_error;
    return s->sim_regs[reg];
}

static void reset_ends(struct sim *s)
{
    for (unsigned i = 0; i < ATA_DRIVES; i++) {
        struct sim_drive *d = &s->sim_drive[i];

        d->sd_multiple = 0;
        d->sd_command = 0;
        d->sd_left = 0;
        idle(d, ATA_DRDY, 1);
    }
    s->sim_regs[ATA_DEVICE] = 0;
    raise_irq(s);
}

static void reg_out(void *self, enum ata_register reg, uint8_t value)
{
    struct sim *s = self;
    bool was = s->sim_reset;

    if (reg == ATA_CONTROL) {
        s->sim_regs[reg] = value;
        s->sim_reset = (value & ATA_SRST) != 0;
        if (was && !s->sim_reset)
            reset_ends(s);
        move_line(s);
        return;
    }
    if (reg == ATA_COMMAND) {
        begin_command(s, value);
        return;
    }
    if (!s->sim_dead && current(s)->sd_present &&
        (current(s)->sd_status & (ATA_BSY | ATA_DRQ)) != 0)
        s->sim_violations++;
    s->sim_regs[reg] = value;
}

static void data(struct sim *s, enum sim_work work, uint8_t *to,
                 const uint8_t *from, uint32_t sectors)
{
    struct sim_drive *d = current(s);

    for (; sectors > 0; sectors--) {
        if (d->sd_work != work || d->sd_size - d->sd_at < ATA_SECTOR) {
            s->sim_violations++;
            if (to != NULL)
                memset(to, 0xff, ATA_SECTOR * sectors);
            return;
        }
        if (to != NULL)
            memcpy(to, d->sd_block + d->sd_at, ATA_SECTOR);
        else
            memcpy(d->sd_block + d->sd_at, from, ATA_SECTOR);
        to = to != NULL ? to + ATA_SECTOR : NULL;
        from = from != NULL ? from + ATA_SECTOR : NULL;
        d->sd_at += ATA_SECTOR;
        if (d->sd_at == d->sd_size)
            block_ends(s, d);
    }
}

static void data_in(void *self, void *buf, uint32_t n)
{
    data(self, SIM_SENDS, buf, NULL, n);
}

static void data_out(void *self, const void *buf, uint32_t n)
{
    data(self, SIM_TAKES, NULL, buf, n);
}

/* ---- time --------------------------------------------------------------- */

static uint32_t io_now(void *self)
{
    return ((struct sim *)self)->sim_time & 0x7fffffff;
}

static void io_alarm(void *self, uint32_t ms)
{
    struct sim *s = self;

    assert(ms > 0); /* 0 would cancel the alarm */
    s->sim_alarm = s->sim_time + ms;
}

static void io_done(void *self, struct ata_request *r, int error)
{
    struct sim *s = self;

    (void)r;
    s->sim_replies++;
    s->sim_last = error;
}

/* Whether `due` is before *first; the clock wraps around. */
static bool sooner(const struct sim *s, uint32_t due, uint32_t first)
{
    return due != SIM_NEVER &&
           (first == SIM_NEVER ||
            (int32_t)(due - s->sim_time) < (int32_t)(first - s->sim_time));
}

/* Executes the next event; false: there is none. */
bool sim_step_once(struct sim *s)
{
    uint32_t first = s->sim_alarm;
    struct sim_drive *who = NULL;

    if (s->sim_irq) {
        s->sim_irq = false;
        ata_interrupt(&s->sim_channel);
        return true;
    }
    for (unsigned i = 0; i < ATA_DRIVES; i++) {
        struct sim_drive *d = &s->sim_drive[i];

        if (d->sd_work == SIM_BUSY && !s->sim_dead &&
            sooner(s, d->sd_due, first)) {
            first = d->sd_due;
            who = d;
        }
    }
    if (first == SIM_NEVER)
        return false;
    s->sim_time = first;
    if (who != NULL) {
        busy_ends(s, who);
        return true;
    }
    s->sim_alarm = SIM_NEVER;
    ata_alarm(&s->sim_channel);
    return true;
}

bool sim_run(struct sim *s)
{
    for (unsigned i = 0; i < EVENTS_MAX; i++)
        if (!sim_step_once(s))
            return true;
    return false;
}

/* ---- for tests ---------------------------------------------------------- */

void sim_init(struct sim *s)
{
    memset(s, 0, sizeof(*s));
    s->sim_io = (struct ata_io){
        .io_self = s,
        .io_in = reg_in,
        .io_out = reg_out,
        .io_in_data = data_in,
        .io_out_data = data_out,
        .io_now = io_now,
        .io_alarm = io_alarm,
        .io_done = io_done,
    };
    s->sim_alarm = SIM_NEVER;
    s->sim_latency = 1;
    s->sim_seed = 1;
    s->sim_time = 0x7ffffff0; /* the clock wraps soon */
    for (unsigned i = 0; i < ATA_DRIVES; i++) {
        struct sim_drive *d = &s->sim_drive[i];

        d->sd_present = i == 0;
        d->sd_sectors = SIM_SECTORS;
        d->sd_multiple_max = 16;
        d->sd_serial = (char)('A' + i);
        d->sd_general = 0x40;
        d->sd_status = ATA_DRDY;
        for (uint32_t k = 0; k < SIM_SECTORS; k++)
            memset(d->sd_image + k * ATA_SECTOR, (int)(k * 7 + i + 1),
                   ATA_SECTOR);
    }
}

void sim_open(struct sim *s, uint32_t timeout_ms)
{
    ata_open(&s->sim_channel, &s->sim_io, timeout_ms);
}

int sim_request(struct sim *s, enum ata_operation op, uint32_t drive,
                uint32_t lba, uint32_t sectors, void *data_)
{
    struct ata_request r = {.req_operation = op,
                            .req_drive = drive,
                            .req_lba = lba,
                            .req_sectors = sectors,
                            .req_data = data_};
    uint32_t replies = s->sim_replies;

    ata_submit(&s->sim_channel, &r);
    if (!sim_run(s) || s->sim_replies != replies + 1)
        return -1;
    return s->sim_last;
}

void sim_break(struct sim *s, enum sim_fault fault, uint32_t later,
               uint32_t steps)
{
    s->sim_fault = fault;
    s->sim_fault_first = s->sim_step + later;
    s->sim_fault_steps = steps;
}
