/*
 * Programs of the host that are tests end by budgets of steps, not of time, so
 * that a busy machine changes no result.
 *
 * A step is an iteration of a loop. This header is included before each file
 * whose loops are counted (COUNTED in tools/make/test.mk). It includes none,
 * since some of these programs use the kernel's headers and others the host's.
 */
#pragma once

/* Steps up to the end of the budget. */
extern long long budget_left;

/* What has the budget ("the case"), how many steps that is, and how many of the
 * budget before remain beyond it. */
struct budget {
    const char *budget_of;
    long long budget_steps;
    long long budget_beyond;
};

/* From here to budget_end so many steps may be taken, or fewer if the budget
 * before has fewer left. Returns the budget before, for budget_end. */
struct budget budget_begin(const char *of, long long steps);
void budget_end(struct budget before);

/* The steps of a process that ends by budget_exit(0) count as those of the one
 * that started it and waits for it by budget_wait, which returns what waitpid
 * sets. The first process calls budget_share before it starts any. */
void budget_share(void);
void budget_exit(int status) __attribute__((noreturn));
int budget_wait(int process);

/* Each program has this one: reports that a budget is used up, with this text,
 * and ends the process. */
void budget_used_up(const char *why) __attribute__((noreturn));

void budget_spent(void) __attribute__((noreturn));

/* The thread sanitizer must not see what counts. */
#ifdef __SANITIZE_THREAD__
void budget_step(void);
#else
inline void budget_step(void)
{
    if (--budget_left < 0)
        budget_spent();
}
#endif

/* clang-format off */
#define while(...) while ((__VA_ARGS__) && (budget_step(), 1))
#define for(...)                                                               \
    for (__VA_ARGS__)                                                          \
        if (budget_step(), 0) {} else
/* clang-format on */
