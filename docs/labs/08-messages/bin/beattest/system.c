/*
 * The whole driver, killed while a client uses it.
 */
#include "user/lib/err.h"
#include "docs/labs/08-messages/bin/beattest/beattest.h"

#define DEATHS 3

static int become_beat(void)
{
    static char *argv[] = {"/sbin/beat", NULL};

    if (grant_take("beat") == 0)
        execv(argv[0], argv);
    err(1, "beat (`run -p beattest storm`)");
}

static int run_tempo(void)
{
    static char *argv[] = {"/bin/tempo", "-p", "4", "-n", "30", NULL};

    execv(argv[0], argv);
    return -1;
}

void beat_storm(void)
{
    pid_t driver = begin(become_beat);
    pid_t tempo = begin(run_tempo);

    for (unsigned i = 0; i < DEATHS; i++) {
        sleep_ms(70);
        kill(driver, SIGKILL);
        ended(driver);
        driver = begin(become_beat);
    }
    check(lives(tempo), "the client survives three drivers");
    check(ended(tempo) == 0, "it has received each beat once");
    kill(driver, SIGKILL);
    ended(driver);
}
