/*
 * SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF",
 * 2012): a number that only who knows the key can make for a text.
 */
#pragma once

#include "kernel/lib/types.h"

uint64_t siphash(uint64_t k0, uint64_t k1, const void *text, size_t n);
