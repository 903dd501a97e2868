/*
 * Slate's own allocator as one of the others.
 */
#pragma once

#include "mm/others/others.h"

extern const struct other_allocator slab_allocator;
