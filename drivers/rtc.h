/*
 * The battery-backed clock of a PC. What zone it runs in, nobody knows; it is
 * shown as it is.
 */
#pragma once

#include "kernel/lib/types.h"

struct rtc_time {
    unsigned rtc_year; /* 1980 … 2399 */
    unsigned rtc_month;
    unsigned rtc_day;
    unsigned rtc_hour; /* 0 … 23 */
    unsigned rtc_minute;
    unsigned rtc_second;
};

/* The clock's registers as they are read. */
struct rtc_raw {
    uint8_t raw_second;
    uint8_t raw_minute;
    uint8_t raw_hour;
    uint8_t raw_day;
    uint8_t raw_month;
    uint8_t raw_year;
    uint8_t raw_century; /* 0 or nonsense where there is none */
    uint8_t raw_format;  /* status register B */
};

#define RTC_FORMAT_24H    2
#define RTC_FORMAT_BINARY 4
#define RTC_HOUR_PM       0x80 /* in raw_hour of a 12-hour clock */

/* Turns registers into a time. False if they are no valid date and time. */
bool rtc_convert(const struct rtc_raw *raw, struct rtc_time *t);

/* Reads the clock. False if there is none or it makes no sense. Takes up to a
 * few milliseconds if the clock is just being advanced. While the driver in
 * ring 3 runs only tests may do that: it can make one reading of the driver's
 * wrong. */
bool rtc_read(struct rtc_time *t);

/* Reads the clock for rtc_now. Before there are programs. */
void rtc_init(void);

/* The time `uptime` seconds after rtc_init. False if nobody knows. */
bool rtc_now(uint32_t uptime, struct rtc_time *t);

/* Goes on by any number of seconds. */
void rtc_add(struct rtc_time *t, uint32_t seconds);
