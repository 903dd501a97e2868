/*
 * The sanitizers as the rest of the kernel sees them: nothing, in builds that
 * have none.
 */
#pragma once

/* A report in words: its kind, what was done, and by whom (symbol + offset).
 * `kind` is a constant. Called from anywhere, interrupts included. */
typedef void sanitize_watch_t(const char *kind, const char *what,
                              const char *by);

#ifdef CONFIG_SANITIZE
/* From now on a report calls `fn` and does not panic, and the operation is
 * done, bad frees too: a bug goes on as it would in any other build. NULL:
 * reports are panics again. */
void sanitize_watch(sanitize_watch_t *fn);
#else
static inline void sanitize_watch(sanitize_watch_t *fn)
{
    (void)fn;
}
#endif
