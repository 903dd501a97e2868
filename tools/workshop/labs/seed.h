/*
 * The seed of a hand-out: `make lab SEED=n` writes its number here. Answers
 * that follow from it differ from hand-out to hand-out.
 */
#pragma once

#include "kernel/lib/types.h"

#define LAB_SEED 0

/* A number below `n` that follows from the seed and from what it is for. */
unsigned lab_pick(unsigned purpose, unsigned n);

/* A test's random numbers: the same ones after each random_begin(purpose). */
void random_begin(unsigned purpose);
uint32_t random_below(uint32_t n);
