/*
 * A day of work for each service, and the expected results. A day is a sequence
 * of requests. What each is about is drawn, by the seed of the hand-out, so the
 * state that a request finds (the parcels in the box, the credit of a lane)
 * exists only while the day runs.
 */
#include "docs/labs/07-bug-hunt/services/services.h"
#include "drivers/console.h"
#include "tools/workshop/labs/seed.h"
#include "kernel/lib/string.h"
#include "kernel/task/task.h"

uint32_t workday_request;

static uint32_t service_number; /* its days differ from those of the others */

/* Neither inlined nor removed, because debuggers stop here. */
__attribute__((noinline)) void workday_step(void)
{
    __asm__ volatile("" : : : "memory");
}

/* A number below `n` that follows from the seed, the service and the request,
 * and not from addresses or time: the day is the same in every run. */
static uint32_t draw(uint32_t n)
{
    return lab_pick(service_number << 16 | workday_request, n);
}

/* Begins the next request. */
static void request(void)
{
    workday_step();
    workday_request++;
}

static uint32_t draw_request(uint32_t n)
{
    request();
    return draw(n);
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

/* Two meters, of which one gets more readings than it keeps, while others ask
 * how many it has. */
static bool meter_day(void)
{
    uint32_t slots = 5 + 2 * draw(9);
    uint32_t readings = 0, sum = 0;
    struct meter *full;
    struct meter *idle;
    bool good = true;

    if (!meters_open(slots))
        return no_memory();
    full = meter_new();
    idle = meter_new();
    while (readings < 2 * slots)
        if (draw_request(2) == 0) {
            meter_add(full, ++readings);
            sum += readings > slots ? readings : 0;
        } else {
            good &= expect("readings of the meter", meter_kept(full),
                           MIN(readings, slots));
        }
    good &= expect("sum of the readings", meter_sum(full), sum);
    good &= expect("readings of a meter not used", meter_kept(idle), 0);
    request();
    meter_free(idle);
    request();
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

/* One bell rings each hour, one rings once, and one is made later. Meanwhile
 * others ask at which hours the first has rung. */
static bool bell_day(void)
{
    uint32_t once = 2 + draw(BELL_HOURS - 2);
    uint32_t hour = 1;
    struct bell *each;
    struct bell *late;
    bool good = true;

    if (!bells_open())
        return no_memory();
    calls = 0;
    each = bell_new(1, count_call);
    bell_new(once, bell_stop);
    while (hour < BELL_HOURS) {
        uint32_t asked = draw_request(2 * BELL_HOURS);

        if (asked < BELL_HOURS)
            good &= expect("rung in an hour", bell_rung(each, asked),
                           asked > 0 && asked < hour);
        else
            bells_ring(hour++);
    }
    request();
    late = bell_new(BELL_HOURS, count_call);
    good &= expect("bells called", calls, BELL_HOURS - 1);
    good &= expect("remaining bells", bells_count(), 2);
    bell_stop(late);
    bell_stop(each);
    return ends(bells_close()) && good;
}

/* ---- parcel ------------------------------------------------------------- */

/* Takes a parcel out. Whether it is the one that was sent. */
static bool take_book(struct box *b)
{
    char text[PARCEL_TEXT];

    return box_take(b, text) && strcmp(text, "a book") == 0;
}

/* More parcels are sent than taken, until there is no room for one. */
static bool parcel_day(void)
{
    uint32_t room = 4 + draw(14);
    uint32_t sent = 0, taken = 0;
    bool refused = false;
    struct box box;
    bool good;

    if (!parcels_open())
        return no_memory();
    box_init(&box, room);
    while (!refused)
        if (draw_request(3) == 0)
            taken += take_book(&box);
        else if (parcel_send(&box, "a book"))
            sent++;
        else
            refused = true;
    good = expect("parcels in the box", sent - taken, room);
    for (uint32_t left = room; left > 0; left--) {
        request();
        taken += take_book(&box);
    }
    good &= expect("parcels taken", taken, sent);
    return ends(parcels_close()) && good;
}

/* ---- words -------------------------------------------------------------- */

static const char *const towns[] = {"Bath", "Cork",  "Dover", "Ely",
                                    "Hull", "Leeds", "Luton", "Poole",
                                    "Ross", "Truro", "Wells", "York"};

/* Towns get texts, and shorter ones after that, until each has one. The last
 * one gets a longer text. */
static bool words_day(void)
{
    size_t named = 0;
    const char *town;
    bool good = true;

    if (!words_open())
        return no_memory();
    while (named < ARRAY_SIZE(towns)) {
        const char *text = "hot";

        town = towns[draw_request(ARRAY_SIZE(towns))];
        if (words_get(town) == NULL) {
            text = "a town";
            named++;
        }
        good &= words_set(town, text) && strcmp(words_get(town), text) == 0;
    }
    request();
    words_set(town, "a rather large town");
    for (size_t i = 0; i < ARRAY_SIZE(towns); i++) {
        request();
        good &= (strlen(words_get(towns[i])) > strlen("a town")) ==
                (towns[i] == town);
    }
    expect("correct texts", good, true);
    return ends(words_close()) && good;
}

/* ---- channel ------------------------------------------------------------ */

/* A channel is used until a lane has no credit, and closed; the next one must
 * have all its credit. */
static bool channel_day(void)
{
    struct channel *c;
    uint32_t lane;
    bool good;

    if (!channels_open())
        return no_memory();
    c = channel_open();
    do
        lane = draw_request(CHANNEL_LANES);
    while (channel_take(c, lane));
    request();
    channel_give(c, lane);
    request();
    channel_close(c);
    request();
    c = channel_open();
    good = expect("credit of a new channel", channel_credit(c),
                  CHANNEL_LANES * CHANNEL_CREDIT);
    channel_close(c);
    return ends(channels_close()) && good;
}

/* ---- seats -------------------------------------------------------------- */

/* When this request ends, the other visitor's may not have: there is a step
 * between. */
static void visitor(void *arg)
{
    int *seat = arg;

    request();
    *seat = seat_book("visitor");
    workday_step();
}

/* Some seats are sold while others ask who has them; then two tasks buy at
 * once. */
static bool seats_day(void)
{
    uint32_t guests = 6 + draw(SEATS - 7);
    uint32_t sold = 0;
    int seat[2] = {-1, -1};
    int status, tasks = 0;
    bool good = true;

    if (!seats_open())
        return no_memory();
    while (sold < guests) {
        uint32_t asked = draw_request(2 * SEATS);

        if (asked < SEATS)
            good &= expect("owners of a seat", seat_owner(asked) != NULL,
                           asked < sold);
        else
            good &= expect("seat sold", seat_book("guest"), sold++);
    }
    for (int i = 0; i < 2; i++)
        tasks +=
            task_create("visitor", visitor, &seat[i], PRIORITY_KERNEL) != NULL;
    while (tasks-- > 0)
        task_wait(-1, &status, 0);
    good &= expect("seats of two visitors", (seat[0] >= 0) + (seat[1] >= 0), 2);
    good &= expect("seats sold twice", seat[0] == seat[1], 0);
    for (int i = 0; i < SEATS; i++)
        if (seat_owner(i) != NULL) {
            request();
            seat_return(i);
        }
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

bool workday(const struct service *s)
{
    workday_request = 0;
    service_number = s - services;
    return s->service_day();
}
