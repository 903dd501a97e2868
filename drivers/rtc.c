/*
 * The MC146818 real-time clock (Motorola data sheet; the century's place in
 * register 0x32 is IBM's custom).
 *
 * The registers must not be read during an update. So they are read until two
 * readings without an update agree.
 *
 * This happens once, at boot; the timer counts the time since. The driver in
 * ring 3 (drivers/servers/rtc.c) then owns the ports: if the kernel used them
 * between its two accesses, the driver would read the wrong register.
 */
#include "drivers/rtc.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/io.h"
#include "kernel/lib/string.h"

#define RTC_TRIES 20000 /* an update takes 2 ms: 2,000 port reads or so */

enum {
    PORT_INDEX = 0x70,
    PORT_DATA = 0x71,
    NMI_OFF = 0x80, /* in the index: while the port is in use */

    REG_SECOND = 0,
    REG_MINUTE = 2,
    REG_HOUR = 4,
    REG_DAY = 7,
    REG_MONTH = 8,
    REG_YEAR = 9,
    REG_A = 0x0A,
    REG_B = 0x0B,
    REG_D = 0x0D,
    REG_CENTURY = 0x32,
    A_UPDATING = 0x80,
};

static uint8_t cmos(uint8_t reg)
{
    outb(PORT_INDEX, reg | NMI_OFF);
    return inb(PORT_DATA);
}

static void read_raw(struct rtc_raw *raw)
{
    raw->raw_second = cmos(REG_SECOND);
    raw->raw_minute = cmos(REG_MINUTE);
    raw->raw_hour = cmos(REG_HOUR);
    raw->raw_day = cmos(REG_DAY);
    raw->raw_month = cmos(REG_MONTH);
    raw->raw_year = cmos(REG_YEAR);
    raw->raw_century = cmos(REG_CENTURY);
    raw->raw_format = cmos(REG_B);
}

static bool wait_for_update(void)
{
    for (int i = 0; i < RTC_TRIES; i++)
        if (!(cmos(REG_A) & A_UPDATING))
            return true;
    return false;
}

static bool read_stable(struct rtc_raw *raw)
{
    struct rtc_raw again;

    for (int i = 0; i < 4; i++) {
        if (!wait_for_update())
            return false;
        read_raw(raw);
        if (!wait_for_update())
            return false;
        read_raw(&again);
        if (memcmp(raw, &again, sizeof(again)) == 0)
            return true;
    }
    return false;
}

bool rtc_read(struct rtc_time *t)
{
    struct rtc_raw raw;
    uint32_t flags = irq_save(); /* no interrupt between index and data */
    bool stable = read_stable(&raw);

    outb(PORT_INDEX, REG_D); /* enables NMIs again */
    (void)inb(PORT_DATA);
    irq_restore(flags);
    return stable && rtc_convert(&raw, t);
}

/* A register's value; out of range if it is not a decimal number. */
static unsigned number(const struct rtc_raw *raw, uint8_t value)
{
    if (raw->raw_format & RTC_FORMAT_BINARY)
        return value;
    if ((value & 0x0F) > 9 || value > 0x99)
        return 255;
    return (value >> 4) * 10u + (value & 0x0F);
}

static unsigned hour_of(const struct rtc_raw *raw)
{
    unsigned hour;

    if (raw->raw_format & RTC_FORMAT_24H)
        return number(raw, raw->raw_hour);
    hour = number(raw, raw->raw_hour & (uint8_t)~RTC_HOUR_PM);
    if (hour < 1 || hour > 12)
        return 255;
    return hour % 12 + (raw->raw_hour & RTC_HOUR_PM ? 12 : 0);
}

static unsigned year_of(const struct rtc_raw *raw)
{
    unsigned century = number(raw, raw->raw_century);
    unsigned year = number(raw, raw->raw_year);

    if (year > 99)
        return 0;
    if (century < 19 || century > 23)
        century = year < 80 ? 20 : 19;
    return century * 100 + year;
}

static unsigned days_in(unsigned month, unsigned year)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30,
                                   31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return days[month - 1] + (month == 2 && leap ? 1u : 0u);
}

bool rtc_convert(const struct rtc_raw *raw, struct rtc_time *t)
{
    t->rtc_second = number(raw, raw->raw_second);
    t->rtc_minute = number(raw, raw->raw_minute);
    t->rtc_hour = hour_of(raw);
    t->rtc_day = number(raw, raw->raw_day);
    t->rtc_month = number(raw, raw->raw_month);
    t->rtc_year = year_of(raw);
    return t->rtc_second < 60 && t->rtc_minute < 60 && t->rtc_hour < 24 &&
           t->rtc_year >= 1980 && t->rtc_month >= 1 && t->rtc_month <= 12 &&
           t->rtc_day >= 1 && t->rtc_day <= days_in(t->rtc_month, t->rtc_year);
}

/* ---- time since boot ---------------------------------------------------- */

static bool known;
static struct rtc_time at_boot;

void rtc_init(void)
{
    known = rtc_read(&at_boot);
}

static void next_day(struct rtc_time *t)
{
    if (++t->rtc_day <= days_in(t->rtc_month, t->rtc_year))
        return;
    t->rtc_day = 1;
    if (++t->rtc_month <= 12)
        return;
    t->rtc_month = 1;
    t->rtc_year++;
}

void rtc_add(struct rtc_time *t, uint32_t seconds)
{
    uint32_t minutes =
        t->rtc_minute + (t->rtc_second + seconds % 60) / 60 + seconds / 60 % 60;
    uint32_t hours = t->rtc_hour + minutes / 60 + seconds / 3600;

    t->rtc_second = (t->rtc_second + seconds % 60) % 60;
    t->rtc_minute = minutes % 60;
    t->rtc_hour = hours % 24;
    for (uint32_t days = hours / 24; days > 0; days--)
        next_day(t);
}

bool rtc_now(uint32_t uptime, struct rtc_time *t)
{
    if (!known)
        return false;
    *t = at_boot;
    rtc_add(t, uptime);
    return true;
}
