/*
 * Backtraces. Every function that calls others begins with push ebp; mov ebp,
 * esp, so the frames form a list:
 *
 *     ebp ──> | caller's ebp |──> | its caller's ebp |──> … 0
 *             | return addr  |    | return addr      |
 *
 * Leaf functions have no frame (-momit-leaf-frame-pointer keeps the allocator's
 * hot path short). When one of them faults, EBP is its caller's, so the list
 * lacks the caller itself, the most important name. It is found by its return
 * address: a word between ESP and EBP that follows a call instruction,
 * preferably a call of this function. An indirect call does not say which
 * function it calls, nor does the call of a function that jumped here: one of
 * the allocator's front end (tools/make/kernel.mk).
 */
#include "kernel/x86/backtrace.h"
#include "kernel/lib/symbol.h"
#include "kernel/x86/paging.h"

#define LEAF_WORDS 16 /* words a leaf function may have pushed */

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

/* The function that the call before `ret` calls directly (E8 rel32), or 0. */
static uintptr_t direct_target(uintptr_t ret)
{
    const uint8_t *call = (const uint8_t *)ret - 5;
    uintptr_t offset;
    uintptr_t target;

    if (!in_text(ret) || !in_text((uintptr_t)call) || call[0] != 0xE8)
        return 0;
    target = ret + ((uint32_t)call[1] | (uint32_t)call[2] << 8 |
                    (uint32_t)call[3] << 16 | (uint32_t)call[4] << 24);
    return symbol_lookup(target, &offset) != NULL && offset == 0 ? target : 0;
}

/* The length of the indirect call (FF /2) at `p`, or 0: opcode, ModRM, and the
 * bytes that ModRM and SIB require (SDM volume 2, tables 2-2 and 2-3). */
static unsigned indirect_length(const uint8_t *p)
{
    unsigned mod = p[1] >> 6;
    unsigned rm = p[1] & 7;
    bool sib = mod != 3 && rm == 4;

    if (p[0] != 0xFF || (p[1] >> 3 & 7) != 2)
        return 0;
    if (mod == 1)
        return 3 + sib;
    if (mod == 2 || (mod == 0 && (sib ? p[2] & 7 : rm) == 5))
        return 6 + sib;
    return 2 + sib;
}

static bool after_indirect_call(uintptr_t ret)
{
    for (unsigned length = 2; length <= 7; length++)
        if (in_text(ret) && in_text(ret - length) &&
            indirect_length((const uint8_t *)ret - length) == length)
            return true;
    return false;
}

/* Whether mov ebp, esp (89 E5) is between a function's start and pc. */
static bool has_frame(const uint8_t *start, const uint8_t *pc)
{
    for (; start + 1 < pc; start++)
        if (start[0] == 0x89 && start[1] == 0xE5)
            return true;
    return false;
}

/* The first word in [from, to) that follows a direct call of `function`, or any
 * call if that is 0. */
static uintptr_t find_return(uintptr_t from, uintptr_t to, uintptr_t function)
{
    for (; from < to && readable(from); from += sizeof(uintptr_t)) {
        uintptr_t word = *(const uintptr_t *)from;
        uintptr_t target = direct_target(word);

        if (function != 0 ? target == function
                          : target != 0 || after_indirect_call(word))
            return word;
    }
    return 0;
}

uintptr_t backtrace_leaf_caller(uintptr_t pc, uintptr_t esp, uintptr_t ebp)
{
    uintptr_t end = esp + LEAF_WORDS * sizeof(uintptr_t);
    uintptr_t offset;
    uintptr_t caller;

    if (!in_text(pc) || symbol_lookup(pc, &offset) == NULL ||
        has_frame((const uint8_t *)(pc - offset), (const uint8_t *)pc))
        return 0;
    if (ebp > esp && ebp < end)
        end = ebp;
    caller = find_return(esp, end, pc - offset);
    return caller != 0 ? caller : find_return(esp, end, 0);
}
