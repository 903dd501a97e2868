/*
 * The end of a fuzzer's child.
 */
#include "user/tests/syscallfuzz/child.h"

#define STEP_MS 10u

/* False: it has not ended in time. */
static bool ends(pid_t pid, uint32_t limit_ms, int *status)
{
    for (uint32_t ms = 0; ms < limit_ms; ms += STEP_MS) {
        for (int i = 0; i < 20; i++) {
            if (waitpid(pid, status, WNOHANG) == pid)
                return true;
            yield();
        }
        sleep_ms(STEP_MS);
    }
    return false;
}

enum child_end child_wait(pid_t pid, uint32_t limit_ms, int *status)
{
    bool ended;

    setpgid(pid, pid); /* the child does so too, perhaps later */
    ended = ends(pid, limit_ms, status);
    kill(-pid, SIGKILL);
    if (!ended) {
        waitpid(pid, status, 0);
        return CHILD_STUCK;
    }
    return WIFEXITED(*status) ? CHILD_ENDED : CHILD_KILLED;
}
