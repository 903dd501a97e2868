/*
 * The log's transactions of one address, for `whatis`.
 */
#pragma once

#include "mm/debug/debug.h"

/* The newest transaction on the object that is, or was, at an address. False
 * if the log has none. */
bool logcmd_newest(uintptr_t addr, struct kmem_log_entry *e);
