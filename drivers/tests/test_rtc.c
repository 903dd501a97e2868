/*
 * The clock's registers (drivers/rtc.c).
 */
#include "drivers/rtc.h"
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/string.h"

/* The last two seconds of 2023, in registers whose digits are `x` ## digits. */
#define SAMPLE(x, format)                                                      \
    {                                                                          \
        .raw_second = x##58, .raw_minute = x##59, .raw_hour = x##23,           \
        .raw_day = x##31, .raw_month = x##12, .raw_year = x##23,               \
        .raw_century = x##20, .raw_format = format,                            \
    }

/* As most machines have it: BCD, 24 hours; and binary, 12 hours, but for the
 * hour. */
static const struct rtc_raw sample = SAMPLE(0x, RTC_FORMAT_24H);
static const struct rtc_raw binary = SAMPLE(, RTC_FORMAT_BINARY);

static void expect(const struct rtc_raw *raw, unsigned year, unsigned hour)
{
    struct rtc_time t;

    KT_REQUIRE(rtc_convert(raw, &t));
    KT_EQ(t.rtc_year, year);
    KT_EQ(t.rtc_month, 12);
    KT_EQ(t.rtc_day, 31);
    KT_EQ(t.rtc_hour, hour);
    KT_EQ(t.rtc_minute, 59);
    KT_EQ(t.rtc_second, 58);
}

KTEST(rtc, decimal_24_hours)
{
    expect(&sample, 2023, 23);
}

KTEST(rtc, binary_24_hours)
{
    struct rtc_raw raw = binary;

    raw.raw_format |= RTC_FORMAT_24H;
    expect(&raw, 2023, 23);
}

KTEST(rtc, twelve_hours)
{
    struct rtc_raw raw = sample;

    raw.raw_format = 0;
    for (unsigned hour = 0; hour < 24; hour++) {
        unsigned shown = hour % 12 ? hour % 12 : 12;

        raw.raw_hour = (uint8_t)(shown / 10 << 4 | shown % 10);
        raw.raw_hour |= hour >= 12 ? RTC_HOUR_PM : 0;
        expect(&raw, 2023, hour);
    }
    raw = binary;
    raw.raw_hour = RTC_HOUR_PM | 11;
    expect(&raw, 2023, 23);
}

KTEST(rtc, century)
{
    struct rtc_raw raw = sample;

    raw.raw_century = 0x19;
    raw.raw_year = 0x99;
    expect(&raw, 1999, 23);
    raw.raw_century = 0x21;
    expect(&raw, 2199, 23);
    raw.raw_century = 0; /* none: 1980 … 2079 */
    expect(&raw, 1999, 23);
    raw.raw_century = 0xFF;
    raw.raw_year = 0x79;
    expect(&raw, 2079, 23);
}

static void refuse(unsigned offset, uint8_t value, int line)
{
    struct rtc_raw raw = sample;
    struct rtc_time t;

    ((uint8_t *)&raw)[offset] = value;
    if (rtc_convert(&raw, &t))
        ktest_fail(__FILE__, line, "register %u = 0x%02x taken for a time",
                   offset, value);
}

#define REFUSE(field, value)                                                   \
    refuse(offsetof(struct rtc_raw, field), value, __LINE__)

KTEST(rtc, nonsense_is_refused)
{
    REFUSE(raw_second, 0x60);
    REFUSE(raw_second, 0x4F); /* no decimal digit */
    REFUSE(raw_second, 0xFF);
    REFUSE(raw_minute, 0x60);
    REFUSE(raw_hour, 0x24);
    REFUSE(raw_day, 0);
    REFUSE(raw_day, 0x32);
    REFUSE(raw_month, 0);
    REFUSE(raw_month, 0x13);
    REFUSE(raw_month, 0x11); /* November has 30 days */
    REFUSE(raw_year, 0xA0);
    REFUSE(raw_format, 0); /* 23 h on a clock of twelve hours */
}

KTEST(rtc, leap_years)
{
    struct rtc_raw raw = sample;
    struct rtc_time t;

    raw.raw_month = 2;
    raw.raw_day = 0x29;
    KT_TRUE(!rtc_convert(&raw, &t)); /* 2023 */
    raw.raw_year = 0x24;
    KT_TRUE(rtc_convert(&raw, &t));
    raw.raw_year = 0;
    KT_TRUE(rtc_convert(&raw, &t)); /* 2000 */
    raw.raw_century = 0x21;
    KT_TRUE(!rtc_convert(&raw, &t)); /* 2100 */
}

KTEST(rtc, the_clock_of_this_machine_can_be_read)
{
    struct rtc_time t;

    KT_TRUE(rtc_read(&t));
}

KTEST(rtc, seconds_go_on)
{
    static const uint32_t after[] = {1, 2, 62, 3602, 86402, 60 * 86400u};
    static const struct rtc_time later[] = {
        {2023, 12, 31, 23, 59, 59}, {2024, 1, 1, 0, 0, 0},
        {2024, 1, 1, 0, 1, 0},      {2024, 1, 1, 1, 0, 0},
        {2024, 1, 2, 0, 0, 0},      {2024, 2, 29, 23, 59, 58},
    };

    for (size_t i = 0; i < ARRAY_SIZE(after); i++) {
        struct rtc_time t;

        KT_REQUIRE(rtc_convert(&sample, &t));
        rtc_add(&t, after[i]);
        KT_EQ(memcmp(&t, &later[i], sizeof(t)), 0);
    }
}
