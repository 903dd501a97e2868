/*
 * From the boot loader's memory map to buddy.
 *
 * After the kernel's image come the table of pids, the page array and the page
 * tables, whose sizes depend on the size of memory. The pids, which need no
 * alignment, are in the gap before the array, if they fit there:
 *
 *     1 MiB      image_end   BUDDY_ALIGN
 *       | image    | pids     | page array | page tables | free ...
 *
 * Multiboot 1, section 3.3, describes the map. It is read defensively: some
 * loaders call the BIOS area free, some report overlapping or absurd entries.
 */
#include "kernel/memmap.h"
#include "kernel/cmdline.h"
#include "kernel/halt.h"
#include "kernel/lib/string.h"
#include "kernel/task/task.h"
#include "kernel/x86/paging.h"
#include "mm/buddy.h"

/* Bytes that must be left for the allocators after these tables: enough for a
 * prompt and a few commands. */
#define SPARE_MIN KIB(256)

static struct mem_region regions[MEMMAP_REGIONS_MAX];
static size_t region_count;
static struct mem_region initrd; /* the first module; empty without one */

/* Whether the direct map reaches it depends on the memory that is used. */
const void *memmap_initrd(size_t *size)
{
    bool there = initrd.region_end <= (uint64_t)page_count << PAGE_SHIFT;

    *size = there ? (size_t)(initrd.region_end - initrd.region_start) : 0;
    return (const void *)((uintptr_t)initrd.region_start + KERNEL_BASE);
}

/* ---- reading ------------------------------------------------------------ */

static bool to_region(const struct multiboot_map *e, struct mem_region *r)
{
    r->region_start = e->map_base;
    r->region_end = e->map_base + e->map_length;
    r->region_usable = e->map_type == MULTIBOOT_RAM;
    if (r->region_end < r->region_start)
        r->region_end = UINT64_MAX;
    return e->map_length != 0;
}

size_t memmap_parse(const void *map, size_t length, struct mem_region *out,
                    size_t max)
{
    size_t n = 0;
    size_t at = 0;

    const size_t least = sizeof(struct multiboot_map) - sizeof(uint32_t);

    while (n < max && length - at >= sizeof(struct multiboot_map)) {
        struct multiboot_map e;

        memcpy(&e, (const char *)map + at, sizeof(e));
        if (e.map_size < least)
            break;
        if (to_region(&e, &out[n]))
            n++;
        if (e.map_size > length - at - sizeof(uint32_t))
            break;
        at += e.map_size + sizeof(uint32_t);
    }
    return n;
}

/* The first byte at or after `addr` that a reserved region claims. */
static uint64_t reserved_from(const struct mem_region *r, size_t n,
                              uint64_t addr)
{
    uint64_t first = UINT64_MAX;

    for (size_t i = 0; i < n; i++)
        if (!r[i].region_usable && r[i].region_end > addr)
            first = MIN(first, MAX(r[i].region_start, addr));
    return first;
}

uint64_t memmap_usable_end(const struct mem_region *r, size_t n, uint64_t addr)
{
    uint64_t end = addr;

    for (size_t again = 0; again <= n; again++)
        for (size_t i = 0; i < n; i++)
            if (r[i].region_usable && r[i].region_start <= end &&
                r[i].region_end > end)
                end = r[i].region_end;
    end = MIN(end, reserved_from(r, n, addr));
    return end == addr ? 0 : end;
}

static bool region_fits(const struct mem_region *r, size_t n, uint64_t at,
                        size_t bytes)
{
    return at + bytes <= PAGING_MAX_RAM &&
           memmap_usable_end(r, n, at) >= at + bytes;
}

/* The place is `from`, or else where some region begins or ends. */
paddr_t memmap_space(const struct mem_region *r, size_t n, paddr_t from,
                     size_t bytes)
{
    uint64_t best = UINT64_MAX;

    if (region_fits(r, n, from, bytes))
        return from;
    for (size_t i = 0; i < 2 * n; i++) {
        uint64_t edge =
            i % 2 == 0 ? r[i / 2].region_start : r[i / 2].region_end;
        uint64_t at = ROUND_UP(edge, (uint64_t)PAGE_SIZE);

        if (at > from && at < best && region_fits(r, n, at, bytes))
            best = at;
    }
    return best == UINT64_MAX ? 0 : (paddr_t)best;
}

/* ---- taking over -------------------------------------------------------- */

static void *direct(paddr_t addr)
{
    return (void *)(addr + KERNEL_BASE);
}

/* Boot modules are reserved memory. */
static void add_modules(const struct multiboot_info *info)
{
    const struct multiboot_module *m = direct(info->info_mods_addr);

    if ((info->info_flags & MULTIBOOT_MODULES) == 0)
        return;
    if (info->info_mods_count != 0 && m[0].mod_end <= PAGING_MAX_RAM &&
        m[0].mod_start < m[0].mod_end)
        initrd = (struct mem_region){.region_start = m[0].mod_start,
                                     .region_end = m[0].mod_end};
    for (uint32_t i = 0; i < info->info_mods_count; i++)
        if (region_count < MEMMAP_REGIONS_MAX)
            regions[region_count++] = (struct mem_region){
                .region_start = m[i].mod_start,
                .region_end = m[i].mod_end,
                .region_usable = false,
            };
}

/* Frames from 0 to the end of the highest memory that will be used. */
static size_t frames_to_manage(void)
{
    uint64_t limit = MIN(PAGING_MAX_RAM, cmdline_mem_limit());
    uint64_t top = 0;

    for (size_t i = 0; i < region_count; i++)
        if (regions[i].region_usable && regions[i].region_start < limit)
            top = MAX(top, MIN(regions[i].region_end, limit));
    return (size_t)(top >> PAGE_SHIFT);
}

void memmap_init(const struct multiboot_info *info)
{
    paddr_t image = (paddr_t)image_end - KERNEL_BASE;
    size_t frames;
    size_t bytes;
    paddr_t pids;
    paddr_t array;
    paddr_t tables;
    uint64_t need;

    if ((info->info_flags & MULTIBOOT_MMAP) == 0 || info->info_mmap_length == 0)
        halt("the boot loader gave no memory map");
    region_count =
        memmap_parse(direct(info->info_mmap_addr), info->info_mmap_length,
                     regions, MEMMAP_REGIONS_MAX - 16);
    if (region_count == 0)
        halt("the boot loader's memory map is empty or broken");
    add_modules(info);
    frames = frames_to_manage();
    bytes = task_pids_bytes(frames) + BUDDY_ALIGN + page_array_bytes(frames) +
            paging_bytes(frames);
    pids = memmap_space(regions, region_count, image, bytes);
    need = (uint64_t)MAX(pids, image) + bytes + SPARE_MIN;
    if (pids == 0) /* the archive is in the room after the image */
        need += initrd.region_end - initrd.region_start;
    if (pids == 0 || ((uint64_t)frames << PAGE_SHIFT) < need)
        halt("too little memory: the kernel needs %u KiB, and there is memory "
             "up to %u KiB",
             (unsigned)(need >> 10), (unsigned)(frames << (PAGE_SHIFT - 10)));
    array = ROUND_UP(pids + task_pids_bytes(frames), BUDDY_ALIGN);
    tables = array + page_array_bytes(frames);
    paging_init(frames, direct(tables));
    page_init(direct(array), frames, regions, region_count,
              (paddr_t)image_start - KERNEL_BASE,
              tables + paging_bytes(frames));
    task_set_pids(direct(pids), frames);
    buddy_init();
}
