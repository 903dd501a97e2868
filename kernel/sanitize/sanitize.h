/*
 * Starting the sanitizers, in builds that have them.
 */
#pragma once

#ifdef CONFIG_SANITIZE
/* From here on accesses are checked. After memmap_init. */
void sanitize_init(void);
#else
static inline void sanitize_init(void)
{
}
#endif
