/*
 * Transfers and interrupts of a drive without faults (drivers/servers/ata/
 * channel.c).
 */
#include "drivers/servers/ata/tests/ata_test.h"

/* ---- transfers ---------------------------------------------------------- */

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

static void test_a_slow_drive_is_not_broken(void **state)
{
    (void)state;
    sim->sim_latency = TIMEOUT - 1;
    works();
    assert_int_equal(counts()->count_timeouts, 0);
    assert_int_equal(counts()->count_lost, 0);
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

static void test_unexpected_interrupts(void **state)
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

int test_channel(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_every_size_in_every_mode),
        CASE(test_blocks_save_interrupts),
        CASE(test_the_ends_of_the_disk),
        CASE(test_a_slow_drive_is_not_broken),
        CASE(test_a_lost_interrupt_costs_time_only),
        CASE(test_unexpected_interrupts),
        CASE(test_an_alarm_that_comes_early),
    };

    return cmocka_run_group_tests_name("channel", tests, NULL, NULL);
}
