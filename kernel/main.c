/*
 * kmain: the kernel's table of contents. Each part uses those before it;
 * docs/boot.md goes through them.
 */
#include "kernel/x86/multiboot.h"
#include "drivers/console.h"
#include "drivers/pic.h"
#include "drivers/pit.h"
#include "kernel/canary.h"
#include "kernel/cmdline.h"
#include "kernel/fs/file.h"
#include "kernel/fs/tty.h"
#include "kernel/halt.h"
#include "kernel/ipc/port.h"
#include "kernel/lib/hook.h"
#include "kernel/memmap.h"
#include "kernel/mm_platform.h"
#include "kernel/shell/shell.h"
#include "kernel/syscall/servers.h"
#include "kernel/object/grant.h"
#include "kernel/object/handle.h"
#include "kernel/object/session.h"
#include "kernel/task/task.h"
#include "kernel/vm/space.h"
#include "kernel/x86/acpi.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/gdt.h"
#include "kernel/x86/paging.h"
#include "kernel/x86/protect.h"
#include "kernel/x86/trap.h"
#include "mm/buddy.h"
#include "mm/kmem.h"
#include "mm/debug/debug.h"

/* Called at every tick of the clock. */
static void tick(void)
{
    sched_tick();
    reapd_tick();
    hooks_run(HOOK_TICK, NULL);
    timeouts_tick();
}

static const struct multiboot_info *multiboot(uint32_t magic, paddr_t info)
{
    if (magic != MULTIBOOT_LOADER_MAGIC)
        halt("the boot loader is not Multiboot (EAX is 0x%08x)",
             (unsigned)magic);
    return (const struct multiboot_info *)(info + KERNEL_BASE);
}

static void print_memory(const char *before, size_t pages, const char *after)
{
    bool small = pages < MIB(4) >> PAGE_SHIFT;

    kprintf("%s%zu %s%s", before,
            small ? pages << (PAGE_SHIFT - 10) : pages >> (20 - PAGE_SHIFT),
            small ? "KiB" : "MiB", after);
}

static void banner(unsigned processors, bool ticks)
{
    uint32_t protection = protect_on();

    print_memory("Slate: ", page_usable, " of memory, ");
    print_memory("", buddy_free_pages(), " free");
    if (page_beyond != 0)
        kprintf("; %u MiB unused", (unsigned)(page_beyond >> 20));
    if (processors > 1 && cpu_limit == 1)
        kprintf("\n%u processors; Slate uses one", processors);
    if (protection != 0)
        kprintf("\nProtections of the processor:%s%s%s",
                protection & PROTECT_SMEP ? " SMEP" : "",
                protection & PROTECT_SMAP ? " SMAP" : "",
                protection & PROTECT_UMIP ? " UMIP" : "");
    if (!ticks)
        kprintf("\nThe clock does not tick: no interrupt comes from the timer "
                "(8254, 8259 line 0).\nThe consoles are polled; what waits for "
                "time, and programs that wait for keys,\nwait for ever.");
    kprintf("\nType help for the commands, sh for programs.\n");
}

/* Mounts the root file system from the initrd and reads its manifest. */
static void mount_root(void)
{
    size_t size;
    const void *initrd = memmap_initrd(&size);

    fs_init(initrd, size);
    servers_init();
}

/* Called by boot/entry.asm: EAX and EBX as the boot loader left them. */
void kmain(uint32_t magic, paddr_t info) __attribute__((noreturn));

void kmain(uint32_t magic, paddr_t info_addr)
{
    const struct multiboot_info *info;
    unsigned processors;
    bool ticks;

    canary_init();
    gdt_init();
    protect_init();
    console_init();
    trap_init();
    info = multiboot(magic, info_addr);
    cmdline_parse(info->info_flags & MULTIBOOT_CMDLINE
                      ? (const char *)(info->info_cmdline + KERNEL_BASE)
                      : "");
    hooks_run(HOOK_EARLY, info);
    processors = acpi_processors();
    memmap_init(info);
    hooks_run(HOOK_FRAMES, NULL);
    hooks_run(HOOK_FRAMES_TEST, NULL);
    kmem_init();
    kmem_handles_keep(cmdline_debugs());
    task_init();
    session_init(buddy_free_pages());
    handle_init();
    space_init();
    grant_init();
    port_init();
    reapd_init();
    mount_root();
    console_set_getkey(tty_getkey, tty_wake);
    console_set_signal_hook(tty_signal_key);
    pic_init();
    timer_set_tick(tick);
    irq_enable();
    ticks = timer_init();
    if (ticks) /* else the consoles are polled */
        console_enable_interrupts();
    banner(processors, ticks);
    hooks_run(HOOK_UP, NULL);
    shell_run();
}
