/*
 * The part of `history` that shows a buffer's transactions; without an
 * argument it is about typed lines, which the shell itself knows.
 */
#pragma once

/* `history ADDR`. */
int logcmd_history(const char *word);
