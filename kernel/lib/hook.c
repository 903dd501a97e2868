/*
 * Hooks: see kernel/lib/hook.h.
 */
#include "kernel/lib/hook.h"

extern const struct hook __start_hooks[];
extern const struct hook __stop_hooks[];

void hooks_run(enum hook_step step, const void *arg)
{
    for (const struct hook *h = __start_hooks; h < __stop_hooks; h++)
        if (h->hook_step == step)
            h->hook_run(arg);
}
