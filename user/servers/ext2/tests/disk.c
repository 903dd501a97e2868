/* The tests' disk. */
#include "user/servers/ext2/tests/disk.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "user/lib/stdlib.h"
#include "user/servers/ext2/tests/host.h"

#define SECTOR 512u

uint32_t random_next(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static int image_read(void *arg, uint32_t first, uint32_t sectors, void *buf)
{
    struct disk *d = arg;

    if (first >= d->disk_sectors || sectors > d->disk_sectors - first)
        return -EINVAL;
    if (d->disk_unlucky > 0 &&
        random_next(&d->disk_random) % d->disk_unlucky == 0)
        return -EIO;
    memcpy(buf, d->disk_image + (size_t)first * SECTOR,
           (size_t)sectors * SECTOR);
    return 0;
}

static void record(struct disk *d, uint32_t first, uint32_t sectors,
                   const void *data)
{
    struct record *r;

    if (!d->disk_recording)
        return;
    d->disk_record =
        realloc(d->disk_record, (d->disk_records + 1) * sizeof(struct record));
    r = &d->disk_record[d->disk_records++];
    r->rec_sector = first;
    r->rec_count = sectors;
    r->rec_data = malloc(sectors * SECTOR + 1);
    if (sectors > 0)
        memcpy(r->rec_data, data, sectors * SECTOR);
}

static int image_write(void *arg, uint32_t first, uint32_t sectors,
                       const void *data)
{
    struct disk *d = arg;

    if (first >= d->disk_sectors || sectors > d->disk_sectors - first ||
        sectors == 0)
        host_fail("a write outside of the disk: %u + %u", first, sectors);
    if (d->disk_broken)
        return -EIO;
    record(d, first, sectors, data);
    memcpy(d->disk_image + (size_t)first * SECTOR, data,
           (size_t)sectors * SECTOR);
    return 0;
}

static int image_flush(void *arg)
{
    record(arg, 0, 0, NULL);
    return 0;
}

static uint32_t image_seconds(void *arg)
{
    return ((struct disk *)arg)->disk_time++ / 64;
}

static void image_say(void *arg, const char *text)
{
    struct disk *d = arg;

    snprintf(d->disk_said, sizeof(d->disk_said), "%s", text);
}

struct ext2_disk disk_functions(struct disk *d)
{
    return (struct ext2_disk){
        .disk_read = image_read,
        .disk_write = image_write,
        .disk_flush = image_flush,
        .disk_seconds = image_seconds,
        .disk_say = image_say,
        .disk_arg = d,
        .disk_sectors = d->disk_sectors,
    };
}

struct ext2 *disk_mount(struct disk *d, uint32_t cache)
{
    struct ext2_disk functions = disk_functions(d);
    struct ext2 *fs;
    const char *why;
    int r = ext2_mount(&functions, cache, &fs, &why);

    if (r < 0)
        host_fail("cannot mount: %s (%d)", why, r);
    return fs;
}

void disk_load(struct disk *d, const char *path)
{
    size_t size;

    memset(d, 0, sizeof(*d));
    d->disk_image = host_load(path, &size);
    d->disk_sectors = (uint32_t)(size / SECTOR);
}

void disk_save(const struct disk *d, const char *path)
{
    host_save(path, d->disk_image, (size_t)d->disk_sectors * SECTOR);
}

void disk_close(struct disk *d)
{
    for (uint32_t i = 0; i < d->disk_records; i++)
        free(d->disk_record[i].rec_data);
    free(d->disk_record);
    free(d->disk_image);
}

static void put(uint8_t *image, const struct record *r, uint32_t i)
{
    memcpy(image + (size_t)(r->rec_sector + i) * SECTOR,
           r->rec_data + i * SECTOR, SECTOR);
}

/* Each sector written after the last flush may be missing. In one of four cuts
 * nothing is reordered; only the last write is incomplete. */
void disk_cut(const struct disk *d, const uint8_t *before, uint32_t n,
              uint32_t seed, uint8_t *out)
{
    uint32_t flushed = n;
    uint32_t state = seed * 2654435761u + n + 1;
    uint32_t keep;

    memcpy(out, before, (size_t)d->disk_sectors * SECTOR);
    while (flushed > 0 && d->disk_record[flushed - 1].rec_count > 0)
        flushed--;
    keep = random_next(&state) % 4;
    for (uint32_t i = 0; i < n; i++) {
        const struct record *r = &d->disk_record[i];
        uint32_t whole = r->rec_count;

        if (i >= flushed && keep == 0 && i == n - 1)
            whole = random_next(&state) % (r->rec_count + 1);
        for (uint32_t s = 0; s < whole; s++) {
            if (i < flushed || keep == 0 || random_next(&state) % 4 < keep)
                put(out, r, s);
        }
    }
}
