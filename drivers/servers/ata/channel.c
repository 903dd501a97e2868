/*
 * Commands, blocks of data, time-outs, errors, resets.
 *
 *     IDLE ──> SELECTING ──┬─> FIRST ──┬─> WAITING ──> IDLE
 *      ^          │        └───────────┘      │
 *      │          │ anything that must not be │ (a block more: stays)
 *      │          v                           v
 *      └──── RECOVERING <── RESETTING <───────┘
 *
 * A function that ends a state leaves the channel IDLE or in the next state;
 * then run() continues, so functions do not recurse. SELECTING and FIRST poll
 * the status several times, which is enough for a working drive, and then once
 * per millisecond.
 *
 * The protocols are those of ATA/ATAPI-6, clause 9: "Software reset", "Non-data
 * command", "PIO data-in command" and "PIO data-out command".
 */
#include "drivers/servers/ata/channel.h"
#include "kernel/abi/errno.h"

#define SPINS      100u /* polls of the status in a row */
#define POLL_MS    1u
#define HOLD_MS    1u   /* SRST: 5 us at least */
#define SETTLE_MS  2u   /* from then to the first poll of the status */
#define FLOAT_MS   200u /* for this time all ones may mean BSY */
#define CLOCK_MASK 0x7fffffffu

enum failure {
    FAIL_DEVICE,   /* the drive reported it: ERR or DF */
    FAIL_TIMEOUT,  /* it is still busy */
    FAIL_PROTOCOL, /* it is in an unexpected state */
    FAIL_GONE,     /* no device responds */
};

/* ---- registers and messages --------------------------------------------- */

static uint8_t in(struct ata_channel *ch, enum ata_register reg)
{
    return ch->ch_io->io_in(ch->ch_io->io_self, reg);
}

static void out(struct ata_channel *ch, enum ata_register reg, uint8_t value)
{
    ch->ch_io->io_out(ch->ch_io->io_self, reg, value);
}

static uint32_t now(struct ata_channel *ch)
{
    return ch->ch_io->io_now(ch->ch_io->io_self);
}

static void report(struct ata_channel *ch, uint32_t drive, const char *what,
                   uint8_t status, uint8_t error)
{
    if (ch->ch_io->io_tell != NULL)
        ch->ch_io->io_tell(ch->ch_io->io_self, drive, what, status, error);
}

/* 400 ns: the time a drive may take to set BSY. */
static void settle(struct ata_channel *ch)
{
    for (unsigned i = 0; i < 4; i++)
        in(ch, ATA_CONTROL);
}

/* ---- time --------------------------------------------------------------- */

/* Whether time `at` has come; the clock wraps around. */
static bool reached(uint32_t at, uint32_t time)
{
    return ((time - at) & CLOCK_MASK) <= CLOCK_MASK / 2;
}

static void set_alarm(struct ata_channel *ch, uint32_t ms)
{
    ch->ch_alarm_set = true;
    ch->ch_alarm_at = (now(ch) + ms) & CLOCK_MASK;
    ch->ch_io->io_alarm(ch->ch_io->io_self, ms);
}

/* Continue with this state in `ms`. An earlier alarm is kept: it finds that it
 * is too early and sets the next. So a working drive costs one system call in
 * seconds, not one per block. */
static void wake_in(struct ata_channel *ch, uint32_t ms)
{
    ch->ch_wake = (now(ch) + ms) & CLOCK_MASK;
    if (!ch->ch_alarm_set || !reached(ch->ch_alarm_at, ch->ch_wake))
        set_alarm(ch, ms);
}

static void enter(struct ata_channel *ch, enum ata_state state)
{
    ch->ch_state = state;
    ch->ch_since = now(ch);
}

static uint32_t elapsed(struct ata_channel *ch)
{
    return (now(ch) - ch->ch_since) & CLOCK_MASK;
}

/* ---- end of requests ---------------------------------------------------- */

static struct ata_drive *drive_of(struct ata_channel *ch)
{
    return &ch->ch_drive[ch->ch_request->req_drive];
}

/* Ends the current request. */
static void finish(struct ata_channel *ch, int error)
{
    struct ata_request *r = ch->ch_request;

    ch->ch_state = ATA_IDLE;
    ch->ch_request = NULL;
    ch->ch_io->io_done(ch->ch_io->io_self, r, error);
}

static void finish_absent(struct ata_channel *ch)
{
    drive_of(ch)->drive_presence = ATA_ABSENT;
    finish(ch, ENODEV);
}

/* Resets both drives; those present are identified again. */
static void reset(struct ata_channel *ch)
{
    ch->ch_counts.count_resets++;
    for (unsigned i = 0; i < ATA_DRIVES; i++)
        if (ch->ch_drive[i].drive_presence != ATA_ABSENT)
            ch->ch_drive[i].drive_presence = ATA_UNKNOWN;
    out(ch, ATA_CONTROL, ATA_SRST | ATA_NIEN);
    enter(ch, ATA_RESETTING);
    wake_in(ch, HOLD_MS);
}

static const char *name_failure(struct ata_channel *ch, enum failure how)
{
    switch (how) {
    case FAIL_DEVICE:
        ch->ch_counts.count_errors++;
        return "error";
    case FAIL_TIMEOUT:
        ch->ch_counts.count_timeouts++;
        return "timed out";
    case FAIL_PROTOCOL:
        ch->ch_counts.count_protocol++;
        return "out of step";
    default:
        return "no response";
    }
}

/* A command failed: repeats it, at once or after a reset, or fails the
 * request. */
static void fail(struct ata_channel *ch, enum failure how, uint8_t status)
{
    struct ata_drive *d = drive_of(ch);
    uint8_t code = ch->ch_command.cmd_code;
    uint8_t error = how == FAIL_DEVICE ? in(ch, ATA_ERROR) : 0;
    bool refused = how == FAIL_DEVICE || how == FAIL_GONE;
    uint32_t failures = ++ch->ch_request->req_failures;

    ch->ch_state = ATA_IDLE;
    report(ch, ch->ch_command.cmd_drive, name_failure(ch, how), status, error);
    if (code == ATA_IDENTIFY && refused) {
        finish_absent(ch);
        return;
    }
    if (code == ATA_SET_MULTIPLE && how == FAIL_DEVICE) {
        d->drive_presence = ATA_READY; /* uses single sectors */
        ch->ch_request->req_failures--;
        return;
    }
    /* The drive has dropped a sector that it cannot write: the next FLUSH CACHE
     * would write the others and succeed. */
    if (code == ATA_FLUSH_CACHE && how == FAIL_DEVICE) {
        finish(ch, EIO);
        return;
    }
    if (failures >= ATA_TRIES && code == ATA_IDENTIFY)
        finish_absent(ch);
    else if (failures >= ATA_TRIES)
        finish(ch, EIO);
    if (how != FAIL_DEVICE || failures == ATA_TRIES - 1)
        reset(ch);
}

/* ---- blocks of data ----------------------------------------------------- */

static uint32_t next_block(const struct ata_command *c)
{
    return MIN(c->cmd_left, c->cmd_block);
}

static void advance(struct ata_command *c, uint32_t sectors)
{
    c->cmd_data += sectors * ATA_SECTOR;
    c->cmd_left -= sectors;
}

static void wait_for_interrupt(struct ata_channel *ch)
{
    enter(ch, ATA_WAITING);
    wake_in(ch, ch->ch_timeout);
}

static void write_block(struct ata_channel *ch)
{
    struct ata_command *c = &ch->ch_command;
    uint32_t n = next_block(c);

    ch->ch_io->io_out_data(ch->ch_io->io_self, c->cmd_data, n);
    advance(c, n);
    settle(ch);
    wait_for_interrupt(ch);
}

static void read_block(struct ata_channel *ch)
{
    struct ata_command *c = &ch->ch_command;
    uint32_t n = next_block(c);

    ch->ch_io->io_in_data(ch->ch_io->io_self, c->cmd_data, n);
    advance(c, n);
}

/* ---- commands ----------------------------------------------------------- */

/* The status is not as expected: polls again later, or fails. */
static void poll_later(struct ata_channel *ch, uint8_t status)
{
    uint32_t ms = elapsed(ch);

    if (status == ATA_FLOATING && ms >= FLOAT_MS)
        fail(ch, FAIL_GONE, status);
    else if (ms >= ch->ch_timeout)
        fail(ch, FAIL_TIMEOUT, status);
    else
        wake_in(ch, POLL_MS);
}

/* FIRST: a drive requests the first block of a write without an interrupt. */
static void poll_first(struct ata_channel *ch)
{
    uint8_t status = ATA_BSY;

    for (unsigned i = 0; i < SPINS && (status & ATA_BSY) != 0; i++)
        status = in(ch, ATA_CONTROL);
    if ((status & ATA_BSY) != 0) {
        poll_later(ch, status);
    } else if ((status & (ATA_ERR | ATA_DF)) != 0) {
        in(ch, ATA_STATUS); /* clears an interrupt that it may have raised */
        fail(ch, FAIL_DEVICE, status);
    } else if ((status & ATA_DRQ) == 0) {
        fail(ch, FAIL_PROTOCOL, status);
    } else {
        write_block(ch);
    }
}

/* Writes the registers of the selected drive, the command last. */
static void issue(struct ata_channel *ch)
{
    struct ata_command *c = &ch->ch_command;

    ch->ch_counts.count_commands++;
    out(ch, ATA_COUNT, c->cmd_count);
    out(ch, ATA_LBA_LOW, (uint8_t)c->cmd_lba);
    out(ch, ATA_LBA_MID, (uint8_t)(c->cmd_lba >> 8));
    out(ch, ATA_LBA_HIGH, (uint8_t)(c->cmd_lba >> 16));
    out(ch, ATA_COMMAND, c->cmd_code);
    settle(ch);
    if (c->cmd_direction != ATA_TO_DRIVE) {
        wait_for_interrupt(ch);
        return;
    }
    enter(ch, ATA_FIRST);
    poll_first(ch);
}

static void select_drive(struct ata_channel *ch)
{
    struct ata_command *c = &ch->ch_command;

    out(ch, ATA_DEVICE,
        (uint8_t)(ATA_DEVICE_BITS | ATA_LBA |
                  (c->cmd_drive == 1 ? ATA_DEVICE_1 : 0) |
                  (c->cmd_lba >> 24 & 0xf)));
    settle(ch);
    c->cmd_selected = true;
}

/* SELECTING: the drive selected before must be idle, then the new one. */
static void poll_selecting(struct ata_channel *ch)
{
    struct ata_command *c = &ch->ch_command;
    uint8_t status = ATA_BSY;

    for (unsigned i = 0; i < SPINS; i++) {
        status = in(ch, ATA_CONTROL);
        if ((status & ATA_BSY) != 0)
            continue;
        if ((status & ATA_DRQ) != 0) {
            fail(ch, FAIL_PROTOCOL, status);
            return;
        }
        if (!c->cmd_selected) {
            select_drive(ch);
        } else if (status == ATA_NOBODY) {
            fail(ch, FAIL_GONE, status);
            return;
        } else if ((status & ATA_DRDY) != 0 || c->cmd_code == ATA_IDENTIFY) {
            issue(ch);
            return;
        }
    }
    poll_later(ch, status);
}

static void start(struct ata_channel *ch, struct ata_command command)
{
    ch->ch_command = command;
    ch->ch_command.cmd_drive = ch->ch_request->req_drive;
    enter(ch, ATA_SELECTING);
    poll_selecting(ch);
}

/* ---- end of commands ---------------------------------------------------- */

/* IDENTIFY DEVICE has sent its words. */
static void finish_identify(struct ata_channel *ch)
{
    struct ata_drive *d = drive_of(ch);
    struct ata_identity id;
    enum ata_verdict verdict = ata_identify(ch->ch_words, &id);

    if (verdict == ATA_ID_GARBLED) {
        fail(ch, FAIL_PROTOCOL, 0);
        return;
    }
    if (verdict == ATA_ID_NO_DISK) {
        report(ch, ch->ch_request->req_drive, "not a disk", 0, 0);
        finish_absent(ch);
        return;
    }
    if (d->drive_known && !ata_same_drive(&id, &d->drive_identity)) {
        report(ch, ch->ch_request->req_drive, "another drive", 0, 0);
        finish_absent(ch);
        return;
    }
    d->drive_identity = id;
    d->drive_known = true;
    d->drive_block = 1;
    d->drive_presence = id.id_multiple > 1 ? ATA_UNSET : ATA_READY;
}

static void command_done(struct ata_channel *ch)
{
    struct ata_drive *d = drive_of(ch);

    ch->ch_state = ATA_IDLE;
    if (ch->ch_command.cmd_code == ATA_IDENTIFY) {
        finish_identify(ch);
    } else if (ch->ch_command.cmd_code == ATA_SET_MULTIPLE) {
        d->drive_block = d->drive_identity.id_multiple;
        d->drive_presence = ATA_READY;
    } else {
        finish(ch, 0);
    }
}

/* End of WAITING: the drive has data, wants data, or has finished. BSY is clear
 * in `status`. */
static void drive_ready(struct ata_channel *ch, uint8_t status)
{
    struct ata_command *c = &ch->ch_command;
    bool data = c->cmd_left > 0;
    bool ready = (status & ATA_DRDY) != 0 || c->cmd_code == ATA_IDENTIFY;

    if ((status & (ATA_ERR | ATA_DF)) != 0) {
        fail(ch, FAIL_DEVICE, status);
    } else if (!ready || data != ((status & ATA_DRQ) != 0)) {
        fail(ch, FAIL_PROTOCOL, status);
    } else if (!data) {
        command_done(ch);
    } else if (c->cmd_direction == ATA_TO_DRIVE) {
        write_block(ch);
    } else {
        read_block(ch);
        settle(ch);
        if (c->cmd_left > 0)
            wait_for_interrupt(ch);
        else if ((in(ch, ATA_CONTROL) & (ATA_BSY | ATA_DRQ)) == ATA_DRQ)
            fail(ch, FAIL_PROTOCOL, status); /* it has more data than
                                                requested */
        else
            command_done(ch);
    }
}

/* ---- requests ----------------------------------------------------------- */

static void start_request(struct ata_channel *ch)
{
    struct ata_request *r = ch->ch_request;
    uint32_t block = drive_of(ch)->drive_block;
    struct ata_command c = {.cmd_code = ATA_FLUSH_CACHE};

    if (r->req_operation != ATA_OP_FLUSH) {
        bool from = r->req_operation == ATA_OP_READ;

        c = (struct ata_command){
            .cmd_code = from ? ATA_READ_SECTORS : ATA_WRITE_SECTORS,
            .cmd_direction = from ? ATA_FROM_DRIVE : ATA_TO_DRIVE,
            .cmd_count = (uint8_t)r->req_sectors,
            .cmd_lba = r->req_lba,
            .cmd_data = r->req_data,
            .cmd_left = r->req_sectors,
            .cmd_block = block,
        };
        if (block > 1)
            c.cmd_code = from ? ATA_READ_MULTIPLE : ATA_WRITE_MULTIPLE;
    }
    start(ch, c);
}

/* Starts a request for a drive that is ready. */
static void serve_ready(struct ata_channel *ch)
{
    const struct ata_request *r = ch->ch_request;
    uint32_t end = drive_of(ch)->drive_identity.id_sectors;

    if (r->req_operation == ATA_OP_INFO) {
        finish(ch, 0);
    } else if (r->req_operation == ATA_OP_FLUSH) {
        start_request(ch);
    } else if (r->req_sectors == 0 || r->req_sectors > ATA_MAX ||
               r->req_lba >= end || r->req_sectors > end - r->req_lba) {
        finish(ch, EINVAL);
    } else {
        start_request(ch);
    }
}

/* The next command needed for the current request. */
static void serve(struct ata_channel *ch)
{
    struct ata_drive *d = drive_of(ch);

    switch (d->drive_presence) {
    case ATA_ABSENT:
        if (ch->ch_request->req_operation != ATA_OP_INFO) {
            finish(ch, ENODEV);
            return;
        }
        d->drive_presence = ATA_UNKNOWN;
        d->drive_known = false;
        return;
    case ATA_UNKNOWN:
        start(ch, (struct ata_command){
                      .cmd_code = ATA_IDENTIFY,
                      .cmd_direction = ATA_FROM_DRIVE,
                      .cmd_data = (uint8_t *)ch->ch_words,
                      .cmd_left = 1,
                      .cmd_block = 1,
                  });
        return;
    case ATA_UNSET:
        start(ch, (struct ata_command){
                      .cmd_code = ATA_SET_MULTIPLE,
                      .cmd_count = (uint8_t)d->drive_identity.id_multiple,
                  });
        return;
    default:
        serve_ready(ch);
    }
}

static void run(struct ata_channel *ch)
{
    while (ch->ch_state == ATA_IDLE) {
        if (ch->ch_request == NULL)
            ch->ch_request = ata_queue_take(&ch->ch_queue);
        if (ch->ch_request == NULL)
            return;
        serve(ch);
    }
}

/* ---- events ------------------------------------------------------------- */

void ata_open(struct ata_channel *ch, const struct ata_io *io,
              uint32_t timeout_ms)
{
    *ch = (struct ata_channel){.ch_io = io, .ch_timeout = timeout_ms};
    ata_queue_init(&ch->ch_queue);
    reset(ch);
}

void ata_submit(struct ata_channel *ch, struct ata_request *r)
{
    r->req_failures = 0;
    ata_queue_add(&ch->ch_queue, r);
    run(ch);
}

void ata_interrupt(struct ata_channel *ch)
{
    uint8_t status = in(ch, ATA_STATUS);

    if (ch->ch_state != ATA_WAITING || (status & ATA_BSY) != 0) {
        ch->ch_counts.count_spurious++;
        return;
    }
    drive_ready(ch, status);
    run(ch);
}

/* The drives had time to recover. Device 0 is selected now. */
static void poll_recovering(struct ata_channel *ch)
{
    uint8_t status = in(ch, ATA_CONTROL);
    uint32_t ms = elapsed(ch);
    bool gone = status == ATA_FLOATING && ms >= FLOAT_MS;

    if ((status & ATA_BSY) != 0 && !gone && ms < ATA_RESET_MS) {
        wake_in(ch, POLL_MS);
        return;
    }
    in(ch, ATA_STATUS); /* clears an old interrupt */
    out(ch, ATA_CONTROL, 0);
    ch->ch_state = ATA_IDLE;
    if ((status & ATA_BSY) == 0)
        return;
    report(ch, 0, "no response after a reset", status, 0);
    for (unsigned i = 0; i < ATA_DRIVES; i++)
        ch->ch_drive[i].drive_presence = ATA_ABSENT;
    if (ch->ch_request != NULL)
        finish(ch, ENODEV);
}

/* WAITING timed out: the drive hangs, or the interrupt was lost. */
static void poll_waiting(struct ata_channel *ch)
{
    uint8_t status = in(ch, ATA_STATUS);

    if ((status & ATA_BSY) != 0) {
        fail(ch, FAIL_TIMEOUT, status);
        return;
    }
    ch->ch_counts.count_lost++;
    report(ch, ch->ch_command.cmd_drive, "lost interrupt", status, 0);
    drive_ready(ch, status);
}

static void poll_state(struct ata_channel *ch)
{
    switch (ch->ch_state) {
    case ATA_SELECTING:
        poll_selecting(ch);
        break;
    case ATA_FIRST:
        poll_first(ch);
        break;
    case ATA_WAITING:
        poll_waiting(ch);
        break;
    case ATA_RESETTING:
        out(ch, ATA_CONTROL, ATA_NIEN);
        enter(ch, ATA_RECOVERING);
        wake_in(ch, SETTLE_MS);
        break;
    case ATA_RECOVERING:
        poll_recovering(ch);
        break;
    case ATA_IDLE:
        break;
    }
}

void ata_alarm(struct ata_channel *ch)
{
    uint32_t time = now(ch);

    ch->ch_alarm_set = false;
    if (ch->ch_state == ATA_IDLE)
        return;
    if (!reached(ch->ch_wake, time)) {
        set_alarm(ch, (ch->ch_wake - time) & CLOCK_MASK);
        return;
    }
    poll_state(ch);
    run(ch);
}
