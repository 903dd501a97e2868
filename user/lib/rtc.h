/*
 * The machine's clock: requests to the driver `rtc` (drivers/servers/rtc.c),
 * which publishes its port under that name.
 *
 *     RTC_TIME     reply at once
 *     RTC_WAIT     reply at the next second
 *
 * A request has neither words nor bytes. The reply's label is 0 and its word 0
 * the result: 0, or a negated error number (EIO: the clock is invalid; EINVAL:
 * no such request; ENOMEM). Word 1 is the date, RTC_DATE(…), word 2 the time of
 * day, RTC_DAYTIME(…).
 */
#pragma once

#include "kernel/lib/types.h"

enum rtc_request {
    RTC_TIME = 1,
    RTC_WAIT,
};

#define RTC_DATE(year, month, day)                                             \
    ((uint32_t)(year) << 16 | (uint32_t)(month) << 8 | (uint32_t)(day))
#define RTC_DAYTIME(hour, minute, second) RTC_DATE(hour, minute, second)

/* The time zone is not known. */
struct rtc_time {
    unsigned rtc_year; /* 1980 … 2079 */
    unsigned rtc_month;
    unsigned rtc_day;
    unsigned rtc_hour; /* 0 … 23 */
    unsigned rtc_minute;
    unsigned rtc_second;
};

/* The time now, or at the next update of the clock, when rtc_wait returns. 0,
 * or -1 with errno: ENOENT (there is no driver), EPIPE (it died meanwhile), or
 * its error. */
int rtc_time(struct rtc_time *t);
int rtc_wait(struct rtc_time *t);
