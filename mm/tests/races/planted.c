/*
 * A race of two accesses, which mmraces must find: this file is instrumented
 * like mm/.
 */
#include "mm/tests/races/races.h"

unsigned planted_unlocked;

void planted_increment(void)
{
    planted_unlocked++;
}
