/* What the parts of ext2tool have in common. */
#pragma once

#include "kernel/lib/types.h"

/* Bytes that depend on the seed alone. */
void pattern(uint8_t *data, size_t n, uint32_t seed);

/* Each returns 0, or ends the program with the reason. */
int soak(const char *image, uint32_t seed, uint32_t steps, uint32_t bytes);
int powercut(const char *image, uint32_t seed, uint32_t steps, uint32_t cuts);
int fuzz(const char *image, uint32_t seed, uint32_t mutations);
