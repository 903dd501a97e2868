/*
 * The ATA driver's core: a channel with two drives and the requests for them,
 * as a state machine that never waits.
 *
 * Its events are a request, the interrupt and the alarm. It reads and writes
 * registers, sets the alarm, and returns. It uses only struct ata_io, so it
 * runs in ring 3 (main.c) and on a workstation against a simulated drive
 * (tests/).
 *
 *     queue.c     which request is next
 *     drive.c     parses the data of IDENTIFY DEVICE
 *     channel.c   commands, blocks of data, time-outs, errors, resets
 */
#pragma once

#include "drivers/servers/ata/registers.h"
#include "kernel/lib/list.h"
#include "user/lib/block_counts.h"

#define ATA_SECTOR  512u
#define ATA_DRIVES  2u
#define ATA_MAX     128u        /* sectors in one request */
#define ATA_LBA_END 0x10000000u /* LBA28 */

/* ---- requests ----------------------------------------------------------- */

enum ata_operation {
    ATA_OP_INFO = 1, /* is the drive present? Asks an absent one again */
    ATA_OP_READ,
    ATA_OP_WRITE,
    ATA_OP_FLUSH,
};

/* Belongs to the channel from ata_submit until io_done. */
struct ata_request {
    struct list req_link; /* in the queue */
    enum ata_operation req_operation;
    uint32_t req_drive;
    uint32_t req_lba;
    uint32_t req_sectors;  /* 1 … ATA_MAX */
    uint8_t *req_data;     /* read into it, or written from it. Requests may
                              share a buffer for reading: only one is active
                              at a time */
    uint32_t req_arrival;  /* number of requests chosen before it came */
    uint32_t req_failures; /* so far */
};

/* ---- the queue (queue.c) ------------------------------------------------ */

/* At most this many requests overtake a request. */
#define ATA_PATIENCE 32u

struct ata_queue {
    struct list queue_list; /* in order of arrival */
    uint32_t queue_chosen;  /* requests chosen so far */
    uint32_t queue_head;    /* where the last one ended: ata_place */
};

void ata_queue_init(struct ata_queue *q);
void ata_queue_add(struct ata_queue *q, struct ata_request *r);

/* Removes the next request; NULL: none. */
struct ata_request *ata_queue_take(struct ata_queue *q);

/* ---- drives (drive.c) --------------------------------------------------- */

enum ata_presence {
    ATA_UNKNOWN, /* IDENTIFY DEVICE comes first */
    ATA_UNSET,   /* then SET MULTIPLE MODE */
    ATA_READY,
    ATA_ABSENT,
};

struct ata_identity {
    char id_model[41];
    char id_serial[21];
    uint32_t id_sectors;
    uint32_t id_multiple; /* most sectors in a block; 0: not supported */
};

struct ata_drive {
    enum ata_presence drive_presence;
    bool drive_known; /* the identity is that of a working drive */
    struct ata_identity drive_identity;
    uint32_t drive_block; /* sectors in a block now */
};

enum ata_verdict {
    ATA_ID_DISK,    /* *out is filled */
    ATA_ID_NO_DISK, /* a device of another kind */
    ATA_ID_GARBLED, /* the transfer was corrupt */
};

enum ata_verdict ata_identify(const uint16_t words[ATA_ID_WORDS],
                              struct ata_identity *out);
bool ata_same_drive(const struct ata_identity *a, const struct ata_identity *b);

/* ---- the channel (channel.c) -------------------------------------------- */

/* The functions that the core needs from its environment; `self` is io_self. */
struct ata_io {
    void *io_self;
    uint8_t (*io_in)(void *self, enum ata_register reg);
    void (*io_out)(void *self, enum ata_register reg, uint8_t value);
    /* Transfers `n` sectors through the data register. */
    void (*io_in_data)(void *self, void *buf, uint32_t n);
    void (*io_out_data)(void *self, const void *buf, uint32_t n);
    uint32_t (*io_now)(void *self); /* milliseconds, modulo 2^31 */
    /* Calls ata_alarm after so many milliseconds; replaces an earlier alarm. */
    void (*io_alarm)(void *self, uint32_t ms);
    /* A request has ended: 0, EIO, ENODEV, EINVAL. */
    void (*io_done)(void *self, struct ata_request *r, int error);
    /* An event for an operator; may be NULL. */
    void (*io_tell)(void *self, uint32_t drive, const char *what,
                    uint8_t status, uint8_t error);
};

enum ata_state {
    ATA_IDLE,       /* nothing to do */
    ATA_SELECTING,  /* polls the status until a drive accepts a command */
    ATA_FIRST,      /* polls the status until the first block may be written */
    ATA_WAITING,    /* for the interrupt */
    ATA_RESETTING,  /* SRST is set */
    ATA_RECOVERING, /* SRST is clear; polls until the drives are ready */
};

enum ata_direction {
    ATA_NO_DATA,
    ATA_FROM_DRIVE,
    ATA_TO_DRIVE
};

/* The command that a drive executes. */
struct ata_command {
    uint8_t cmd_code;
    uint8_t cmd_count; /* the register; 0 means 256 */
    uint32_t cmd_drive;
    uint32_t cmd_lba;
    enum ata_direction cmd_direction;
    uint8_t *cmd_data;
    uint32_t cmd_left;  /* sectors still to be transferred */
    uint32_t cmd_block; /* sectors between two interrupts */
    bool cmd_selected;
};

struct ata_channel {
    const struct ata_io *ch_io;
    struct ata_drive ch_drive[ATA_DRIVES];
    struct ata_queue ch_queue;
    struct ata_request *ch_request; /* current request, or NULL */
    struct ata_command ch_command;
    enum ata_state ch_state;
    uint32_t ch_timeout;  /* ms that a drive may take for a block */
    uint32_t ch_since;    /* when this state began */
    uint32_t ch_wake;     /* when to test it again */
    uint32_t ch_alarm_at; /* when the alarm comes */
    bool ch_alarm_set;
    struct block_counts ch_counts;
    uint16_t ch_words[ATA_ID_WORDS]; /* the data of IDENTIFY DEVICE */
};

#define ATA_TIMEOUT_MS 5000u
#define ATA_RESET_MS   31000u /* clause 9, "Software reset protocol" */
#define ATA_TRIES      3u

/* Begins with a software reset, since the drive's state is unknown. */
void ata_open(struct ata_channel *ch, const struct ata_io *io,
              uint32_t timeout_ms);
void ata_submit(struct ata_channel *ch, struct ata_request *r);
void ata_interrupt(struct ata_channel *ch);
void ata_alarm(struct ata_channel *ch);
