/*
 * A disk for tests: an image in memory, which can record writes and produce the
 * image that a power cut would leave.
 */
#pragma once

#include "user/servers/ext2/ext2.h"

struct record {
    uint32_t rec_sector;
    uint32_t rec_count; /* 0: a flush */
    uint8_t *rec_data;
};

struct disk {
    uint8_t *disk_image;
    uint32_t disk_sectors;
    bool disk_recording;
    struct record *disk_record;
    uint32_t disk_records;
    uint32_t disk_time;    /* seconds; each request adds one */
    bool disk_broken;      /* every write fails */
    uint32_t disk_unlucky; /* one in so many reads fails; 0: none */
    uint32_t disk_random;
    char disk_said[128];
};

void disk_load(struct disk *d, const char *path);
void disk_save(const struct disk *d, const char *path);
void disk_close(struct disk *d);
struct ext2_disk disk_functions(struct disk *d);

/* Ends the program with the reason if it cannot be mounted. */
struct ext2 *disk_mount(struct disk *d, uint32_t cache);

/*
 * The image after the first `n` records of a disk whose image was `before`:
 * all flushed sectors; of the others those that `seed` selects. The last record
 * may be written in part.
 */
void disk_cut(const struct disk *d, const uint8_t *before, uint32_t n,
              uint32_t seed, uint8_t *out);

/* xorshift32 */
uint32_t random_next(uint32_t *state);
