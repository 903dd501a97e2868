/*
 * Sampling: what each cache holds, at even steps of the clock, as events on
 * port 0xE9 for tools that draw memory over time.
 *
 *     {"event":"sample","ms":120,"cache":"inode","mem":4096,"inuse":23}
 *     {"event":"sample","ms":120,"free_pages":15501,"total_pages":15525,
 *      "supplier_pages":24,"user_pages":0}
 *
 * A sample is a line for each cache that has memory, and for "oversize", then
 * the line with the pages of the machine. It is taken in the clock's interrupt,
 * between two instructions of any task, and changes nothing; while
 * sampling is off, each step of the clock costs one test more.
 */
#pragma once

#include "kernel/lib/types.h"

/* Takes a sample now and then every `ms` milliseconds, which the clock rounds
 * up to its steps of 10. With 0: takes the last one and stops. */
void sample_every(uint32_t ms);
