/*
 * Starting and stopping application processors, APs for short (Intel SDM volume
 * 3, 8.4). kernel/cpus.c decides which to start, and waits for them.
 */
#pragma once

#include "kernel/lib/types.h"

/* INIT IPI: resets an AP, which then waits for mp_send_startup. */
void mp_send_init(uint8_t apic);

/* Start-up IPI: an AP that waits after its reset starts at the trampoline. */
void mp_send_startup(uint8_t apic);

/* Installs the trampoline, the code at which an AP starts in real mode; it goes
 * on at a frame of switch_prepare, with the page directory of boot and segments
 * of its own. The second puts back what was there. */
void mp_install_trampoline(uint32_t frame);
void mp_remove_trampoline(void);

/* Stops the other processors for good, in a panic, by an NMI, whose handler
 * stores where they were (cpu_stopped). The wait for each is bounded. */
void mp_stop(void);
