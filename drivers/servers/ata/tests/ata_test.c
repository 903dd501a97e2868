/*
 * The test program of the ATA driver's core, which runs against the channel of
 * sim.h: with orders of events and faults that real drives do not produce on
 * demand.
 */
#include "drivers/servers/ata/tests/ata_test.h"
#include "tools/test/budget.h"

#define CASE_STEPS 7000000000 /* 20 times what the longest case takes */

struct sim *sim;
uint8_t buffer[ATA_MAX * ATA_SECTOR];
static struct budget before;

void budget_used_up(const char *why)
{
    fail_msg("%s", why);
    abort();
}

int setup(void **state)
{
    (void)state;
    before = budget_begin("the case", CASE_STEPS);
    sim = malloc(sizeof(*sim));
    sim_init(sim);
    sim_open(sim, TIMEOUT);
    return 0;
}

int teardown(void **state)
{
    (void)state;
    free(sim);
    budget_end(before);
    return 0;
}

int ask(enum ata_operation op, uint32_t lba, uint32_t sectors)
{
    return sim_request(sim, op, 0, lba, sectors, buffer);
}

const struct block_counts *counts(void)
{
    return &sim->sim_channel.ch_counts;
}

void fill(uint32_t sectors, unsigned seed)
{
    for (uint32_t i = 0; i < sectors * ATA_SECTOR; i++)
        buffer[i] = (uint8_t)(i * 31 + (i >> 8) + seed);
}

bool on_disk(uint32_t drive, uint32_t lba, uint32_t sectors)
{
    return memcmp(sim->sim_drive[drive].sd_image + lba * ATA_SECTOR, buffer,
                  sectors * ATA_SECTOR) == 0;
}

void works(void)
{
    memset(buffer, 0, sizeof(buffer));
    assert_int_equal(ask(ATA_OP_READ, 77, 33), 0);
    assert_true(on_disk(0, 77, 33));
    fill(21, 5);
    assert_int_equal(ask(ATA_OP_WRITE, 1000, 21), 0);
    assert_true(on_disk(0, 1000, 21));
    assert_int_equal(sim->sim_violations, 0);
    assert_int_equal(sim->sim_channel.ch_state, ATA_IDLE);
}

void repair(void)
{
    sim->sim_fault = SIM_GOOD;
    sim->sim_dead = false;
    assert_int_equal(ask(ATA_OP_INFO, 0, 0), 0);
    works();
}

int main(void)
{
    return test_channel() + test_drive() + test_faults() + test_queue();
}
