/*
 * Stands for kernel/x86/cpu.h in waketest (kernel/task/tests/wakes/wakes.h):
 * the processor that runs a fiber.
 */
#pragma once

#include "kernel/lib/types.h"

#define EFLAGS_IF (1u << 9)
#define EFLAGS_VM (1u << 17)

struct task;

struct cpu {
    struct task *cpu_task;
};

extern struct cpu wakes_cpu;

static inline struct cpu *cpu_self(void)
{
    return &wakes_cpu;
}

static inline struct task *cpu_running(void)
{
    return cpu_self()->cpu_task;
}

static inline void irq_disable(void)
{
}

static inline void irq_enable(void)
{
}

static inline void cpu_wait_interrupt(void)
{
}

static inline void cpu_relax(void)
{
}
