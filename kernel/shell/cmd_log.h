/*
 * What the log knows of one address, for `history ADDR` (without an argument
 * that command is about typed lines, which the shell itself knows) and for
 * `whatis`.
 */
#pragma once

#include "mm/debug/audit.h"

/* `history ADDR`. */
int logcmd_history(const char *word);

/* The newest transaction on the object that is, or was, at an address. False
 * if the log has none. */
bool logcmd_newest(uintptr_t addr, struct kmem_log_entry *e);
