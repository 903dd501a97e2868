/*
 * Data passed by the boot loader: the structures of the Multiboot
 * Specification, version 0.6.96, section 3.3 and 3.4. All addresses are
 * physical.
 */
#pragma once

#include <stdint.h>

#define MULTIBOOT_LOADER_MAGIC 0x2BADB002u

/* Bits of info_flags: which of the fields below are valid. */
#define MULTIBOOT_MEMORY  (1u << 0)
#define MULTIBOOT_CMDLINE (1u << 2)
#define MULTIBOOT_MODULES (1u << 3)
#define MULTIBOOT_MMAP    (1u << 6)

struct multiboot_info {
    uint32_t info_flags;
    uint32_t info_mem_lower;
    uint32_t info_mem_upper;
    uint32_t info_boot_device;
    uint32_t info_cmdline;
    uint32_t info_mods_count;
    uint32_t info_mods_addr;
    uint32_t info_syms[4];
    uint32_t info_mmap_length; /* bytes of all entries together */
    uint32_t info_mmap_addr;
};

struct multiboot_module {
    uint32_t mod_start;
    uint32_t mod_end; /* exclusive */
    uint32_t mod_string;
    uint32_t mod_reserved;
};

#define MULTIBOOT_RAM 1 /* map_type; everything else is taken */

/* The next entry begins map_size bytes after the field map_size itself. */
struct multiboot_map {
    uint32_t map_size;
    uint64_t map_base;
    uint64_t map_length;
    uint32_t map_type;
} __attribute__((packed));
