/*
 * Drives that fail: each fault at each step, faults at random, and registers
 * with wrong values.
 *
 * Tests: drivers/servers/ata/channel.c, drivers/servers/ata/drive.c
 */
#include "drivers/servers/ata/tests/ata_test.h"

static bool lasts(enum sim_fault f)
{
    return f == SIM_REMOVED || f == SIM_RESET_HANGS;
}

/* The result of a request with a fault at this step. Before the request itself,
 * a fresh drive gets IDENTIFY DEVICE and SET MULTIPLE MODE. */
static int result_with(enum ata_operation op, enum sim_fault fault,
                       uint32_t step, bool fresh)
{
    bool refused = fault == SIM_ERR || fault == SIM_FAULT;

    if (lasts(fault) || (refused && fresh && step == 0))
        return ENODEV;
    if (refused && op == ATA_OP_FLUSH && step == (fresh ? 2 : 0))
        return EIO; /* what the drive has dropped is lost */
    return 0;
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
    assert_int_equal(result, result_with(op, fault, step, fresh));
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

/* A drive that does not recover: an error within a bounded time. */
static void test_each_permanent_fault(void **state)
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
        if (f == SIM_LOST || f == SIM_STUCK_DRQ) /* only for reads */
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

/* The drive has more data than requested, so the data may be the wrong ones. */
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

/* ---- faults at random --------------------------------------------------- */

static uint8_t shadow[SIM_SECTORS * ATA_SECTOR];
static bool unknown[SIM_SECTORS]; /* a write to it has failed */

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

/* Registers return wrong values. The driver must not hang or access foreign
 * memory (the sanitizers check that), and completes each request once; then
 * it works again. */
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

int test_faults(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_each_fault_at_each_step),
        CASE(test_each_permanent_fault),
        CASE(test_three_tries_then_eio),
        CASE(test_a_sector_that_cannot_be_read),
        CASE(test_data_left_over),
        CASE(test_faults_at_random),
        CASE(test_noise),
    };

    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
