/*
 * Backtraces. Every function that calls others begins with push ebp; mov ebp,
 * esp, so that the frames form a list:
 *
 *     ebp ──> | caller's ebp |──> | its caller's ebp |──> … 0
 *             | return addr  |    | return addr      |
 *
 * Leaf functions have no frame (-momit-leaf-frame-pointer keeps the
 * allocator's hot path short). When one of them faults, EBP is still its
 * caller's, and the list would leave out the caller itself: the one name that
 * matters most. It is found again by its return address: the first word near
 * the top of the stack that stands right behind a call (E8 rel32) of a
 * function.
 */
#include "kernel/x86/backtrace.h"
#include "kernel/lib/symbol.h"
#include "kernel/x86/paging.h"

#define LEAF_WORDS 16 /* that a leaf function may have pushed */

static bool in_text(uintptr_t addr)
{
    return addr >= (uintptr_t)text_start && addr < (uintptr_t)text_end;
}

static bool readable(uintptr_t addr)
{
    return addr % sizeof(uintptr_t) == 0 && paging_readable(addr);
}

unsigned backtrace(uintptr_t frame, uintptr_t *pc, unsigned max)
{
    unsigned n = 0;

    while (n < max && readable(frame) && readable(frame + sizeof(uintptr_t))) {
        const uintptr_t *f = (const uintptr_t *)frame;

        if (!in_text(f[1]))
            break;
        pc[n++] = f[1];
        if (f[0] <= frame)
            break;
        frame = f[0];
    }
    return n;
}

/* Whether `ret` is the address behind a direct call of a function. */
static bool returns_from_call(uintptr_t ret)
{
    const uint8_t *call = (const uint8_t *)ret - 5;
    uintptr_t offset;
    int32_t distance;

    if (!in_text(ret) || !in_text((uintptr_t)call) || call[0] != 0xE8)
        return false;
    distance = (int32_t)((uint32_t)call[1] | (uint32_t)call[2] << 8 |
                         (uint32_t)call[3] << 16 | (uint32_t)call[4] << 24);
    return symbol_lookup(ret + (uintptr_t)distance, &offset) != NULL &&
           offset == 0;
}

/* Whether mov ebp, esp (89 E5) stands between a function's start and pc. */
static bool has_frame(const uint8_t *start, const uint8_t *pc)
{
    for (; start + 1 < pc; start++)
        if (start[0] == 0x89 && start[1] == 0xE5)
            return true;
    return false;
}

uintptr_t backtrace_leaf_caller(uintptr_t pc, uintptr_t esp)
{
    uintptr_t offset;

    if (!in_text(pc) || symbol_lookup(pc, &offset) == NULL ||
        has_frame((const uint8_t *)(pc - offset), (const uint8_t *)pc))
        return 0;
    for (unsigned i = 0; i < LEAF_WORDS; i++) {
        const uintptr_t *word = (const uintptr_t *)esp + i;

        if (!readable((uintptr_t)word))
            return 0;
        if (returns_from_call(*word))
            return *word;
    }
    return 0;
}
