/*
 * SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF",
 * 2012): a number for a text that nobody can compute without the key.
 */
#pragma once

#include "kernel/lib/types.h"

uint64_t siphash(uint64_t k0, uint64_t k1, const void *text, size_t n);
