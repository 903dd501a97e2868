/*
 * The types that every part of Slate shares.
 *
 * Addresses have types, so that a physical address is not taken for a pointer:
 * paddr_t is what the processor puts on the bus, vaddr_t what loads and stores
 * use. Both are numbers; only a vaddr_t may be cast to a pointer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uintptr_t paddr_t;
typedef uintptr_t vaddr_t;

#define PAGE_SHIFT 12
#define PAGE_SIZE  4096u
#define PAGE_MASK  (PAGE_SIZE - 1)

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

#define ARRAY_SIZE(a)  (sizeof(a) / sizeof((a)[0]))
#define ROUND_UP(x, a) (((x) + (a)-1) & ~((__typeof__(x))(a)-1))
/* MIN and MAX evaluate one of their arguments twice. */
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* The structure of type T whose member m is at address p. */
#define container_of(p, T, m) ((T *)((char *)(p)-offsetof(T, m)))

#define likely(x)         __builtin_expect(!!(x), 1)
#define unlikely(x)       __builtin_expect(!!(x), 0)
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define UNUSED            __attribute__((unused)) /* of a parameter */
