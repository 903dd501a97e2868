/*
 * The ATA driver's core against the channel of sim.h: orders of events and
 * faults that no real drive shows on demand.
 *
 * Tests: drivers/servers/ata/channel.c, drivers/servers/ata/drive.c
 * Tests: drivers/servers/ata/queue.c
 */
#include "drivers/servers/ata/tests/sim.h"
#include "kernel/abi/errno.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TIMEOUT 100u

static struct sim *sim;
static uint8_t buffer[ATA_MAX * ATA_SECTOR];

static int setup(void **state)
{
    (void)state;
    sim = malloc(sizeof(*sim));
    sim_init(sim);
    sim_open(sim, TIMEOUT);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(sim);
    return 0;
}

static int ask(enum ata_operation op, uint32_t lba, uint32_t sectors)
{
    return sim_request(sim, op, 0, lba, sectors, buffer);
}

static const struct ata_counts *counts(void)
{
    return &sim->sim_channel.ch_counts;
}

/* ---- what a drive holds ------------------------------------------------- */

static void fill(uint32_t sectors, unsigned seed)
{
    for (uint32_t i = 0; i < sectors * ATA_SECTOR; i++)
        buffer[i] = (uint8_t)(i * 31 + (i >> 8) + seed);
}

static bool on_disk(uint32_t drive, uint32_t lba, uint32_t sectors)
{
    return memcmp(sim->sim_drive[drive].sd_image + lba * ATA_SECTOR, buffer,
                  sectors * ATA_SECTOR) == 0;
}

/* Reads and writes go to where they should, and nothing was forbidden. */
static void works(void)
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

/* ---- all is well -------------------------------------------------------- */

static void test_info_tells_the_size(void **state)
{
    (void)state;
    assert_int_equal(ask(ATA_OP_INFO, 0, 0), 0);
    assert_int_equal(sim->sim_channel.ch_drive[0].drive_identity.id_sectors,
                     SIM_SECTORS);
    assert_string_equal(sim->sim_channel.ch_drive[0].drive_identity.id_model,
                        "SIMULATED DRIVE1");
    assert_string_equal(sim->sim_channel.ch_drive[0].drive_identity.id_serial,
                        "SA");
    works();
}

static void test_every_size_in_every_mode(void **state)
{
    static const uint32_t modes[] = {0, 1, 2, 16, 128};

    (void)state;
    for (unsigned m = 0; m < ARRAY_SIZE(modes); m++) {
        sim_init(sim);
        sim->sim_drive[0].sd_multiple_max = modes[m];
        sim_open(sim, TIMEOUT);
        for (uint32_t n = 1; n <= ATA_MAX; n += 1 + n / 4) {
            fill(n, n);
            assert_int_equal(ask(ATA_OP_WRITE, n * 3, n), 0);
            assert_true(on_disk(0, n * 3, n));
            memset(buffer, 0, sizeof(buffer));
            assert_int_equal(ask(ATA_OP_READ, n * 3, n), 0);
            assert_true(on_disk(0, n * 3, n));
        }
        works();
    }
    assert_int_equal(counts()->count_spurious, 0);
    assert_int_equal(counts()->count_resets, 1);
}

static void test_blocks_save_interrupts(void **state)
{
    uint32_t before;

    (void)state;
    works();
    before = sim->sim_step;
    assert_int_equal(ask(ATA_OP_READ, 0, 128), 0);
    assert_int_equal(sim->sim_step - before, 8);
}

static void test_the_ends_of_the_disk(void **state)
{
    (void)state;
    assert_int_equal(ask(ATA_OP_READ, SIM_SECTORS - 1, 1), 0);
    assert_int_equal(ask(ATA_OP_READ, SIM_SECTORS - 1, 2), EINVAL);
    assert_int_equal(ask(ATA_OP_READ, SIM_SECTORS, 1), EINVAL);
    assert_int_equal(ask(ATA_OP_WRITE, UINT32_MAX, 2), EINVAL);
    assert_int_equal(ask(ATA_OP_READ, 0, 0), EINVAL);
    assert_int_equal(ask(ATA_OP_READ, 0, ATA_MAX + 1), EINVAL);
    works();
}

static void test_two_drives(void **state)
{
    (void)state;
    sim->sim_drive[1].sd_present = true;
    for (uint32_t drive = 0; drive < 2; drive++) {
        fill(40, drive);
        assert_int_equal(sim_request(sim, ATA_OP_WRITE, drive, 99, 40, buffer),
                         0);
        assert_true(on_disk(drive, 99, 40));
        assert_false(on_disk(1 - drive, 99, 40));
    }
    assert_int_equal(sim_request(sim, ATA_OP_FLUSH, 1, 0, 0, NULL), 0);
    assert_int_equal(sim->sim_drive[1].sd_flushed, 1);
    assert_int_equal(sim->sim_drive[0].sd_flushed, 0);
    works();
}

static void test_lba_has_28_bits(void **state)
{
    (void)state;
    sim->sim_drive[0].sd_sectors = 0x0fffffff;
    assert_int_equal(ask(ATA_OP_INFO, 0, 0), 0);
    sim->sim_bad_lba = 0x0abcdef1; /* it looks no further */
    assert_int_equal(ask(ATA_OP_READ, 0x0abcdef1, 1), EIO);
    assert_int_equal(counts()->count_errors, ATA_TRIES);
}

static void test_a_slow_drive_is_no_broken_one(void **state)
{
    (void)state;
    sim->sim_latency = TIMEOUT - 1;
    works();
    assert_int_equal(counts()->count_timeouts, 0);
    assert_int_equal(counts()->count_lost, 0);
}

/* ---- drives that are not there ------------------------------------------ */

static void test_an_absent_slave(void **state)
{
    (void)state;
    assert_int_equal(sim_request(sim, ATA_OP_INFO, 1, 0, 0, NULL), ENODEV);
    assert_int_equal(sim_request(sim, ATA_OP_READ, 1, 0, 1, buffer), ENODEV);
    works();
    assert_int_equal(counts()->count_resets, 1);
    sim->sim_drive[1].sd_present = true;
    assert_int_equal(sim_request(sim, ATA_OP_READ, 1, 0, 1, buffer), ENODEV);
    assert_int_equal(sim_request(sim, ATA_OP_INFO, 1, 0, 0, NULL), 0);
    assert_int_equal(sim_request(sim, ATA_OP_READ, 1, 0, 1, buffer), 0);
}

static void test_an_empty_channel(void **state)
{
    (void)state;
    sim->sim_drive[0].sd_present = false;
    for (uint32_t drive = 0; drive < 2; drive++)
        assert_int_equal(sim_request(sim, ATA_OP_READ, drive, 0, 1, buffer),
                         ENODEV);
    assert_true(sim->sim_time - 0x7ffffff0 < 1000);
}

static void test_not_a_disk(void **state)
{
    (void)state;
    sim->sim_drive[0].sd_general = 0x8580; /* ATAPI */
    assert_int_equal(ask(ATA_OP_READ, 0, 1), ENODEV);
}

static void test_a_garbled_identity_is_asked_for_again(void **state)
{
    (void)state;
    sim->sim_drive[0].sd_garbled = true;
    works();
    assert_int_equal(counts()->count_protocol, 1);
    assert_int_equal(counts()->count_resets, 2);
}

static void test_another_drive_is_not_taken_for_the_old_one(void **state)
{
    (void)state;
    works();
    sim->sim_drive[0].sd_serial = 'Z';
    works(); /* nobody looks */
    sim_break(sim, SIM_HANGS, 0, 1);
    fill(8, 9);
    assert_int_equal(ask(ATA_OP_WRITE, 50, 8), ENODEV);
    assert_false(on_disk(0, 50, 8));
    assert_int_equal(ask(ATA_OP_READ, 50, 8), ENODEV);
    assert_int_equal(ask(ATA_OP_INFO, 0, 0), 0);
    works();
}

/* ---- faults ------------------------------------------------------------- */

static bool lasts(enum sim_fault f)
{
    return f == SIM_REMOVED || f == SIM_RESET_HANGS;
}

static void repair(void)
{
    sim->sim_fault = SIM_GOOD;
    sim->sim_dead = false;
    assert_int_equal(ask(ATA_OP_INFO, 0, 0), 0);
    works();
}

/* One fault at the given step of a request; true if there was such a step. */
static bool one_fault(enum ata_operation op, enum sim_fault fault,
                      uint32_t step, bool fresh)
{
    uint32_t before, resets;
    int result;

    sim_init(sim);
    sim_open(sim, TIMEOUT);
    if (!fresh)
        works();
    before = sim->sim_step;
    resets = counts()->count_resets;
    sim_break(sim, fault, step, 1);
    fill(40, step);
    result = ask(op, 600, 40);
    assert_true(resets + ATA_TRIES >= counts()->count_resets);
    if (sim->sim_step <= before + step)
        return false;
    if (lasts(fault) ||
        (fresh && step == 0 && (fault == SIM_ERR || fault == SIM_FAULT)))
        assert_int_equal(result, ENODEV); /* IDENTIFY DEVICE was refused */
    else
        assert_int_equal(result, 0);
    if (result == 0 && op != ATA_OP_FLUSH)
        assert_true(on_disk(0, 600, 40));
    if (result == 0 && op == ATA_OP_FLUSH)
        assert_true(sim->sim_drive[0].sd_flushed > 0);
    if (fault == SIM_ERR || fault == SIM_FAULT) {
        assert_int_equal(counts()->count_errors, 1);
        assert_int_equal(counts()->count_protocol, 0);
    }
    assert_int_equal(sim->sim_violations, 0);
    repair();
    return true;
}

static void test_each_fault_at_each_step(void **state)
{
    static const enum ata_operation ops[] = {ATA_OP_READ, ATA_OP_WRITE,
                                             ATA_OP_FLUSH};
    uint32_t tried = 0;

    (void)state;
    for (enum sim_fault f = SIM_GOOD + 1; f < SIM_FAULTS; f++)
        for (unsigned o = 0; o < ARRAY_SIZE(ops); o++)
            for (unsigned fresh = 0; fresh < 2; fresh++)
                for (uint32_t step = 0; one_fault(ops[o], f, step, fresh);
                     step++)
                    tried++;
    assert_true(tried >= 200);
}

/* A drive that does not recover: an error, in a time that has a bound. */
static void test_each_fault_for_good(void **state)
{
    (void)state;
    for (enum sim_fault f = SIM_GOOD + 1; f < SIM_FAULTS; f++) {
        uint32_t start;
        int result;

        sim_init(sim);
        sim_open(sim, TIMEOUT);
        works();
        start = sim->sim_time;
        sim_break(sim, f, 1, SIM_NEVER);
        result = ask(ATA_OP_WRITE, 600, 40);
        if (f == SIM_LOST || f == SIM_STUCK_DRQ) /* that is for reads */
            assert_int_equal(result, 0);
        else
            assert_true(result == EIO || result == ENODEV);
        assert_true(sim->sim_time - start <
                    ATA_RESET_MS + 2 * ATA_TRIES * (TIMEOUT + 10));
        start = sim->sim_time;
        if (f == SIM_RESET_HANGS)
            assert_int_equal(ask(ATA_OP_INFO, 0, 0), ENODEV);
        assert_true(sim->sim_time - start < ATA_RESET_MS + 2 * TIMEOUT);
        repair();
    }
}

static void test_three_tries_then_eio(void **state)
{
    (void)state;
    works();
    for (uint32_t errors = 1; errors <= 3; errors++) {
        uint32_t commands = counts()->count_commands;
        uint32_t resets = counts()->count_resets;

        sim_break(sim, SIM_ERR, 0, errors);
        if (errors == 2) /* IDENTIFY and SET MULTIPLE come in between */
            assert_int_equal(ask(ATA_OP_READ, 0, 1), 0);
        else
            assert_int_equal(ask(ATA_OP_READ, 0, 1), errors < 3 ? 0 : ENODEV);
        assert_int_equal(counts()->count_resets - resets, errors >= 2);
        assert_true(counts()->count_commands - commands >= errors);
        sim->sim_fault = SIM_GOOD;
    }
    repair();
}

static void test_a_sector_that_cannot_be_read(void **state)
{
    (void)state;
    sim->sim_bad_lba = 123;
    works();
    assert_int_equal(ask(ATA_OP_READ, 100, 128), EIO);
    assert_int_equal(ask(ATA_OP_READ, 123, 1), EIO);
    assert_int_equal(counts()->count_errors, 2 * ATA_TRIES);
    works();
}

/* It has more data than were asked for: were these the right ones? */
static void test_data_left_over(void **state)
{
    (void)state;
    works();
    sim_break(sim, SIM_STUCK_DRQ, 2, 1);
    assert_int_equal(ask(ATA_OP_READ, 600, 40), 0);
    assert_int_equal(counts()->count_protocol, 1);
    assert_true(on_disk(0, 600, 40));
    works();
}

static void test_a_drive_without_multiple_mode(void **state)
{
    (void)state;
    sim->sim_drive[0].sd_no_multiple = true;
    works();
    assert_int_equal(sim->sim_channel.ch_drive[0].drive_block, 1);
    sim_init(sim);
    sim->sim_drive[0].sd_no_multiple = true;
    sim_open(sim, TIMEOUT);
    sim_break(sim, SIM_ERR, 1, 2); /* its refusal was no failure */
    assert_int_equal(ask(ATA_OP_READ, 0, 1), 0);
}

/* ---- interrupts --------------------------------------------------------- */

static void test_a_lost_interrupt_costs_time_only(void **state)
{
    (void)state;
    works();
    sim_break(sim, SIM_LOST, 1, 1);
    assert_int_equal(ask(ATA_OP_READ, 600, 40), 0);
    assert_true(on_disk(0, 600, 40));
    assert_int_equal(counts()->count_lost, 1);
    assert_int_equal(counts()->count_resets, 1);
}

static void test_interrupts_that_nobody_waits_for(void **state)
{
    (void)state;
    ata_interrupt(&sim->sim_channel); /* while it is reset */
    works();
    for (unsigned i = 0; i < 5; i++)
        ata_interrupt(&sim->sim_channel);
    works();
    sim_break(sim, SIM_EARLY, 0, 20);
    works();
    assert_int_equal(counts()->count_spurious, 1 + 5 + 20);
    assert_int_equal(counts()->count_errors + counts()->count_protocol +
                         counts()->count_timeouts,
                     0);
}

static void test_an_alarm_that_comes_early(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        ata_alarm(&sim->sim_channel);
    works();
    ata_alarm(&sim->sim_channel);
    works();
    assert_int_equal(counts()->count_resets, 1);
}

/* ---- several requests --------------------------------------------------- */

#define MANY 200

static struct ata_request many[MANY];
static uint32_t order[MANY];
static uint32_t answered;

static void remember(void *self, struct ata_request *r, int error)
{
    (void)self;
    assert_int_equal(error, 0);
    assert_true(answered < MANY);
    order[answered++] = (uint32_t)(r - many);
}

static void submit(uint32_t i, enum ata_operation op, uint32_t lba)
{
    many[i] = (struct ata_request){.req_operation = op,
                                   .req_lba = lba,
                                   .req_sectors = 2,
                                   .req_data = buffer};
    ata_submit(&sim->sim_channel, &many[i]);
}

static void assert_order(const uint32_t *expected, uint32_t n)
{
    assert_true(sim_run(sim));
    assert_int_equal(answered, n);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(order[i], expected[i]);
}

static void listen(void)
{
    answered = 0;
    sim->sim_io.io_done = remember;
}

/* An alarm that is set for a time-out does not keep others from coming. */
static void test_nothing_waits_for_a_time_out(void **state)
{
    uint32_t start;

    (void)state;
    works();
    listen();
    start = sim->sim_time;
    for (uint32_t i = 0; i < 4; i++)
        submit(i, ATA_OP_WRITE, 10 * i);
    while (answered < 4)
        assert_true(sim_step_once(sim));
    assert_true(sim->sim_time - start < 40);
}

static void test_the_elevator(void **state)
{
    static const uint32_t expected[] = {0, 4, 1, 3, 5, 2};

    (void)state;
    works();
    listen();
    submit(0, ATA_OP_READ, 500); /* under way at once */
    submit(1, ATA_OP_READ, 700);
    submit(2, ATA_OP_READ, 100);
    submit(3, ATA_OP_WRITE, 900);
    submit(4, ATA_OP_READ, 502);
    submit(5, ATA_OP_READ, 50);
    assert_order(expected, 6);
}

static void test_a_flush_is_next(void **state)
{
    static const uint32_t expected[] = {0, 2, 3, 1};

    (void)state;
    works();
    listen();
    submit(0, ATA_OP_WRITE, 500);
    submit(1, ATA_OP_WRITE, 510);
    submit(2, ATA_OP_FLUSH, 0);
    submit(3, ATA_OP_INFO, 0);
    assert_order(expected, 4);
}

/* A client reads continuously; a request below is served after ATA_PATIENCE. */
static void test_nobody_waits_for_ever(void **state)
{
    uint32_t place = 0;
    uint32_t next = 3;

    (void)state;
    works();
    listen();
    submit(0, ATA_OP_READ, 500);
    submit(1, ATA_OP_READ, 502);
    submit(2, ATA_OP_READ, 10); /* below the arm */
    while (next < MANY) {
        uint32_t seen = answered;

        while (answered == seen)
            assert_true(sim_step_once(sim));
        submit(next, ATA_OP_READ, 500 + 2 * next);
        next++;
    }
    assert_true(sim_run(sim));
    assert_int_equal(answered, MANY);
    while (order[place] != 2)
        place++;
    assert_in_range(place, 3, ATA_PATIENCE + 1);
}

static void test_many_at_once_while_it_breaks(void **state)
{
    (void)state;
    works();
    listen();
    for (uint32_t i = 0; i < MANY; i++) {
        submit(i, ATA_OP_READ, i * 37 % (SIM_SECTORS - 2));
        if (i % 20 == 10)
            sim_break(sim, i % 40 == 10 ? SIM_HANGS : SIM_ERR, 2, 1);
    }
    assert_true(sim_run(sim));
    assert_int_equal(answered, MANY);
}

/* ---- faults at random --------------------------------------------------- */

static uint8_t shadow[SIM_SECTORS * ATA_SECTOR];
static bool unknown[SIM_SECTORS]; /* a write there has failed */

static void compare(uint32_t lba, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!unknown[lba + i])
            assert_memory_equal(buffer + i * ATA_SECTOR,
                                shadow + (lba + i) * ATA_SECTOR, ATA_SECTOR);
}

static void random_request(void)
{
    bool writes = rand() % 2;
    uint32_t n = 1 + (uint32_t)rand() % ATA_MAX;
    uint32_t lba = (uint32_t)rand() % (SIM_SECTORS - n);
    int result;

    if (rand() % 3 == 0)
        sim_break(sim, (enum sim_fault)(1 + rand() % (SIM_REMOVED - 1)),
                  (uint32_t)rand() % 12, 1 + (uint32_t)rand() % 4);
    fill(n, (unsigned)rand());
    result = ask(writes ? ATA_OP_WRITE : ATA_OP_READ, lba, n);
    if (result == ENODEV) {
        ask(ATA_OP_INFO, 0, 0);
    } else if (result != 0) {
        assert_int_equal(result, EIO);
    } else if (!writes) {
        compare(lba, n);
        return;
    }
    if (writes && result == 0)
        memcpy(shadow + lba * ATA_SECTOR, buffer, n * ATA_SECTOR);
    for (uint32_t i = 0; writes && i < n; i++)
        unknown[lba + i] = result != 0;
}

/* Reads return what was written, or an error, whatever faults occur. */
static void test_faults_at_random(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 100; seed++) {
        srand(seed);
        sim_init(sim);
        sim_open(sim, TIMEOUT);
        memcpy(shadow, sim->sim_drive[0].sd_image, sizeof(shadow));
        memset(unknown, 0, sizeof(unknown));
        for (unsigned i = 0; i < 100; i++)
            random_request();
        assert_int_equal(sim->sim_violations, 0);
        repair();
    }
}

/* ---- noise -------------------------------------------------------------- */

/* Registers lie. Nothing may hang or be touched that is not the driver's
 * (the sanitizers look), and each request has one answer; when the noise is
 * over all is well. */
static void test_noise(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 300; seed++) {
        sim_init(sim);
        sim->sim_drive[1].sd_present = seed % 2;
        sim_open(sim, TIMEOUT);
        sim->sim_seed = seed * 2654435761u;
        sim->sim_noise = 1 + seed % 60;
        for (unsigned i = 0; i < 20; i++)
            assert_int_not_equal(sim_request(sim, 1 + (seed + i) % 4, i % 2,
                                             i * 90, 1 + i * 6, buffer),
                                 -1);
        sim->sim_noise = 0;
        ask(ATA_OP_INFO, 0, 0); /* it may have to be reset first */
        sim->sim_violations = 0;
        repair();
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_info_tells_the_size),
        CASE(test_every_size_in_every_mode),
        CASE(test_blocks_save_interrupts),
        CASE(test_the_ends_of_the_disk),
        CASE(test_two_drives),
        CASE(test_lba_has_28_bits),
        CASE(test_a_slow_drive_is_no_broken_one),
        CASE(test_nothing_waits_for_a_time_out),
        CASE(test_an_absent_slave),
        CASE(test_an_empty_channel),
        CASE(test_not_a_disk),
        CASE(test_a_garbled_identity_is_asked_for_again),
        CASE(test_another_drive_is_not_taken_for_the_old_one),
        CASE(test_each_fault_at_each_step),
        CASE(test_each_fault_for_good),
        CASE(test_three_tries_then_eio),
        CASE(test_a_sector_that_cannot_be_read),
        CASE(test_data_left_over),
        CASE(test_a_drive_without_multiple_mode),
        CASE(test_a_lost_interrupt_costs_time_only),
        CASE(test_interrupts_that_nobody_waits_for),
        CASE(test_an_alarm_that_comes_early),
        CASE(test_the_elevator),
        CASE(test_a_flush_is_next),
        CASE(test_nobody_waits_for_ever),
        CASE(test_many_at_once_while_it_breaks),
        CASE(test_faults_at_random),
        CASE(test_noise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
