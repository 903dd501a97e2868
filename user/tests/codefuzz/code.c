/*
 * Random code. A stream begins with a prologue:
 *
 *     segment registers   some, with selectors that mostly exist
 *     registers           numbers, and addresses in the area and elsewhere
 *     flags               by popf or by iret, with any bits
 *     ESP                 sometimes: odd, at the edge of a page, in the kernel
 *
 * Random bytes follow; half begin with an instruction that the processor
 * treats specially. An int3 ends a stream that comes so far.
 */
#include "user/tests/codefuzz/code.h"
#include "user/tests/syscallfuzz/fuzzer.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

#define BODY_BYTES 64

#define FLAGS_ALWAYS 0x202u      /* interrupts enabled, and a bit that is set */
#define FLAGS_ANY    0x003d7fffu /* all but VM */
#define FLAGS_VM     (1u << 17)

#define SELECTOR_CODE 0x2b /* ring 3's, kernel/x86/gdt.h */

static uint8_t *next; /* where the next byte goes */
static uint8_t *code_page;
static uint8_t *area_page;

/* ---- values ------------------------------------------------------------- */

/* Of no value that a system call could take for a process. */
static uint32_t value(void)
{
    switch (below(8)) {
    case 0:
        return any_bits() | 1u << 30;
    case 1:
        return (uint32_t)code_page + below(CODE_BYTES);
    case 2:
        return 0xC0000000 + below(MIB(8));
    case 3:
        return 0xffffffff - below(8);
    default:
        return (uint32_t)area_page + below(PAGE_SIZE);
    }
}

/* Mostly one that ring 3 may load into a data segment register. */
static uint32_t selector(void)
{
    static const uint16_t good[] = {0x00, 0x03, 0x28, 0x2b, 0x30, 0x33};
    static const uint16_t bad[] = {0x08, 0x10, 0x18, 0x20, 0x07, 0x3b};

    switch (below(24)) {
    case 0:
        return any_bits() & 0xffff;
    case 1:
        return bad[below(ARRAY_SIZE(bad))];
    default:
        return good[below(ARRAY_SIZE(good))];
    }
}

static uint32_t flags(void)
{
    return FLAGS_ALWAYS | (any_bits() & any_bits() & FLAGS_ANY);
}

/* ---- the prologue ------------------------------------------------------- */

static void put(uint32_t bytes, unsigned n)
{
    for (; n-- != 0; bytes >>= 8)
        *next++ = (uint8_t)bytes;
}

static void put_push(uint32_t number)
{
    put(0x68, 1);
    put(number, 4);
}

static void put_move(unsigned reg, uint32_t number)
{
    put(0xb8 + reg, 1);
    put(number, 4);
}

/* Of ES, SS, DS, FS and GS, numbers 0 and 2 to 5, not SS: in ring 3 it has one
 * possible value. */
static void put_segments(void)
{
    static const uint8_t registers[] = {0, 3, 4, 5};

    for (unsigned n = below(4); n-- != 0;) {
        put_move(0, selector());
        put(0xc08e | (uint32_t)registers[below(4)] << 11, 2); /* mov sreg, ax */
    }
}

/* iret to the instruction after it, or anywhere; virtual-8086 mode takes more
 * words. */
static void put_iret(void)
{
    bool vm = below(4) == 0;
    bool here = !vm && below(4) != 0;

    for (unsigned i = 0; vm && i < 6; i++)
        put_push(any_bits());
    put_push(vm ? flags() | FLAGS_VM : flags());
    put_push(here ? SELECTOR_CODE : selector());
    put_push(here ? (uint32_t)next + 6 : value());
    put(0xcf, 1);
}

static void put_flags(void)
{
    switch (below(4)) {
    case 0:
        put_push(flags());
        put(0x9d, 1); /* popf */
        break;
    case 1:
        put_iret();
        break;
    default:
        break;
    }
}

/* ESP is register 4. */
static void put_stack(void)
{
    static const uint32_t bad[] = {
        0, 3, 0x00400000, 0xBFFFFFFF, 0xC0000002, 0xC0100000, 0xFFFFFFFE};

    if (below(4) == 0)
        put_move(4, bad[below(ARRAY_SIZE(bad))]);
    else if (below(4) == 0)
        put_move(4, value());
}

/* ---- the body ----------------------------------------------------------- */

/* Opcodes by their bytes, the first one lowest. */
/* clang-format off */
static const uint32_t special[] = {
    0xcf, 0x9d, 0x9c, 0xcc, 0xce, 0xf1,    /* iret popf pushf int3 into icebp */
    0x80cd, 0xcd, 0x20cd, 0x0ecd, 0x08cd, 0x03cd, /* int of numbers */
    0xf4, 0xfa, 0xfb, 0xfd, 0xfc,               /* hlt cli sti std cld */
    0xe4, 0xe6, 0xec, 0xee, 0x6c, 0x6f,         /* in out insb outs */
    0x000f, 0x010f, 0x020f, 0x030f,             /* sldt …, sgdt …, lar, lsl */
    0x060f, 0x080f, 0x050f, 0x340f, 0x350f,     /* clts invd, fast calls */
    0x300f, 0x320f, 0x330f,                     /* wrmsr rdmsr rdpmc */
    0x200f, 0x210f, 0x220f, 0x230f,   /* mov with control and debug registers */
    0xc70f, 0xae0f,                             /* cmpxchg8b, fxsave */
    0xd0010f, 0xd1010f, 0xf8010f, 0xf9010f,    /* xgetbv xsetbv swapgs rdtscp */
    0xca010f, 0xcb010f, 0xc8010f, 0xc9010f,     /* clac stac monitor mwait */
    0x8e, 0x8c, 0x07, 0x17, 0x1f,         /* mov with a segment, pop es ss ds */
    0xa10f, 0xa90f, 0xb20f, 0xb40f, 0xb50f, 0xc4, 0xc5, /* pop fs gs, lss … */
    0x9a, 0xea, 0xcb, 0xca, 0xff, 0x2b9a,     /* far calls, jumps and returns */
    0xc2, 0xc8, 0xc9, 0x62, 0x63,               /* ret enter leave bound arpl */
    0xf0, 0x66, 0x67, 0xf2, 0xf3, 0x2e, 0x36, 0x26, 0x64, 0x65, /* prefixes */
    0x9b, 0xd8, 0xdf,                           /* fwait, floating point */
    0x0b0f, 0xff0f, 0xa20f, 0x310f, 0x040f,     /* ud2 ud0 cpuid rdtsc, none */
    0xa5f3, 0xabf3, 0xa4f3, 0xaaf3, 0x60, 0x61, /* rep movs stos, pusha popa */
};
/* clang-format on */

static void put_special(void)
{
    uint32_t opcode = special[below(ARRAY_SIZE(special))];

    do
        put(opcode, 1);
    while ((opcode >>= 8) != 0);
}

/* Calls that do nothing to others, and a number that is no call. */
static void put_call(void)
{
    static const uint32_t calls[] = {SYS_getpid, SYS_yield, SYS_uptime,
                                     0xffffffff};

    put_move(0, calls[below(ARRAY_SIZE(calls))]);
    put(0x80cd, 2);
}

static void put_body(void)
{
    uint8_t *end = next + BODY_BYTES;

    while (next < end) {
        switch (below(8)) {
        case 0:
            put_call();
            break;
        case 1:
        case 2:
        case 3:
            put_special();
            break;
        default:
            put(any_bits(), 1 + below(4));
        }
    }
}

void code_make(uint8_t *code, uint8_t *area, uint32_t seed)
{
    srand(seed);
    code_page = code;
    area_page = area;
    memset(code, 0xcc, CODE_BYTES);
    next = code;
    put_segments();
    for (unsigned reg = 0; reg < 8; reg++)
        if (reg != 4)
            put_move(reg, value());
    put_flags();
    put_stack();
    put_body();
}
