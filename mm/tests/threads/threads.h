/*
 * mm/ under real threads: the test program's platform.
 */
#pragma once

#include "mm/buddy.h"

extern uint64_t threads_clock_ms;

void threads_start_pages(size_t frames);
