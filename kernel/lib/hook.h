/*
 * Hooks: functions that a file adds to a step of the kernel's life. They are
 * found through a linker section, so the step does not know its hooks:
 *
 *     static void count_tick(const void *arg) { … }
 *     HOOK(HOOK_TICK, count_tick);
 *
 * Hooks of one step run in the order in which the linker found them.
 */
#pragma once

#include "kernel/lib/types.h"

enum hook_step {
    HOOK_EARLY,  /* options are read, no memory map yet; arg: the boot loader's
                    struct multiboot_info */
    HOOK_FRAMES, /* page frames are managed */
    HOOK_FRAMES_TEST, /* the same moment, for tests: after all HOOK_FRAMES */
    HOOK_UP,          /* everything works; the shell comes next */
    HOOK_PROMPT,      /* boot is measured; commands come next */
    HOOK_PROMPT_TEST, /* the same moment, for tests: after all HOOK_PROMPT */
    HOOK_TICK,        /* each step of the clock, in its interrupt */
    HOOK_STOP_CPUS,   /* a panic begins; other processors still run */
    HOOK_PANIC,   /* a panic begins, nothing is printed yet; arg: its text */
    HOOK_REPORT,  /* the panic's place is printed */
    HOOK_STOPPED, /* the panic is reported */
    HOOK_INSPECT, /* last: allows inspection of the stopped machine */
};

struct hook {
    enum hook_step hook_step;
    void (*hook_run)(const void *arg);
};

#define HOOK(step, fn)                                                         \
    static const struct hook hook_##fn __attribute__((                         \
        used, section("hooks"), aligned(sizeof(void *)))) = {step, fn}

/* Runs the hooks of a step. */
void hooks_run(enum hook_step step, const void *arg);
