/*
 * Kernel options, the words of the boot loader's command line. The file that
 * an option is for registers it; kernel/cmdline.c reads the line.
 *
 *     BOOT_OPTION(mem, "mem=", "mem=MIB", "use no more memory", set_mem);
 */
#pragma once

#include "kernel/lib/types.h"

struct boot_option {
    const char *option_name; /* "mem=" */
    const char *option_form; /* "mem=MIB" */
    const char *option_help; /* one line, no full stop */
    /* Takes the value, which stays valid; false if it is wrong. */
    bool (*option_set)(char *value);
};

extern const struct boot_option __start_boot_options[];
extern const struct boot_option __stop_boot_options[];

static inline size_t boot_option_count(void)
{
    return (size_t)(__stop_boot_options - __start_boot_options);
}

#define BOOT_OPTION(id, name, form, help, set)                                 \
    static const struct boot_option boot_option_##id                           \
        __attribute__((used, section("boot_options"),                          \
                       aligned(sizeof(void *)))) = {name, form, help, set}
