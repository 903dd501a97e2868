/*
 * Budgets of steps; budget.h says what for.
 */
#include "tools/test/budget.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

long long budget_left = LLONG_MAX;

static struct budget now;
static long long *handed; /* what the last process had left when it ended */

extern inline void budget_step(void);

struct budget budget_begin(const char *of, long long steps)
{
    struct budget before = now;

    now.budget_beyond = 0;
    if (steps < budget_left) {
        now = (struct budget){of, steps, budget_left - steps};
        budget_left = steps;
    }
    return before;
}

void budget_end(struct budget before)
{
    budget_left += now.budget_beyond;
    now = before;
}

void budget_share(void)
{
    handed = mmap(NULL, sizeof(*handed), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (handed == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
}

void budget_exit(int status)
{
    *handed = budget_left;
    _exit(status);
}

int budget_wait(int process)
{
    int status = -1;

    if (waitpid(process, &status, 0) == process && status == 0)
        budget_left = *handed;
    return status;
}

void budget_spent(void)
{
    char why[128];

    budget_left = LLONG_MAX - now.budget_beyond; /* the report takes steps */
    snprintf(why, sizeof(why), "%s used up its budget of %lld steps: it hangs",
             now.budget_of, now.budget_steps);
    budget_used_up(why);
}
