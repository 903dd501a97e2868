/*
 * The battery-backed clock of a PC. Its time zone is unknown; the time is shown
 * unchanged.
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
    uint8_t raw_century; /* 0 or invalid if there is none */
    uint8_t raw_format;  /* status register B */
};

#define RTC_FORMAT_24H    2
#define RTC_FORMAT_BINARY 4
#define RTC_HOUR_PM       0x80 /* in raw_hour of a 12-hour clock */

/* Converts registers to a time. False: not a valid date and time. */
bool rtc_convert(const struct rtc_raw *raw, struct rtc_time *t);

/* Reads the clock. False: there is none, or its time is invalid. Takes a few
 * milliseconds during an update. While the driver in ring 3 runs, only tests
 * may call this: it can corrupt a reading of the driver. */
bool rtc_read(struct rtc_time *t);

/* Reads the clock for rtc_now, before there are programs. */
void rtc_init(void);

/* The time `uptime` seconds after rtc_init. False: not known. */
bool rtc_now(uint32_t uptime, struct rtc_time *t);

/* Adds any number of seconds. */
void rtc_add(struct rtc_time *t, uint32_t seconds);
