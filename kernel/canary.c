/*
 * The canary, under the names that the compiler gives it.
 */
#include "kernel/canary.h"
#include "kernel/lib/symbol.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/panic.h"

#ifdef CONFIG_DEBUG

void __stack_chk_fail(void) __attribute__((noreturn));

uintptr_t __stack_chk_guard;

/* The time since power-on is no secret: the canary finds mistakes, and does not
 * stop an attack. Its lowest byte is 0, which no string function copies past
 * the end. */
void canary_init(void)
{
    __stack_chk_guard = (uint32_t)rdtsc() * 2654435761u << 8;
}

/* Called instead of a return. */
void __stack_chk_fail(void)
{
    char where[64];

    panic("a local array was overrun in %s",
          symbol_caller((uintptr_t)__builtin_return_address(0), where,
                        sizeof(where)));
}

#endif
