/*
 * Tests of the driver rtc. The test sets the clock through its ports.
 */
#include "user/lib/rtc.h"
#include "user/lib/err.h"
#include "user/lib/io.h"
#include "user/lib/string.h"
#include "user/lib/tsc.h"
#include "user/tests/devtest/devtest.h"

enum {
    REG_HOUR = 4,
    REG_DAY = 7,
    REG_MONTH = 8,
    REG_YEAR = 9,
    REG_B = 11,
    REG_CENTURY = 50, /* ignored by rtc, but not by the clock */
    B_24_HOURS = 0x02,
    B_BINARY = 0x04,
    B_SET = 0x80, /* stops the clock */
    HOUR_PM = 0x80,
};

static void put(uint8_t reg, uint8_t value)
{
    outb(0x70, reg);
    outb(0x71, value);
}

/* ---- formats ------------------------------------------------------------ */

static uint8_t coded(unsigned value, uint8_t format)
{
    return (uint8_t)(format & B_BINARY ? value : value / 10 << 4 | value % 10);
}

/* Sets the clock, and its format. */
static void set(const struct rtc_time *t, uint8_t format)
{
    unsigned hour = t->rtc_hour;
    uint8_t pm = 0;

    if (!(format & B_24_HOURS)) {
        pm = hour >= 12 ? HOUR_PM : 0;
        hour = hour % 12 == 0 ? 12 : hour % 12;
    }
    put(REG_B, format | B_SET);
    put(0, coded(t->rtc_second, format));
    put(2, coded(t->rtc_minute, format));
    put(REG_HOUR, coded(hour, format) | pm);
    put(REG_DAY, coded(t->rtc_day, format));
    put(REG_MONTH, coded(t->rtc_month, format));
    put(REG_YEAR, coded(t->rtc_year % 100, format));
    put(REG_CENTURY, coded(t->rtc_year / 100, format));
    put(REG_B, format);
}

static bool agrees(const struct rtc_time *want)
{
    struct rtc_time t;

    return rtc_time(&t) == 0 && memcmp(&t, want, sizeof(t)) == 0;
}

static void formats(void)
{
    static const unsigned hours[] = {0, 1, 11, 12, 13, 23};
    static const unsigned years[] = {1980, 1999, 2000, 2026, 2079};
    bool good = true;

    for (uint8_t format = 0; format <= 6; format += 2) {
        struct rtc_time t = {2018, 12, 31, 0, 59, 38};

        for (size_t i = 0; i < ARRAY_SIZE(hours); i++) {
            t.rtc_hour = hours[i];
            set(&t, format);
            good = good && agrees(&t);
        }
        for (size_t i = 0; i < ARRAY_SIZE(years); i++) {
            t.rtc_year = years[i];
            set(&t, format);
            good = good && agrees(&t);
        }
    }
    check(good, "decimal and binary, 12 and 24 hours");
}

static void nonsense(void)
{
    const struct rtc_time good = {2018, 2, 3, 4, 5, 6};
    struct rtc_time t;

    put(REG_B, B_24_HOURS | B_BINARY | B_SET);
    put(REG_MONTH, 13);
    check(rtc_time(&t) == -1 && errno == EIO, "a month of 13 is an error");
    put(REG_MONTH, 0);
    check(rtc_time(&t) == -1 && errno == EIO, "and so is one of 0");
    set(&good, B_24_HOURS);
    check(agrees(&good), "after the clock is set it is valid again");
}

/* ---- the start of a second ---------------------------------------------- */

/* The year ends with the second that has just begun. Reads from shortly before
 * until it has ended, starting at different instructions: each reading must be
 * one time or the other. */
static bool year_ends(uint64_t second, unsigned skew)
{
    const struct rtc_time before = {2019, 12, 31, 23, 59, 59};
    const struct rtc_time after = {2020, 1, 1, 0, 0, 0};
    uint64_t start_tsc = tsc_read();
    struct rtc_time t = {0};

    set(&before, B_24_HOURS);
    sleep_ms(980);
    while (tsc_read() - start_tsc < second - second / 2500)
        continue;
    for (volatile unsigned i = 0; i < skew; i++)
        continue;
    do {
        if (rtc_time(&t) < 0)
            return false;
    } while (memcmp(&t, &before, sizeof(t)) == 0);
    return memcmp(&t, &after, sizeof(t)) == 0;
}

static void years_end(void)
{
    struct rtc_time t;
    bool good = rtc_wait(&t) == 0;
    uint64_t start_tsc = tsc_read();
    uint64_t second;

    good = good && rtc_wait(&t) == 0;
    second = tsc_read() - start_tsc;
    for (unsigned skew = 0; skew < 24; skew++) {
        good = good && year_ends(second, skew * 12);
        rtc_wait(&t);
    }
    check(good, "no time read is a mixture of two years");
}

static void seconds(void)
{
    struct rtc_time first, t;
    bool good = rtc_wait(&first) == 0;
    uint32_t start_ms = uptime_ms();

    for (unsigned i = 1; i <= 3; i++) {
        uint32_t now;

        good = good && rtc_wait(&t) == 0 &&
               t.rtc_second == (first.rtc_second + i) % 60;
        now = uptime_ms() - start_ms;
        good = good && now >= i * 1000 - 10 && now <= i * 1000 + 10;
    }
    check(good, "each wait ends when the next second begins");
    good = sleep_ms(1500) == 0 && rtc_time(&first) == 0 && rtc_wait(&t) == 0;
    check(good && t.rtc_second == (first.rtc_second + 1) % 60,
          "also if no client waited for the second before");
}

/* ---- waiting clients ---------------------------------------------------- */

static int wait_one(void)
{
    struct rtc_time t;

    return rtc_wait(&t) < 0 ? -1 : 100 + (int)t.rtc_second;
}

static void waiters(void)
{
    struct rtc_time t;
    pid_t pid[2];
    int second;

    rtc_wait(&t);
    second = 100 + (int)(t.rtc_second + 1) % 60;
    pid[0] = begin(wait_one);
    pid[1] = begin(wait_one);
    check(ended(pid[0]) == second && ended(pid[1]) == second,
          "two clients wait for the same second");
    pid[0] = begin(wait_one);
    pid[1] = begin(wait_one);
    kill(pid[0], SIGKILL);
    check(ended(pid[0]) == -SIGKILL && ended(pid[1]) == second + 1,
          "one of two is killed meanwhile");
}

static void tricks(void)
{
    int port = name_lookup("rtc");
    struct rtc_time t;
    bool good = rtc_wait(&t) == 0;
    int second = 100 + (int)(t.rtc_second + 1) % 60;
    pid_t pid = begin(wait_one);

    for (unsigned i = 1; i < 4; i++)
        good = good && notify(port, i) == 0 && sleep_ms(20) == 0 &&
               waitpid(pid, NULL, WNOHANG) == 0;
    check(good, "a notification without an interrupt wakes no client");
    check(ended(pid) == second, "the interrupt does");
    close(port);
}

static void requests(void)
{
    static char bytes[] = "x";
    struct ipc_buffer b = {.ipc_send = bytes, .ipc_send_size = 1};
    int port = name_lookup("rtc");
    struct rtc_time t;

    check(request(port, 0, 0, NULL) == -EINVAL &&
              request(port, 3, 0, NULL) == -EINVAL &&
              request(port, 0xffff, 0, NULL) == -EINVAL &&
              request(port, RTC_TIME | 0x80000000u, 0, NULL) == -EINVAL,
          "unknown requests are refused");
    check(request(port, RTC_TIME | IPC_DATA, 0, &b) == -EMSGSIZE,
          "bytes are refused");
    check(rtc_time(&t) == 0, "after all that the driver works");
    close(port);
}

void test_rtc_end(void)
{
    struct rtc_time t;
    pid_t pid[2] = {begin(wait_one), begin(wait_one)};

    end_task("rtc");
    check(ended(pid[0]) == EPIPE && ended(pid[1]) == EPIPE,
          "clients of a driver that is killed get EPIPE");
    check(rtc_time(&t) == -1 && errno == ENOENT, "its name is gone");
}

void test_rtc(void)
{
    struct rtc_time t;

    if (rtc_time(&t) < 0)
        err(1, "rtc");
    formats();
    nonsense();
    years_end();
    seconds();
    waiters();
    tricks();
    requests();
}
