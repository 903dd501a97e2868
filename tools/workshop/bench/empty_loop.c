/*
 * The loop that measurements have around what they measure, without that.
 */
#include "kernel/x86/cpu.h"
#include "tools/workshop/bench/cmd_bench.h"

/* Never inlined, so that all its calls cost the same. */
__attribute__((noinline)) uint64_t benchcmd_empty_loop(void)
{
    uint64_t start = rdtsc();

    REPEAT (ROUNDS)
        ;
    return rdtsc() - start;
}
