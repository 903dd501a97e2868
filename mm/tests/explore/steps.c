/*
 * The steps of a schedule: see steps.h.
 */
#include "mm/tests/explore/steps.h"
#include "mm/tests/explore/explore.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STEPS 2000 /* that are kept */

static struct step steps[STEPS];
static size_t step_count;
static uint32_t digest;

void steps_begin(void)
{
    step_count = 0;
    digest = 0;
}

void steps_add(const struct step *s)
{
    digest = (digest ^ (s->step_task + 8 * s->step_point)) * 0x01000193u;
    steps[step_count++ % STEPS] = *s;
}

size_t explore_step(unsigned task, const mm_lock_t *lock, unsigned skip)
{
    for (size_t i = step_count; i > 0 && i + STEPS > step_count; i--) {
        const struct step *s = &steps[(i - 1) % STEPS];

        if (s->step_task == task && s->step_lock == lock && skip-- == 0)
            return i;
    }
    return 0;
}

uint32_t explore_digest(void)
{
    return digest;
}

/* ---- printing ----------------------------------------------------------- */

void steps_print_place(uintptr_t pc)
{
    char text[256];
    FILE *tool; /* it may not be there */

    snprintf(text, sizeof(text), "addr2line -fsp -e /proc/%d/exe %#lx 2>&1",
             (int)getpid(), (unsigned long)(pc - 1));
    tool = popen(text, "r");
    if (tool == NULL || fgets(text, sizeof(text), tool) == NULL)
        snprintf(text, sizeof(text), "%#lx", (unsigned long)pc);
    if (tool != NULL)
        pclose(tool);
    text[strcspn(text, "\n")] = '\0';
    printf("(%s)", text);
}

static void print_step(const struct step *s)
{
    const char *name = s->step_lock == NULL ? "" : s->step_lock->lock_name;

    printf("  task %u, point %u: %s %s ", s->step_task, s->step_point,
           s->step_what, name);
    if (s->step_pc != 0)
        steps_print_place(s->step_pc);
    else if (s->step_line != 0)
        printf("(%s:%d)", s->step_file, s->step_line);
    printf("\n");
}

void steps_print(bool all)
{
    size_t first = step_count > STEPS ? step_count - STEPS : 0;

    for (size_t i = first; i < step_count; i++) {
        const struct step *s = &steps[i % STEPS];

        if (i + 1 == step_count || all ||
            steps[(i + 1) % STEPS].step_task != s->step_task)
            print_step(s);
    }
}
