/*
 * A simulated ATA channel (struct ata_io): two drives, a clock, an interrupt
 * controller, and faults on demand.
 *
 * The simulated time advances only between calls of the driver's core, from
 * event to event: a drive finishes, the alarm comes. The interrupt line works
 * like a real drive and controller: a drive raises INTRQ until its status is
 * read; nIEN keeps it from the line; and the controller detects only rising
 * edges. So a core that forgets to read the status loses the next interrupt
 * here too.
 *
 * The drive also checks the host. Anything that the standard forbids (a command
 * to a busy drive, unexpected data) counts as a violation.
 */
#pragma once

#include "drivers/servers/ata/channel.h"

#define SIM_SECTORS 2048u
#define SIM_NEVER   UINT32_MAX

enum sim_fault {
    SIM_GOOD,
    SIM_ERR,         /* ends the command with ERR */
    SIM_FAULT,       /* with DF */
    SIM_HANGS,       /* BSY for ever, until a reset */
    SIM_NO_DRQ,      /* an interrupt without the expected data */
    SIM_EXTRA_DRQ,   /* sets DRQ though no data is expected */
    SIM_STUCK_DRQ,   /* DRQ stays set after the last block was read */
    SIM_LOST,        /* continues, but raises no interrupt */
    SIM_EARLY,       /* an additional interrupt, while it is busy */
    SIM_NOT_READY,   /* DRDY is not set */
    SIM_REMOVED,     /* no longer responds; permanent */
    SIM_RESET_HANGS, /* as SIM_HANGS, and BSY after a reset too; lasts */
    SIM_FAULTS,
};

enum sim_work {
    SIM_IDLE,
    SIM_BUSY,
    SIM_SENDS,
    SIM_TAKES
};

struct sim_drive {
    bool sd_present;
    uint8_t sd_image[(SIM_SECTORS + 1) * ATA_SECTOR];
    uint32_t sd_sectors; /* as it reports */
    uint32_t sd_multiple_max;
    uint32_t sd_multiple; /* 0: not set */
    char sd_serial;       /* distinguishes one drive from another */
    uint16_t sd_general;  /* word 0 */
    bool sd_stuck;        /* SIM_STUCK_DRQ is about to happen */
    bool sd_no_multiple;  /* refuses SET MULTIPLE MODE */
    bool sd_garbled;      /* the sum of IDENTIFY DEVICE is wrong, once */
    uint8_t sd_status;
    uint8_t sd_error;
    enum sim_work sd_work;
    uint8_t sd_command;
    uint32_t sd_lba, sd_left; /* sectors */
    uint8_t sd_block[256 * ATA_SECTOR];
    uint32_t sd_at, sd_size; /* bytes of the block */
    uint32_t sd_due;         /* when BSY ends */
    uint32_t sd_flushed;     /* how often */
};

struct sim {
    struct ata_channel sim_channel;
    struct ata_io sim_io;
    struct sim_drive sim_drive[ATA_DRIVES];
    uint8_t sim_regs[9];
    bool sim_reset;
    uint32_t sim_time;
    uint32_t sim_alarm; /* SIM_NEVER: none */
    bool sim_intrq;
    bool sim_line;
    bool sim_irq; /* the controller has detected it */
    uint32_t sim_latency;
    uint32_t sim_step;        /* ends of BSY, so far */
    enum sim_fault sim_fault; /* at these steps: */
    uint32_t sim_fault_first;
    uint32_t sim_fault_steps; /* how many of them */
    bool sim_dead;            /* SIM_REMOVED has happened */
    uint32_t sim_bad_lba;     /* the sector that cannot be read; 0: none */
    unsigned sim_noise;       /* per cent of register reads with wrong values */
    unsigned sim_seed;
    uint32_t sim_violations;
    uint32_t sim_replies; /* requests done */
    int sim_last;         /* the last one's error */
};

/* A channel with drive 0 and without drive 1; each sector of an image contains
 * its drive and number. */
void sim_init(struct sim *s);
void sim_open(struct sim *s, uint32_t timeout_ms);

/* Executes one event; false: there is none. */
bool sim_step_once(struct sim *s);

/* Executes events until there are none. False: there are still some after very
 * many. */
bool sim_run(struct sim *s);

/* Submits a request and executes events; returns the request's result. */
int sim_request(struct sim *s, enum ata_operation op, uint32_t drive,
                uint32_t lba, uint32_t sectors, void *data);

/* Begins a fault at the next step, or that many later. */
void sim_break(struct sim *s, enum sim_fault fault, uint32_t later,
               uint32_t steps);
