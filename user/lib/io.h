/*
 * Port input and output for drivers (Intel SDM volume 1, chapter 19).
 *
 * A program may use the ports of its grant (/etc/servers); the processor checks
 * each in a map. Any other port ends the program, as a bad pointer does.
 */
#pragma once

#include "kernel/lib/types.h"

static inline uint8_t inb(uint16_t port)
{
    uint8_t value;

    __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

static inline void outb(uint16_t port, uint8_t value)
{
    __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline uint16_t inw(uint16_t port)
{
    uint16_t value;

    __asm__ volatile("inw %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

static inline void outw(uint16_t port, uint16_t value)
{
    __asm__ volatile("outw %0, %1" : : "a"(value), "Nd"(port));
}

static inline uint32_t inl(uint16_t port)
{
    uint32_t value;

    __asm__ volatile("inl %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

static inline void outl(uint16_t port, uint32_t value)
{
    __asm__ volatile("outl %0, %1" : : "a"(value), "Nd"(port));
}

/* Transfers `n` words of 16 bits between one port and memory. */
static inline void insw(uint16_t port, void *to, size_t n)
{
    __asm__ volatile("rep insw" : "+D"(to), "+c"(n) : "d"(port) : "memory");
}

static inline void outsw(uint16_t port, const void *from, size_t n)
{
    __asm__ volatile("rep outsw" : "+S"(from), "+c"(n) : "d"(port) : "memory");
}
