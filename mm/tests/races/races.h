/*
 * Private to mmraces.
 */
#pragma once

/* A counter that tasks increment without a lock (planted.c). */
extern unsigned planted_unlocked;
void planted_increment(void);
