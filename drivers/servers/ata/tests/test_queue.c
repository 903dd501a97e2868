/*
 * Several requests at a time (drivers/servers/ata/queue.c).
 */
#include "drivers/servers/ata/tests/ata_test.h"

#define MANY 200

static struct ata_request many[MANY];
static uint32_t order[MANY];
static uint32_t done;

static void remember(void *self, struct ata_request *r, int error)
{
    (void)self;
    assert_int_equal(error, 0);
    assert_true(done < MANY);
    order[done++] = (uint32_t)(r - many);
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
    assert_int_equal(done, n);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(order[i], expected[i]);
}

static void listen(void)
{
    done = 0;
    sim->sim_io.io_done = remember;
}

/* An alarm that is set for a time-out does not delay earlier ones. */
static void test_nothing_waits_for_a_time_out(void **state)
{
    uint32_t start;

    (void)state;
    works();
    listen();
    start = sim->sim_time;
    for (uint32_t i = 0; i < 4; i++)
        submit(i, ATA_OP_WRITE, 10 * i);
    while (done < 4)
        assert_true(sim_step_once(sim));
    assert_true(sim->sim_time - start < 40);
}

static void test_the_elevator(void **state)
{
    static const uint32_t expected[] = {0, 4, 1, 3, 5, 2};

    (void)state;
    works();
    listen();
    submit(0, ATA_OP_READ, 500); /* starts at once */
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
static void test_no_request_waits_for_ever(void **state)
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
        uint32_t seen = done;

        while (done == seen)
            assert_true(sim_step_once(sim));
        submit(next, ATA_OP_READ, 500 + 2 * next);
        next++;
    }
    assert_true(sim_run(sim));
    assert_int_equal(done, MANY);
    while (order[place] != 2)
        place++;
    assert_in_range(place, 3, ATA_PATIENCE + 1);
}

static void test_many_at_once_with_faults(void **state)
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
    assert_int_equal(done, MANY);
}

int test_queue(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_nothing_waits_for_a_time_out),
        CASE(test_the_elevator),
        CASE(test_a_flush_is_next),
        CASE(test_no_request_waits_for_ever),
        CASE(test_many_at_once_with_faults),
    };

    return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
