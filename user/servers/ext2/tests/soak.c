/*
 * soak IMAGE SEED STEPS BYTES: a random workload compared with the model, with
 * files of about BYTES bytes. Writes the image back.
 */
#include "user/lib/stdlib.h"
#include "user/servers/ext2/tests/disk.h"
#include "user/servers/ext2/tests/host.h"
#include "user/servers/ext2/tests/model.h"
#include "user/servers/ext2/tests/suites.h"

#define CACHE 65536u

static void check(struct model *m, uint32_t step, bool all)
{
    const char *wrong = ext2_verify(m->model_fs);

    if (wrong == NULL &&
        (m->model_failed != NULL || (all && !model_compare(m))))
        wrong = m->model_failed;
    if (wrong != NULL)
        host_fail("step %u: %s", step, wrong);
}

int soak(const char *image, uint32_t seed, uint32_t steps, uint32_t bytes)
{
    struct disk disk;
    struct model m;
    struct ext2 *fs;

    disk_load(&disk, image);
    fs = disk_mount(&disk, CACHE);
    model_begin(&m, fs, seed, bytes);
    for (uint32_t i = 0; i < steps; i++) {
        model_step(&m);
        check(&m, i, i % 100 == 99);
        if (i % 500 == 499) { /* only the disk's contents remain */
            if (ext2_unmount(fs) < 0)
                host_fail("step %u: unmount", i);
            ext2_free(fs);
            fs = disk_mount(&disk, CACHE);
            m.model_fs = fs;
            check(&m, i, true);
        }
    }
    check(&m, steps, true);
    host_print("%u names\n", m.model_names);
    model_end(&m);
    if (ext2_unmount(fs) < 0)
        host_fail("unmount");
    ext2_free(fs);
    if (disk.disk_said[0] != 0)
        host_fail("said: %s", disk.disk_said);
    disk_save(&disk, image);
    disk_close(&disk);
    return 0;
}
