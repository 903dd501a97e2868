/*
 * The page tables of the shadow. The linker redirects here (--wrap) the three
 * calls by which the kernel enters paging.
 *
 * The tables and pages of the shadow follow the kernel's page tables, in the
 * same area. Compiled functions mark their stack in the shadow before it
 * exists; until then all its addresses share one page.
 */
#include "kernel/lib/string.h"
#include "kernel/x86/cpu.h"
#include "tools/workshop/sanitize/kasan.h"

#define ENTRIES 1024u /* of a page table, which maps 4 MiB */
#define FLAGS   (PTE_PRESENT | PTE_WRITE)

size_t __real_paging_bytes(size_t frames);
void __real_paging_init(size_t frames, void *space);

/* The entry of the page at `p`, in the direct map. */
static uint32_t entry(const void *p)
{
    return ((uint32_t)p - KERNEL_BASE) | FLAGS;
}

void kasan_map_early(void)
{
    static uint32_t table[ENTRIES] __attribute__((aligned(PAGE_SIZE)));
    static char page[PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));
    uint32_t *directory = (uint32_t *)(read_cr3() + KERNEL_BASE);

    for (size_t i = 0; i < ENTRIES; i++)
        table[i] = entry(page);
    directory[KASAN_SHADOW >> 22] = entry(table);
}

/* boot/high.asm, with the boot loader's numbers in registers that C keeps; and
 * on the boot stack, so that backtraces end as in other builds. */
__attribute__((naked)) void __wrap_boot_high(void)
{
    __asm__("mov $boot_stack_top, %esp\n\t"
            "call kasan_map_early\n\t"
            "jmp __real_boot_high");
}

static size_t pages_of(size_t frames)
{
    return ROUND_UP(frames, KASAN_GRANULE) / KASAN_GRANULE;
}

static size_t tables_of(size_t frames)
{
    return ROUND_UP(pages_of(frames), ENTRIES) / ENTRIES;
}

size_t __wrap_paging_bytes(size_t frames)
{
    return __real_paging_bytes(frames) +
           (tables_of(frames) + pages_of(frames)) * PAGE_SIZE;
}

void __wrap_paging_init(size_t frames, void *space)
{
    uint32_t *directory = space;
    size_t before = __real_paging_bytes(frames);
    char *tables = (char *)space + before;
    char *pages = tables + tables_of(frames) * PAGE_SIZE;

    memset(tables, 0, __wrap_paging_bytes(frames) - before);
    for (size_t i = 0; i < pages_of(frames); i++)
        ((uint32_t *)tables)[i] = entry(pages + i * PAGE_SIZE);
    __real_paging_init(frames, space);
    for (size_t i = 0; i < tables_of(frames); i++)
        directory[(KASAN_SHADOW >> 22) + i] = entry(tables + i * PAGE_SIZE);
}
