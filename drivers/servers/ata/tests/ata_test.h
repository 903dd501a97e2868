/*
 * Shared by the tests of the ATA driver: a simulated channel, created again for
 * each case, and checks of a request from its submission to the disk. Each file
 * has a function that runs its cases.
 */
#pragma once

#include "drivers/servers/ata/tests/sim.h"
#include "kernel/abi/errno.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TIMEOUT 100u

extern struct sim *sim;
extern uint8_t buffer[ATA_MAX * ATA_SECTOR];

int setup(void **state);
int teardown(void **state);

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Submits a request for drive 0 and `buffer`; returns its result. */
int ask(enum ata_operation op, uint32_t lba, uint32_t sectors);
const struct block_counts *counts(void);

/* fill() fills the start of `buffer`, by `seed`; on_disk() returns whether the
 * disk has these bytes. */
void fill(uint32_t sectors, unsigned seed);
bool on_disk(uint32_t drive, uint32_t lba, uint32_t sectors);

/* Whether reads and writes return and store the right sectors, without a
 * violation. */
void works(void);

/* Ends a fault: the drive works again. */
void repair(void);

/* Each runs the cases of its file and returns how many failed. */
int test_channel(void);
int test_drive(void);
int test_faults(void);
int test_queue(void);
