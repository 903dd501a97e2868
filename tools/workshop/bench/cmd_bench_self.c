/*
 * `bench self`: measures sequences of ten and eleven instructions, to check
 * that nothing of a loop remains in the figures.
 */
#include "kernel/x86/cpu.h"
#include "tools/workshop/bench/cmd_bench.h"

/* ---- known costs -------------------------------------------------------- */

#define FIVE_NOPS "nop; nop; nop; nop; nop; "

/* Ten instructions, after which registers have changed as after a call. */
static uint64_t known_ten(void)
{
    uint64_t start = rdtsc();

    REPEAT (ROUNDS)
        __asm__ volatile(FIVE_NOPS FIVE_NOPS
                         :
                         :
                         : "eax", "ecx", "edx", "memory", "cc");
    return rdtsc() - start - benchcmd_empty_loop();
}

/* The same n times; each result is stored. */
static uint64_t known_ten_stored(void **p, uint32_t n)
{
    uint64_t start = rdtsc();

    REPEAT (n) {
        void *returned;

        __asm__ volatile(FIVE_NOPS FIVE_NOPS
                         : "=a"(returned)
                         :
                         : "ecx", "edx", "memory", "cc");
        *p++ = returned;
    }
    return rdtsc() - start;
}

/* The same with each of n pointers, which it loads. */
static uint64_t known_eleven(void **p, uint32_t n)
{
    uint64_t start = rdtsc();

    REPEAT (n) {
        void *loaded = *p++;

        __asm__ volatile(FIVE_NOPS FIVE_NOPS
                         : "+d"(loaded)
                         :
                         : "eax", "ecx", "memory", "cc");
    }
    return rdtsc() - start;
}

int benchcmd_self(void)
{
    void **p = benchcmd_pointers(OBJECTS);

    if (p == NULL)
        return 1;
    benchcmd_report("self.ten", known_ten(), ROUNDS);
    benchcmd_report("self.stored",
                    known_ten_stored(p, OBJECTS) -
                        benchcmd_store_loop(p, OBJECTS),
                    OBJECTS);
    benchcmd_report(
        "self.eleven",
        known_eleven(p, OBJECTS) - benchcmd_pointer_loop(p, OBJECTS), OBJECTS);
    benchcmd_pointers_free(p, OBJECTS);
    return 0;
}
