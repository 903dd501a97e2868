/* Declarations shared by the parts of ext2tool. */
#pragma once

#include "kernel/lib/types.h"

/* Bytes that depend only on the seed. */
void pattern(uint8_t *data, size_t n, uint32_t seed);

/* Each returns 0, or ends the program with the reason. */
int soak(const char *image, uint32_t seed, uint32_t steps, uint32_t bytes);
int powercut(const char *image, uint32_t seed, uint32_t steps, uint32_t cuts);
/* Cuts the power after each write of a recorded disk, in `ways` ways each,
 * repairs the disk, and prints each outcome once. `path` is a file for
 * e2fsck. */
struct disk;
void cut_everywhere(const struct disk *disk, const uint8_t *before,
                    uint32_t ways, const char *path);
int fuzz(const char *image, uint32_t seed, uint32_t mutations);
