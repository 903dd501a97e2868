/*
 * Guards of words that the tested code may write only with a lock held, or may
 * neither read nor write.
 */
#pragma once

#include "kernel/x86/trap.h"

/* From here to the end of the test, or to lab_unguard(), a write to the four
 * bytes at `word`, at a multiple of four, while held() is false is a failed
 * expectation. held() gets the registers after the write. If `held` is NULL,
 * each read or write is a failed expectation. Four words at most. The test
 * itself also writes them only with their lock held. */
#define lab_guard(what, word, held)                                            \
    lab_guard_at(__FILE__, __LINE__, what, word, held)
void lab_guard_at(const char *file, int line, const char *what,
                  const void *word, bool (*held)(const struct trapframe *tf));
void lab_unguard(void);

/* Whether a spin lock is held. Without CONFIG_DEBUG a lock of one processor
 * shows by disabled interrupts alone, so a test enables them first. */
bool lab_spin_held(const struct trapframe *tf);
