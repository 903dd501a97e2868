/*
 * A day of work for each service, and the expected results. The amount of work
 * and its order follow from the seed of the hand-out.
 */
#include "docs/labs/07-bug-hunt/services/services.h"
#include "drivers/console.h"
#include "tools/workshop/labs/seed.h"
#include "kernel/lib/string.h"
#include "kernel/task/task.h"

enum purpose {
    SLOTS,
    HOUR,
    ROOM,
    NAME,
    LANE,
    SOLD
};

/* Neither inlined nor removed, because debuggers stop here. */
__attribute__((noinline)) void workday_step(void)
{
    __asm__ volatile("" : : : "memory");
}

static bool expect(const char *what, uint32_t got, uint32_t want)
{
    if (got != want)
        kprintf("services: %s: %u, expected %u\n", what, (unsigned)got,
                (unsigned)want);
    return got == want;
}

static bool no_memory(void)
{
    kprintf("services: no memory for the service's cache\n");
    return false;
}

/* Prints a message if a service cannot close. */
static bool ends(bool closed)
{
    if (!closed)
        kprintf("services: the service cannot close: objects are still "
                "allocated\n");
    return closed;
}

/* ---- meter -------------------------------------------------------------- */

/* Two meters, of which one gets more readings than it keeps. */
static bool meter_day(void)
{
    uint32_t slots = 5 + 2 * lab_pick(SLOTS, 9);
    uint32_t sum = 0;
    struct meter *full;
    struct meter *idle;
    bool good;

    if (!meters_open(slots))
        return no_memory();
    full = meter_new();
    idle = meter_new();
    for (uint32_t i = 1; i <= 2 * slots; i++) {
        workday_step();
        meter_add(full, i);
        sum += i > slots ? i : 0;
    }
    good = expect("sum of the readings", meter_sum(full), sum);
    good &= expect("readings of a meter not used", meter_kept(idle), 0);
    meter_free(idle);
    meter_free(full);
    return ends(meters_close()) && good;
}

/* ---- bell --------------------------------------------------------------- */

static uint32_t calls;

static void count_call(struct bell *b)
{
    (void)b;
    calls++;
}

/* One bell rings each hour, one rings once, and one is made later. */
static bool bell_day(void)
{
    uint32_t hour = 2 + lab_pick(HOUR, BELL_HOURS - 2);
    struct bell *each;
    struct bell *late;
    bool good;

    if (!bells_open())
        return no_memory();
    calls = 0;
    each = bell_new(1, count_call);
    bell_new(hour, bell_stop);
    for (uint32_t h = 1; h < BELL_HOURS; h++) {
        workday_step();
        bells_ring(h);
    }
    late = bell_new(BELL_HOURS, count_call);
    good = expect("bells called", calls, BELL_HOURS - 1);
    good &= expect("rung in the last hour", bell_rung(each, BELL_HOURS - 1), 1);
    good &= expect("remaining bells", bells_count(), 2);
    bell_stop(late);
    bell_stop(each);
    return ends(bells_close()) && good;
}

/* ---- parcel ------------------------------------------------------------- */

/* One parcel more than there is room for. */
static bool parcel_day(void)
{
    uint32_t room = 4 + lab_pick(ROOM, 14);
    uint32_t sent = 0, taken = 0;
    char text[PARCEL_TEXT];
    struct box box;
    bool good;

    if (!parcels_open())
        return no_memory();
    box_init(&box, room);
    for (uint32_t i = 0; i <= room; i++) {
        workday_step();
        sent += parcel_send(&box, "a book");
    }
    while (box_take(&box, text)) {
        workday_step();
        taken += strcmp(text, "a book") == 0;
    }
    good = expect("parcels sent", sent, room);
    good &= expect("parcels taken", taken, room);
    return ends(parcels_close()) && good;
}

/* ---- words -------------------------------------------------------------- */

static const char *const towns[] = {"Bath", "Cork",  "Dover", "Ely",
                                    "Hull", "Leeds", "Luton", "Poole",
                                    "Ross", "Truro", "Wells", "York"};

/* Every town gets a text, and two get another one. */
static bool words_day(void)
{
    const char *again = towns[1 + lab_pick(NAME, ARRAY_SIZE(towns) - 1)];
    bool good = true;

    if (!words_open())
        return no_memory();
    for (size_t i = 0; i < ARRAY_SIZE(towns); i++) {
        workday_step();
        good &= words_set(towns[i], "a town");
    }
    workday_step();
    words_set(towns[0], "hot");
    workday_step();
    words_set(again, "a rather large town");
    workday_step();
    good &= strcmp(words_get(again), "a rather large town") == 0 &&
            strcmp(words_get(towns[0]), "hot") == 0;
    expect("correct texts", good, true);
    return ends(words_close()) && good;
}

/* ---- channel ------------------------------------------------------------ */

/* A channel is used and closed; the next one must have all its credit. */
static bool channel_day(void)
{
    uint32_t lanes = 2 + lab_pick(LANE, CHANNEL_LANES - 2);
    struct channel *c;
    bool good;

    if (!channels_open())
        return no_memory();
    c = channel_open();
    for (uint32_t lane = 0; lane < lanes; lane++) {
        workday_step();
        channel_take(c, lane);
    }
    channel_give(c, 0);
    channel_close(c);
    workday_step();
    c = channel_open();
    good = expect("credit of a new channel", channel_credit(c),
                  CHANNEL_LANES * CHANNEL_CREDIT);
    channel_close(c);
    return ends(channels_close()) && good;
}

/* ---- seats -------------------------------------------------------------- */

static void visitor(void *arg)
{
    int *seat = arg;

    *seat = seat_book("visitor");
    workday_step();
}

/* Some seats are sold; then two tasks buy at once. */
static bool seats_day(void)
{
    uint32_t sold = 1 + lab_pick(SOLD, SEATS - 2);
    int seat[2] = {-1, -1};
    int status, tasks = 0;
    bool good;

    if (!seats_open())
        return no_memory();
    for (uint32_t i = 0; i < sold; i++) {
        workday_step();
        seat_book("guest");
    }
    for (int i = 0; i < 2; i++)
        tasks +=
            task_create("visitor", visitor, &seat[i], PRIORITY_KERNEL) != NULL;
    while (tasks-- > 0)
        task_wait(-1, &status, 0);
    good = expect("seats of two visitors", (seat[0] >= 0) + (seat[1] >= 0), 2);
    good &= expect("seats sold twice", seat[0] == seat[1], 0);
    for (int i = 0; i < SEATS; i++)
        if (seat_owner(i) != NULL)
            seat_return(i);
    return ends(seats_close()) && good;
}

/* ---- all ---------------------------------------------------------------- */

const struct service services[] = {
    {"meter", "the last readings of a gauge", meter_day},
    {"bell", "bells that call a function at their hour", bell_day},
    {"parcel", "boxes in which parcels wait", parcel_day},
    {"words", "texts by name", words_day},
    {"channel", "lanes with credit", channel_day},
    {"seats", "a hall whose seats are sold", seats_day},
};

const size_t services_count = ARRAY_SIZE(services);
