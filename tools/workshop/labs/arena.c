/*
 * Memory for tests that run before there is a memory map: from the end of the
 * last thing that the boot loader loaded to the end of the memory above 1 MiB,
 * which the loader reports up to the first hole.
 */
#include "tools/workshop/labs/lab_impl.h"
#include "kernel/halt.h"
#include "tools/workshop/labs/lab.h"
#include "kernel/lib/string.h"
#include "kernel/x86/paging.h"

static paddr_t next;
static paddr_t end;

static void leave_out(paddr_t first, paddr_t limit)
{
    if (first >= MIB(1))
        next = MAX(next, limit);
}

void lab_arena_init(const struct multiboot_info *info)
{
    const struct multiboot_module *m =
        (const void *)((uintptr_t)info->info_mods_addr + KERNEL_BASE);

    if ((info->info_flags & MULTIBOOT_MEMORY) == 0)
        halt("the boot loader does not say how much memory there is, which "
             "this test needs");
    next = (paddr_t)image_end - KERNEL_BASE;
    end = MIN(MIB(1) + ((uint64_t)info->info_mem_upper << 10), PAGING_MAX_RAM);
    if ((info->info_flags & MULTIBOOT_MODULES) == 0)
        return;
    leave_out(info->info_mods_addr, (paddr_t)(uintptr_t)(m + 1) - KERNEL_BASE);
    for (uint32_t i = 0; i < info->info_mods_count; i++)
        leave_out(m[i].mod_start, m[i].mod_end);
}

void *lab_arena(size_t bytes, size_t align)
{
    paddr_t at = ROUND_UP(next, MAX(align, (size_t)PAGE_SIZE));
    void *p = (void *)((uintptr_t)at + KERNEL_BASE);

    if (next == 0 || at < next || at > end || end - at < bytes)
        return NULL;
    next = at + bytes;
    memset(p, 0, bytes);
    return p;
}
