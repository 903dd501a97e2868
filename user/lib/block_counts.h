/*
 * What a block server counts (user/lib/block.h). Of its own, so that a driver's
 * core can include it on a workstation.
 */
#pragma once

#include "kernel/lib/types.h"

/* Counts of a server's events since it started. */
struct block_counts {
    uint32_t count_commands;
    uint32_t count_errors;   /* commands that a drive ended with an error */
    uint32_t count_timeouts; /* the drive stayed busy too long */
    uint32_t count_protocol; /* the drive was in an unexpected state */
    uint32_t count_lost;     /* the drive had finished without an interrupt */
    uint32_t count_spurious; /* unexpected interrupts */
    uint32_t count_resets;
};
