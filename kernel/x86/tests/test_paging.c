/*
 * The page tables (kernel/x86/paging.c): what they say, and whether the
 * processor acts on it. Accesses that must fault do, under a handler that
 * counts and skips them.
 */
#include "kernel/x86/paging.h"
#include "tools/workshop/ktest/ktest.h"
#include "kernel/x86/tests/fault.h"
#include "kernel/x86/gdt.h"
#include "kernel/x86/trap.h"
#include "mm/buddy.h"

static unsigned faults;
static uint32_t last_error;

static bool skip(struct trapframe *tf)
{
    faults++;
    last_error = tf->error;
    tf->eip += FAULT_LENGTH;
    return true;
}

static bool read_faults(vaddr_t addr)
{
    trap_handler_t before = trap_set_handler(TRAP_PAGE_FAULT, skip);

    faults = 0;
    fault_read(addr);
    trap_set_handler(TRAP_PAGE_FAULT, before);
    return faults == 1;
}

static bool write_faults(vaddr_t addr, uint8_t value)
{
    trap_handler_t before = trap_set_handler(TRAP_PAGE_FAULT, skip);

    faults = 0;
    fault_write(addr, value);
    trap_set_handler(TRAP_PAGE_FAULT, before);
    return faults == 1;
}

KTEST(paging, every_rule_holds)
{
    const char *broken = paging_verify();

    if (broken != NULL)
        KT_FAIL("%s", broken);
}

KTEST(paging, text_and_constants_are_read_only)
{
    for (vaddr_t a = (vaddr_t)text_start; a < (vaddr_t)rodata_end;
         a += PAGE_SIZE) {
        KT_TRUE(paging_readable(a));
        KT_TRUE(!paging_writable(a));
    }
}

static void expect_protected(vaddr_t addr)
{
    uint8_t was = fault_read(addr);

    KT_TRUE(write_faults(addr, (uint8_t)~was));
    KT_EQ(last_error, 3); /* by ring 0, writing, a page that is there */
    KT_EQ(fault_read(addr), was);
}

KTEST(paging, write_protection_holds_in_ring_0)
{
    expect_protected((vaddr_t)text_start);
    expect_protected((vaddr_t)text_end - 1);
    expect_protected((vaddr_t)rodata_start);
    expect_protected((vaddr_t)rodata_end - 1);
}

KTEST(paging, data_can_be_written)
{
    static uint8_t byte;

    KT_TRUE(paging_writable((vaddr_t)&byte));
    KT_TRUE(!write_faults((vaddr_t)&byte, 0x5a));
    KT_EQ(byte, 0x5a);
}

KTEST(paging, stacks_have_guard_pages)
{
    const vaddr_t guards[] = {(vaddr_t)boot_stack_guard,
                              gdt_fault_guard(&cpu_boot)};

    for (unsigned i = 0; i < ARRAY_SIZE(guards); i++) {
        KT_EQ(guards[i] & PAGE_MASK, 0);
        KT_TRUE(!paging_readable(guards[i]));
        KT_TRUE(read_faults(guards[i]));
        KT_TRUE(read_faults(guards[i] + PAGE_SIZE - 1));
        KT_TRUE(paging_writable(guards[i] + PAGE_SIZE));
    }
}

KTEST(paging, nothing_below_the_kernel)
{
    KT_TRUE(read_faults(0));
    KT_EQ(last_error, 0);
    KT_TRUE(read_faults(MIB(1)));
    KT_TRUE(read_faults(KERNEL_BASE - 1));
    for (vaddr_t a = 0; a < KERNEL_BASE; a += MIB(4))
        KT_EQ(paging_entry(a), 0);
}

KTEST(paging, nothing_after_memory)
{
    vaddr_t end = KERNEL_BASE + (page_count << PAGE_SHIFT);

    KT_TRUE(paging_readable(end - 1));
    KT_TRUE(!paging_readable(end));
    KT_TRUE(read_faults(end));
    KT_EQ(paging_entry(0xFFFFF000), 0);
}

KTEST(paging, a_page_is_unmapped_and_mapped_again)
{
    struct page *page = buddy_alloc(2);
    vaddr_t addr;

    KT_REQUIRE(page != NULL);
    addr = (vaddr_t)page_to_virt(page) + PAGE_SIZE;
    fault_write(addr, 0x31);
    paging_unmap(addr);
    KT_TRUE(!paging_readable(addr) && !paging_writable(addr));
    KT_TRUE(read_faults(addr));
    KT_EQ(last_error, 0);
    KT_TRUE(write_faults(addr, 0x32));
    KT_EQ(last_error, 2);
    KT_TRUE(paging_readable(addr - 1) && paging_readable(addr + PAGE_SIZE));
    paging_map(addr);
    KT_TRUE(!read_faults(addr));
    KT_EQ(fault_read(addr), 0x31);
    KT_TRUE(!write_faults(addr, 0x33));
    buddy_free(page, 2);
}

/* (The sanitizers also map their shadow.) */
#ifndef CONFIG_SANITIZE
KTEST(paging, tables_take_one_page_per_4_MiB)
{
    KT_EQ(paging_bytes(1), 2 * PAGE_SIZE);
    KT_EQ(paging_bytes(1024), 2 * PAGE_SIZE);
    KT_EQ(paging_bytes(1025), 3 * PAGE_SIZE);
    KT_EQ(paging_bytes(PAGING_MAX_RAM >> PAGE_SHIFT), 225 * PAGE_SIZE);
}
#endif
