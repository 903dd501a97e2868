/*
 * date: prints date and time of the machine's clock (driver rtc).
 *
 *     date [-w]      -w: at the moment when the next second begins
 */
#include "user/lib/err.h"
#include "user/lib/rtc.h"
#include "user/lib/stdio.h"
#include "user/lib/unistd.h"

int main(int argc, char **argv)
{
    int (*ask)(struct rtc_time * t) = rtc_time;
    struct rtc_time t;
    bool failed;
    int c;

    while ((c = getopt(argc, argv, "w")) != -1) {
        if (c != 'w')
            usage("[-w]");
        ask = rtc_wait;
    }
    if (optind != argc)
        usage("[-w]");
    failed = ask(&t) < 0;
    if (failed && errno == ENOENT)
        errx(1, "no driver rtc is registered; at slate>: `servers`; `kill` rtc "
                "if it runs; `run -b -s names` if names does not; "
                "`run -b -s rtc`");
    if (failed)
        err(1, "driver rtc");
    printf("%u-%02u-%02u %02u:%02u:%02u\n", t.rtc_year, t.rtc_month, t.rtc_day,
           t.rtc_hour, t.rtc_minute, t.rtc_second);
    return 0;
}
