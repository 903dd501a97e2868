/*
 * tempo: prints beats of the driver beat (beat.h).
 *
 *     tempo [-p PERIOD] [-n BEATS]    every 64th beat, twice a second; 8 times
 *
 * Prints the number of each beat when it comes. If a beat is missing or comes
 * twice, the exit status is 1, even if the driver was replaced.
 */
#include "docs/labs/08-messages/bin/tempo/beat.h"
#include "user/lib/err.h"
#include "user/lib/number.h"
#include "user/lib/stdio.h"
#include "user/lib/unistd.h"

struct options {
    uint32_t period;
    uint32_t beats;
};

static struct options read_options(int argc, char **argv)
{
    struct options o = {BEAT_HZ / 2, 8};
    int c;

    while ((c = getopt(argc, argv, "p:n:")) != -1) {
        if (c == 'p')
            o.period = number_between(optarg, 1, BEAT_PERIOD_MAX);
        else if (c == 'n')
            o.beats = number_between(optarg, 1, 1000000);
        else
            usage("[-p PERIOD] [-n BEATS]");
    }
    if (optind != argc)
        usage("[-p PERIOD] [-n BEATS]");
    return o;
}

static void unavailable(void) __attribute__((noreturn));
static void unavailable(void)
{
    err(1, "beat%s", errno == ENOENT ? " (`run -b -s beat` starts it)" : "");
}

int main(int argc, char **argv)
{
    struct options o = read_options(argc, argv);
    uint32_t last;

    if (beat_count(&last) < 0)
        unavailable();
    last -= last % o.period;
    for (uint32_t i = 0; i < o.beats; i++) {
        uint32_t next = last + o.period;

        if (beat_wait(o.period, &last) < 0)
            unavailable();
        printf("%u\n", last);
        fflush(stdout);
        if (last != next)
            errx(1, "beat %u came when %u was next", last, next);
    }
    return 0;
}
