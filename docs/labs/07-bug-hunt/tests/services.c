/*
 * Lab 7: the repaired services. Each test puts a service's cache into debugging
 * modes, uses the service up to the limits of its specification, and expects
 * right results, no report of the allocator, which is a panic, and no allocated
 * object at the end.
 */
#include "docs/labs/07-bug-hunt/services/services.h"
#include "tools/workshop/labs/guard.h"
#include "tools/workshop/labs/lab.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/task/sync.h"
#include "kernel/task/task.h"
#include "mm/debug/debug.h"
#include "mm/inspect/kmem_stat.h"

static void watch(const char *cache, const char *letters)
{
    unsigned modes = 0;
    char bad;

    KT_TRUE(kmem_debug_letters(letters, NULL, &modes, &bad));
    if (kmem_debug_set(kmem_cache_find(cache), modes) != 0)
        KT_FAIL("the cache %s cannot be put into modes %s", cache, letters);
}

/* Fails if an object is allocated. */
static void end(const char *cache, bool closed)
{
    if (!closed)
        KT_FAIL("%s: objects are still allocated when the service closes",
                cache);
}

/* ---- meter -------------------------------------------------------------- */

/* The sum of the last `slots` numbers up to n. */
static uint32_t sum_up_to(uint32_t n, uint32_t slots)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < MIN(n, slots); i++)
        sum += n - i;
    return sum;
}

/* Whether the meter is right after the readings 1 to n. */
static bool is_right(const struct meter *m, uint32_t n, uint32_t slots)
{
    uint32_t want = sum_up_to(n, slots);

    if (meter_sum(m) == want && meter_kept(m) == MIN(n, slots))
        return true;
    KT_FAIL("a meter of %u readings, after 1 to %u: it keeps %u, and their "
            "sum is %u; want %u and %u",
            (unsigned)slots, (unsigned)n, (unsigned)meter_kept(m),
            (unsigned)meter_sum(m), (unsigned)MIN(n, slots), (unsigned)want);
    return false;
}

static void fill_meters(uint32_t slots)
{
    struct meter *full;
    struct meter *other;

    KT_REQUIRE(meters_open(slots));
    watch("meter", "FPZU");
    full = meter_new();
    other = meter_new();
    meter_add(full, 1);
    for (uint32_t n = 1; n <= 4 * slots && is_right(full, n, slots); n++)
        meter_add(full, n + 1);
    KT_EQ(meter_kept(other), 0);
    meter_free(full);
    meter_free(other);
    end("meter", meters_close());
}

LAB_TEST(7, meter, LAB_UP)
{
    fill_meters(4);
    fill_meters(1);
    fill_meters(9);
}

/* ---- bell --------------------------------------------------------------- */

static uint32_t calls;

static void count(struct bell *b)
{
    (void)b;
    calls++;
}

static void count_and_stop(struct bell *b)
{
    calls++;
    bell_stop(b);
}

LAB_TEST(7, bell, LAB_UP)
{
    struct bell *each;
    struct bell *third;

    KT_REQUIRE(bells_open());
    watch("bell", "FPZU");
    calls = 0;
    each = bell_new(1, count);
    bell_new(2, count_and_stop);
    bell_new(2, bell_stop);
    third = bell_new(3, count);
    for (uint32_t hour = 1; hour < BELL_HOURS; hour++)
        bells_ring(hour);
    KT_EQ(calls, 11 + 1 + 3);
    KT_EQ(bells_count(), 2);
    for (uint32_t hour = 1; hour < BELL_HOURS; hour++) {
        KT_EQ(bell_rung(each, hour), 1);
        KT_EQ(bell_rung(third, hour), hour % 3 == 0);
    }
    for (int i = 0; i < 3; i++) /* the allocator checks the free object */
        bell_new(5, count_and_stop);
    bells_ring(5);
    KT_EQ(bells_count(), 2);
    bell_stop(third);
    bell_stop(each);
    end("bell", bells_close());
}

/* ---- parcel ------------------------------------------------------------- */

static void expect_parcel(struct box *b, const char *want)
{
    char text[PARCEL_TEXT] = "nothing";

    if (!box_take(b, text) || strcmp(text, want) != 0)
        KT_FAIL("the oldest parcel should be \"%s\"; it is \"%s\"", want, text);
}

/* A caller other than parcel_send puts a parcel into a full box. The box owns
 * it in this case too. */
static void put_into_full(struct box *b)
{
    struct parcel *p = kmem_cache_alloc(kmem_cache_find("parcel"), KM_SLEEP);

    KT_TRUE(!box_put(b, p));
}

LAB_TEST(7, parcel, LAB_UP)
{
    char text[PARCEL_TEXT];
    struct box small;
    struct box none;

    KT_REQUIRE(parcels_open());
    watch("parcel", "FPZU");
    box_init(&small, 2);
    box_init(&none, 0);
    KT_TRUE(!parcel_send(&none, "lost"));
    KT_TRUE(parcel_send(&small, "first"));
    KT_TRUE(parcel_send(&small, "second"));
    KT_TRUE(!parcel_send(&small, "third"));
    KT_TRUE(!parcel_send(&small, "fourth"));
    put_into_full(&small);
    expect_parcel(&small, "first");
    KT_TRUE(parcel_send(&small, "fifth"));
    expect_parcel(&small, "second");
    expect_parcel(&small, "fifth");
    KT_TRUE(!box_take(&small, text));
    end("parcel", parcels_close());
}

/* ---- words -------------------------------------------------------------- */

static void expect_word(const char *name, const char *want)
{
    const char *got = words_get(name);

    if (got == NULL || strcmp(got, want) != 0)
        KT_FAIL("%s should be \"%s\"; it is \"%s\"", name, want,
                got == NULL ? "nothing" : got);
}

LAB_TEST(7, words, LAB_UP)
{
    static const char *const texts[] = {"red", "carmine", "a", "", "scarlet"};

    KT_REQUIRE(words_open());
    watch("words", "FPZU");
    KT_TRUE(words_set("other", "blue"));
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        KT_TRUE(words_set("colour", texts[i]));
        expect_word("colour", texts[i]);
        expect_word("other", "blue");
    }
    KT_TRUE(words_set("other", "longer than there is room for it"));
    expect_word("other", "longer than there is room f");
    words_remove("colour");
    KT_TRUE(words_get("colour") == NULL);
    KT_TRUE(words_set("colour", "green"));
    expect_word("colour", "green");
    end("words", words_close());
}

/* ---- channel ------------------------------------------------------------ */

/* Whether a channel has all its credit after lane `lane` of it, or of the one
 * before it, was used. */
static bool is_new(const struct channel *c, uint32_t lane, const char *which)
{
    uint32_t credit = channel_credit(c);

    if (credit != CHANNEL_LANES * CHANNEL_CREDIT)
        KT_FAIL("lane %u was used: %s channel has credit %u, want %u",
                (unsigned)lane, which, (unsigned)credit,
                CHANNEL_LANES * CHANNEL_CREDIT);
    return credit == CHANNEL_LANES * CHANNEL_CREDIT;
}

/* Whether the closed channel `c` has the bytes that the constructor has set,
 * `made`: each use relies on all of them. */
static bool is_constructed(const struct channel *c, uint32_t lane,
                           const uint8_t *made, size_t size)
{
    const uint8_t *now = (const uint8_t *)c;

    for (size_t i = 0; i < size; i++)
        if (now[i] != made[i]) {
            KT_FAIL("lane %u was used: byte %zu of the closed channel is "
                    "0x%02x; the constructor has set it to 0x%02x",
                    (unsigned)lane, i, now[i], made[i]);
            return false;
        }
    return true;
}

/* Not in mode P, which fills free objects and constructs them again. Without it
 * a free object keeps its state and can be examined. */
LAB_TEST(7, channel, LAB_UP)
{
    struct kmem_cache_stat stat;
    uint8_t made[256];
    struct channel *c;
    bool good = true;

    KT_REQUIRE(channels_open());
    watch("channel", "FZU");
    kmem_cache_stat(kmem_cache_find("channel"), &stat);
    KT_REQUIRE(stat.stat_size <= sizeof(made));
    c = channel_open();
    memcpy(made, c, stat.stat_size);
    channel_close(c);
    for (uint32_t lane = 0; lane < CHANNEL_LANES && good; lane++) {
        c = channel_open();
        for (uint32_t i = 0; i < CHANNEL_CREDIT; i++)
            KT_TRUE(channel_take(c, lane));
        KT_TRUE(!channel_take(c, lane));
        channel_give(c, lane);
        channel_take(c, 0);
        channel_close(c);
        good = is_new(c, lane, "the closed") &&
               is_constructed(c, lane, made, stat.stat_size);
        c = channel_open();
        good = is_new(c, lane, "the next") && good;
        channel_close(c);
    }
    end("channel", channels_close());
}

/* ---- seats -------------------------------------------------------------- */

#define VISITORS 5

static void visitor(void *arg)
{
    int *seat = arg;

    *seat = seat_book("visitor");
}

/* Whether the owner of a seat is NULL or a text. */
static bool has_owner_or_none(int seat)
{
    const char *owner = seat_owner(seat);

    if (owner == NULL || (uintptr_t)owner >= KERNEL_BASE)
        return true;
    KT_FAIL("while tickets are printed, the owner of seat %d is at %p: that "
            "is neither a text nor NULL",
            seat, (const void *)owner);
    return false;
}

/* Looks at the hall while others wait for the printer. */
static void look(void *arg)
{
    bool good = true;

    (void)arg;
    for (int turn = 0; turn < 2 * VISITORS && good; turn++) {
        for (int seat = 0; seat < SEATS && good; seat++)
            good = has_owner_or_none(seat);
        sched_yield();
    }
}

static void start(const char *name, void (*run)(void *), void *arg)
{
    KT_TRUE(task_create(name, run, arg, PRIORITY_KERNEL) != NULL);
}

/* Several tasks at once; each must get its own seat, as long as there are
 * some. */
static void visit(int seats)
{
    int seat[VISITORS];
    int status, sold = 0;

    for (int i = 0; i < VISITORS; i++) {
        seat[i] = -1;
        start("visitor", visitor, &seat[i]);
    }
    start("looker", look, NULL);
    while (task_wait(-1, &status, 0) > 0)
        ;
    for (int i = 0; i < VISITORS; i++) {
        KT_REQUIRE(seat[i] >= -1 && seat[i] < SEATS);
        if (seat[i] < 0)
            continue;
        sold++;
        KT_TRUE(seat_owner(seat[i]) != NULL);
        for (int j = 0; j < i; j++)
            if (seat[i] == seat[j])
                KT_FAIL("visitors %d and %d were both sold seat %d", j, i,
                        seat[i]);
    }
    if (sold != MIN(seats, VISITORS))
        KT_FAIL("%d visitors at once, and %d free seats: %d were sold",
                VISITORS, seats, sold);
}

/* Each ticket belongs to a seat. */
static void expect_tickets(size_t sold)
{
    struct kmem_cache_stat stat;

    kmem_cache_stat(kmem_cache_find("seats"), &stat);
    if (stat.stat_inuse != sold)
        KT_FAIL("%zu seats are sold, and there are %zu tickets", sold,
                stat.stat_inuse);
}

#define WATCHED 4 /* seats */

/* The service's hall_mutex and hall. */
static const struct mutex *of_hall;
static void *const *seat_of;
static bool taken[WATCHED];

/* A free seat is taken with the mutex, or with interrupts disabled. The task
 * that has reserved it so may write it again without. */
static bool hall_held(const struct trapframe *tf)
{
    bool was_free = false;

    for (size_t i = 0; i < WATCHED; i++) {
        was_free |= !taken[i] && seat_of[i] != NULL;
        taken[i] = seat_of[i] != NULL;
    }
    return !was_free || of_hall->mutex_owner == task_self() ||
           lab_spin_held(tf);
}

/* If the service still has the hall and its mutex. */
static void guard_hall(void)
{
    static const char *const names[WATCHED] = {"hall[0]", "hall[1]", "hall[2]",
                                               "hall[3]"};

    seat_of = (void *const *)symbol_address("hall");
    of_hall = (const struct mutex *)symbol_address("hall_mutex");
    if (seat_of == NULL || of_hall == NULL)
        return;
    for (size_t i = 0; i < WATCHED; i++)
        lab_guard(names[i], &seat_of[i], hall_held);
}

LAB_TEST(7, seats, LAB_UP)
{
    KT_REQUIRE(seats_open());
    watch("seats", "FPZU");
    guard_hall();
    KT_EQ(seat_book("guest"), 0);
    visit(SEATS - 1);
    for (int seat = VISITORS + 1; seat < SEATS; seat++)
        KT_EQ(seat_book("guest"), seat);
    KT_EQ(seat_book("nobody"), -1);
    KT_EQ(seat_book("nobody"), -1);
    seat_return(3);
    KT_TRUE(seat_owner(3) == NULL);
    KT_EQ(seat_book("late"), 3);
    KT_TRUE(seat_owner(3) != NULL && strcmp(seat_owner(3), "late") == 0);
    expect_tickets(SEATS);
    seat_return(5);
    visit(1);
    expect_tickets(SEATS);
    for (int seat = 0; seat < SEATS; seat++)
        if (seat_owner(seat) != NULL)
            seat_return(seat);
    end("seats", seats_close());
}

/* ---- all ---------------------------------------------------------------- */

/* Twice, with kmem.debug=FPZU. */
LAB_TEST(7, all, LAB_UP)
{
    for (size_t i = 0; i < 2 * services_count; i++) {
        const struct service *s = &services[i % services_count];

        if (!workday(s))
            KT_FAIL("a result of the day's work of %s was wrong",
                    s->service_name);
    }
}
