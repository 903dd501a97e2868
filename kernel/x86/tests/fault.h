/*
 * Deliberate exceptions, to test how the kernel handles them (Intel SDM volume
 * 3, section 6.15). Only those that C cannot express.
 */
#pragma once

#include "kernel/lib/types.h"

/* #UD: the opcode reserved for this. */
static inline void fault_opcode(void)
{
    __asm__ volatile("ud2" : : : "memory");
}

/* #GP with the selector as error code, if there is no such descriptor. */
static inline void fault_selector(uint16_t selector)
{
    __asm__ volatile("movw %w0, %%gs" : : "r"(selector) : "memory");
}

static inline void fault_protection(void)
{
    fault_selector(0xfff8);
}

/*
 * Reads or writes one byte, which may fault. The instructions have a known
 * length: a handler that adds FAULT_LENGTH to EIP skips them (and ud2).
 */
#define FAULT_LENGTH 2

static inline uint8_t fault_read(vaddr_t addr)
{
    uint32_t value = addr;

    __asm__ volatile("movb (%%eax), %%al" : "+a"(value) : : "memory");
    return (uint8_t)value;
}

static inline void fault_write(vaddr_t addr, uint8_t value)
{
    __asm__ volatile("movb %%al, (%%edx)" : : "a"(value), "d"(addr) : "memory");
}

/* #BP: EIP is already after the instruction. */
static inline void fault_breakpoint(void)
{
    __asm__ volatile("int3" : : : "memory");
}
