/*
 * The log's transactions of one address, for `whatis` and for `history ADDR`.
 * (Without an argument, `history` prints typed lines, which the shell keeps.)
 */
#pragma once

#include "mm/debug/debug.h"

/* `history ADDR`. */
int logcmd_history(const char *word);

/* The newest transaction on the object that is, or was, at an address. False
 * if the log has none. */
bool logcmd_newest(uintptr_t addr, struct kmem_log_entry *e);
