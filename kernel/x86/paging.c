/*
 * The final page tables: a directory and one table for each 4 MiB of RAM,
 *
 *     0x00000000  nothing: a null pointer faults
 *     0xC0000000  frame 0, the direct map begins
 *     0xC0100000  the kernel's text, then read-only data: may not be written
 *     …           data; the page below the boot stack is not mapped
 *     0xF8000000  the end of the direct map on the largest machine
 *     0xFF400000  the local APIC, if there are several processors
 */
#include "kernel/x86/paging.h"
#include "kernel/lib/string.h"
#include "kernel/x86/ipi.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/gdt.h"
#include "kernel/x86/protect.h"

#define ENTRIES    1024u
#define LARGE_PAGE MIB(4)
#define PTE_LARGE  128u

/* Two large pages that nothing else uses. */
#define WINDOW 0xFF800000u

static uint32_t *directory;
static size_t mapped_frames;

static uint32_t large_entry(paddr_t addr)
{
    return (addr & ~(LARGE_PAGE - 1)) | PTE_LARGE | PTE_PRESENT;
}

const void *paging_window(paddr_t addr, size_t bytes UNUSED)
{
    uint32_t *boot = (uint32_t *)(read_cr3() + KERNEL_BASE);

    boot[WINDOW / LARGE_PAGE] = large_entry(addr);
    boot[WINDOW / LARGE_PAGE + 1] = large_entry(addr + LARGE_PAGE);
    write_cr3(read_cr3());
    return (const void *)(WINDOW + addr % LARGE_PAGE);
}

static size_t table_count(size_t frames)
{
    return (frames + ENTRIES - 1) / ENTRIES;
}

size_t paging_bytes(size_t frames)
{
    return (1 + table_count(frames)) * PAGE_SIZE;
}

static paddr_t to_phys(const void *p)
{
    return (paddr_t)p - KERNEL_BASE;
}

/* The entry of a direct-map page, or NULL after its end. */
static uint32_t *entry_of(vaddr_t addr)
{
    uint32_t pde;

    if (directory == NULL)
        return NULL;
    pde = directory[addr >> 22];
    if ((pde & PTE_PRESENT) == 0)
        return NULL;
    return (uint32_t *)((pde & ~PAGE_MASK) + KERNEL_BASE) +
           (addr >> PAGE_SHIFT) % ENTRIES;
}

uint32_t paging_entry(vaddr_t addr)
{
    const uint32_t *entry = entry_of(addr);

    return entry == NULL ? 0 : *entry;
}

bool paging_readable(vaddr_t addr)
{
    return (paging_entry(addr) & PTE_PRESENT) != 0;
}

bool paging_writable(vaddr_t addr)
{
    uint32_t both = PTE_PRESENT | PTE_WRITE;

    return (paging_entry(addr) & both) == both;
}

void paging_unmap(vaddr_t addr)
{
    *entry_of(addr) &= ~PTE_PRESENT;
    tlb_shootdown(addr);
}

void paging_map(vaddr_t addr)
{
    *entry_of(addr) |= PTE_PRESENT;
    invlpg(addr);
}

static void write_protect(const char *start, const char *end)
{
    for (vaddr_t a = (vaddr_t)start; a < (vaddr_t)end; a += PAGE_SIZE)
        *entry_of(a) &= ~PTE_WRITE;
}

void paging_init(size_t frames, void *space)
{
    uint32_t *table = (uint32_t *)space + ENTRIES;
    size_t tables = table_count(frames);

    memset(space, 0, paging_bytes(frames));
    for (size_t i = 0; i < frames; i++)
        table[i] = (uint32_t)(i << PAGE_SHIFT) | PTE_PRESENT | PTE_WRITE;
    directory = space;
    mapped_frames = frames;
    for (size_t i = 0; i < tables; i++)
        directory[(KERNEL_BASE >> 22) + i] =
            to_phys(table + i * ENTRIES) | PTE_PRESENT | PTE_WRITE;
    write_protect(text_start, text_end);
    write_protect(rodata_start, rodata_end);
    *entry_of((vaddr_t)boot_stack_guard) &= ~PTE_PRESENT;
    *entry_of(gdt_fault_guard(&cpu_boot)) &= ~PTE_PRESENT;
    gdt_set_cr3(to_phys(directory));
    write_cr3(to_phys(directory));
}

uint32_t paging_kernel_cr3(void)
{
    return to_phys(directory);
}

void paging_copy_kernel(uint32_t *to)
{
    memcpy(to + (KERNEL_BASE >> 22), directory + (KERNEL_BASE >> 22),
           PAGE_SIZE - (KERNEL_BASE >> 22) * sizeof(*to));
}

static bool protected(const char *start, const char *end)
{
    for (vaddr_t a = (vaddr_t)start; a < (vaddr_t)end; a += PAGE_SIZE)
        if (!paging_readable(a) || paging_writable(a))
            return false;
    return true;
}

const char *paging_verify(void)
{
    if ((read_cr0() & 1u << 16) == 0)
        return "write protection is off in ring 0";
    for (size_t i = 0; i < KERNEL_BASE >> 22; i++)
        if (directory[i] != 0)
            return "a page is mapped below the kernel";
    for (size_t i = 0; i < mapped_frames; i++)
        if (paging_entry(KERNEL_BASE + (i << PAGE_SHIFT)) >> PAGE_SHIFT != i)
            return "a direct-map entry has the wrong frame";
    if (!protected(text_start, text_end))
        return "the kernel's text is not write protected";
    if (!protected(rodata_start, rodata_end))
        return "read-only data is not write protected";
    if (paging_readable((vaddr_t)boot_stack_guard) ||
        paging_readable(gdt_fault_guard(&cpu_boot)))
        return "a kernel stack has no guard page";
    return protect_verify();
}
