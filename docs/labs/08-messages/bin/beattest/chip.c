/*
 * Tests of chip.c. They need a grant, so they run in a server, which is this
 * program executed again.
 *
 * The rate of interrupts of QEMU's chip depends on the machine's load: an idle
 * counted machine receives about every second beat. So the limits are wide;
 * within them nothing depends on the host.
 */
#include "user/lib/err.h"
#include "user/lib/io.h"
#include "user/lib/stdlib.h"
#include "docs/labs/08-messages/bin/beattest/beattest.h"

#define MEASURE_MS 300u
#define EXPECTED   (BEAT_HZ * MEASURE_MS / 1000)
#define UPDATE_MS  1100u /* the clock is updated once a second */

enum {
    CHIP_START = 1,
    CHIP_STOP,
    CHIP_BEATS,  /* reply: number of notifications that were beats */
    CHIP_OTHERS, /* number of those that were not */
    CHIP_STEAL,  /* clears the cause of the next interrupt */
};

enum {
    PORT_INDEX = 0x70,
    PORT_DATA = 0x71,
    REG_C = 12,
};

/* ---- the program with the chip ------------------------------------------ */

static uint32_t beats;
static uint32_t others;
static bool steal;

/* Register C can be read between an interrupt and its message: chip_start does
 * so. Then the chip no longer has a cause, and the line is masked. */
static void clear_cause(void)
{
    outb(PORT_INDEX, REG_C);
    inb(PORT_DATA);
    steal = false;
}

static void chip_notified(uint32_t bits)
{
    (void)bits;
    if (steal)
        clear_cause();
    if (chip_beat())
        beats++;
    else
        others++;
}

static bool chip_request(struct message *m)
{
    uint32_t label = m->msg_tag;

    if (label == CHIP_START)
        chip_start();
    if (label == CHIP_STOP)
        chip_stop();
    steal |= label == CHIP_STEAL;
    *m = (struct message){.msg_word = {label == CHIP_OTHERS ? others : beats}};
    return true;
}

void chip_server(void)
{
    int port = port_create();

    if (port < 0 || chip_open(port) != 0)
        err(1, "chip");
    if (name_register(PART, port) < 0)
        err(1, PART);
    receive(port, chip_request, chip_notified);
}

static void become_server(void)
{
    static char *argv[] = {"/bin/beattest", "server", NULL};

    if (grant_take("beattest") == 0)
        execv(argv[0], argv);
    err(1, "beattest (`run -p beattest chip`)");
}

/* ---- from outside ------------------------------------------------------- */

static int beats_within(uint32_t ms)
{
    int before = part_ask(CHIP_BEATS, 0);

    sleep_ms(ms);
    return part_ask(CHIP_BEATS, 0) - before;
}

static bool beats_well(void)
{
    int n = beats_within(MEASURE_MS);

    return n >= (int)EXPECTED / 3 && n <= (int)EXPECTED + 3;
}

void beat_chip(void)
{
    int port = part_begin(become_server);

    check(beats_within(50) == 0 && part_ask(CHIP_OTHERS, 0) == 0,
          "before chip_start there is no beat");
    part_ask(CHIP_START, 0);
    check(beats_well(), "after chip_start the rate of beats is right");
    part_ask(CHIP_STOP, 0);
    check(beats_within(50) == 0, "after chip_stop there is no beat");
    sleep_ms(UPDATE_MS); /* register C notes it, as other causes */
    notify(port, 1);
    check(beats_within(20) == 0 && part_ask(CHIP_OTHERS, 0) == 1,
          "a notification without an interrupt is not a beat");
    part_ask(CHIP_START, 0);
    check(beats_within(100) >= 3, "it can be started again");
    part_ask(CHIP_STEAL, 0);
    check(beats_within(100) >= 3 && part_ask(CHIP_OTHERS, 0) == 2,
          "an interrupt that is not a beat is acknowledged, too");
    part_end();
    part_begin(become_server);
    check(beats_within(50) == 0 && part_ask(CHIP_OTHERS, 0) == 0,
          "chip_open of a successor stops the beats");
    part_ask(CHIP_START, 0);
    check(beats_within(100) >= 3, "and the successor can start them");
    part_end();
}
