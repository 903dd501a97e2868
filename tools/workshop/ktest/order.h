/*
 * The order of events in several tasks: each is a character.
 */
#pragma once

#include "kernel/lib/string.h"
#include "tools/workshop/ktest/ktest.h"

static char order[32];

static inline void begin_order(void)
{
    order[0] = '\0';
}

static inline void note(char c)
{
    size_t n = strlen(order);

    if (n < sizeof(order) - 1) {
        order[n] = c;
        order[n + 1] = '\0';
    }
}

#define KT_ORDER(want)                                                         \
    do {                                                                       \
        if (strcmp(order, want) != 0)                                          \
            KT_FAIL("order is \"%s\", want \"%s\"", order, want);              \
    } while (0)
