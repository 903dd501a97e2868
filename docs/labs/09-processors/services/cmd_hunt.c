/*
 * hunt: a hunt for a race, for lab 9.
 */
#include "docs/labs/09-processors/services/hunt.h"
#include "drivers/console.h"
#include "kernel/lib/symbol.h"
#include "kernel/shell/shell.h"
#include "kernel/x86/cpu.h"

static int cmd_hunt(char **argv)
{
    const struct hunt *h = hunt_find(argv[1]);
    struct hunt_result r;
    char where[64];

    if (h == NULL)
        return shell_error("'%s' is no hunt; `help hunt` lists them", argv[1]);
    if (cpu_count < 2)
        return shell_error("a hunt takes two processors: make run CPUS=2");
    hunt_run(h, &r);
    if (!r.result_memory)
        return shell_error("there is too little memory");
    if (r.result_wrong != NULL) {
        symbol_format(r.result_next, where, sizeof(where));
        kprintf("%s: wrong if the other comes in after %u instructions, before "
                "%s:\n  %s\n",
                h->hunt_name, r.result_after, where, r.result_wrong);
        return 1;
    }
    kprintf("%s: right wherever the other comes in, in %u instructions; it "
            "has to wait in %u\n",
            h->hunt_name, r.result_steps, r.result_waits);
    return 0;
}

static void offer_hunts(const struct shell_offer *o)
{
    for (size_t i = 0; i < hunts_count; i++)
        shell_offer(o, hunts[i].hunt_name);
}

SHELL_COMMAND(hunt, {"HUNT", cmd_hunt, SHELL_ACTION});
SHELL_WORDS(HUNT, offer_hunts);
