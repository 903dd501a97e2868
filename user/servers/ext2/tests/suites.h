/* What the parts of ext2tool have in common. */
#pragma once

#include "kernel/lib/types.h"

/* Bytes that depend on the seed alone. */
void pattern(uint8_t *data, size_t n, uint32_t seed);
