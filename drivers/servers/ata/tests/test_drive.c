/*
 * Drives' descriptions of themselves, and absent drives
 * (drivers/servers/ata/drive.c).
 */
#include "drivers/servers/ata/tests/ata_test.h"

static void test_info_returns_the_size(void **state)
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
    sim->sim_bad_lba = 0x0abcdef1; /* it reads no further words */
    assert_int_equal(ask(ATA_OP_READ, 0x0abcdef1, 1), EIO);
    assert_int_equal(counts()->count_errors, ATA_TRIES);
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
    sim_break(sim, SIM_ERR, 1, 2); /* its refusal is not a failure */
    assert_int_equal(ask(ATA_OP_READ, 0, 1), 0);
}

/* ---- absent drives ------------------------------------------------------ */

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

static void test_a_damaged_identity_is_read_again(void **state)
{
    (void)state;
    sim->sim_drive[0].sd_garbled = true;
    works();
    assert_int_equal(counts()->count_protocol, 1);
    assert_int_equal(counts()->count_resets, 2);
}

static void test_another_drive_is_recognized(void **state)
{
    (void)state;
    works();
    sim->sim_drive[0].sd_serial = 'Z';
    works(); /* no request meanwhile */
    sim_break(sim, SIM_HANGS, 0, 1);
    fill(8, 9);
    assert_int_equal(ask(ATA_OP_WRITE, 50, 8), ENODEV);
    assert_false(on_disk(0, 50, 8));
    assert_int_equal(ask(ATA_OP_READ, 50, 8), ENODEV);
    assert_int_equal(ask(ATA_OP_INFO, 0, 0), 0);
    works();
}

int test_drive(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_info_returns_the_size),
        CASE(test_two_drives),
        CASE(test_lba_has_28_bits),
        CASE(test_an_absent_slave),
        CASE(test_an_empty_channel),
        CASE(test_not_a_disk),
        CASE(test_a_damaged_identity_is_read_again),
        CASE(test_another_drive_is_recognized),
        CASE(test_a_drive_without_multiple_mode),
    };

    return cmocka_run_group_tests_name("drive", tests, NULL, NULL);
}
