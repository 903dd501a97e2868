/*
 * kmain, where the kernel begins.
 */
#pragma once

#include "kernel/lib/types.h"

/* Called by boot/entry.asm: EAX and EBX as the boot loader left them. */
void kmain(uint32_t magic, paddr_t info) __attribute__((noreturn));
