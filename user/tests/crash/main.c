/*
 * crash KIND: makes a deliberate error, to test how it ends; the ring-3
 * counterpart of the kernel shell's `fault`.
 */
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

static volatile int zero;
static char *volatile null;

static void read_null(void)
{
    (void)*(volatile char *)null;
}

static void write_kernel(void)
{
    *(volatile char *)0xC0100000 = 0;
}

static void write_text(void)
{
    *(volatile char *)(uintptr_t)write_text = 0;
}

static void divide(void)
{
    zero = (zero + 1) / zero;
}

static void privileged(void)
{
    __asm__ volatile("cli");
}

static void opcode(void)
{
    __asm__ volatile("ud2");
}

static int overflow(int depth)
{
    volatile char frame[1024];

    frame[0] = (char)depth;
    return zero ? 0 : overflow(depth + 1) + frame[0];
}

static void stack(void)
{
    zero = overflow(0);
}

static void spin(void)
{
    for (;;)
        continue;
}

static void free_twice(void)
{
    char *p = malloc(40);

    free(p);
    free(p);
}

static const struct {
    const char *name;
    void (*commit)(void);
} kinds[] = {
    {"null", read_null},        {"kernel", write_kernel},
    {"text", write_text},       {"divide", divide},
    {"privileged", privileged}, {"opcode", opcode},
    {"stack", stack},           {"spin", spin},
    {"free-twice", free_twice},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < ARRAY_SIZE(kinds); i++)
        if (strcmp(argv[1], kinds[i].name) == 0) {
            kinds[i].commit();
            errx(1, "the processor allowed it");
        }
    errx(2, "usage: crash null|kernel|text|divide|privileged|opcode|stack|spin|"
            "free-twice");
}
