/*
 * A sanitizer's report: the access, its address and its code, a description of
 * the memory, the shadow around it; then a panic, with its shell.
 *
 *     kasan: use-after-free: write of 4 bytes at 0xc0456788
 *        0  0xc01234ab  pipe_write+0x5b
 *        …
 *     0xc0456788: frame 1110, slab, physical 0x00456788
 *     object 3 of cache pipe, free: 0xc0456780 + 8, in the object
 *     …
 *     shadow, a byte for 8 (00 all valid, 01-07 the first 1-7):
 *       0xc0456700  fb fb fb fb fb fb fb fb 00 00 00 00 00 00 05 fc
 *     > 0xc0456780  fb*fb fb fb …
 *
 * A report can come from any code, with locks held; like a panic it disables
 * interrupts, forgets the locks and makes the console poll.
 */
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/x86/panic.h"
#include "tools/workshop/sanitize/kasan.h"
#include "tools/workshop/sanitize/sanitize.h"
#include "kernel/shell/shell.h"
#include "kernel/x86/backtrace.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/panic.h"

#define FRAMES_MAX   20
#define ROW_GRANULES 16u
#define ROWS_AROUND  2u /* before and after the one with the address */

/* Is at the lowest address of a frame with arrays; after it, a description
 * of them and the function. */
#define FRAME_MAGIC 0x41B58AB3u

struct stack_frame {
    uintptr_t frame_magic;
    const char *frame_objects; /* "1 32 8 3 buf": how many; offset, size,
                                  length of name, name of each */
    uintptr_t frame_function;
};

static struct sanitizer_report *expected;
static sanitize_watch_t *watcher;
static bool reporting;

void sanitizer_expect(struct sanitizer_report *r)
{
    if (r != NULL)
        memset(r, 0, sizeof(*r));
    expected = r;
}

void sanitize_watch(sanitize_watch_t *fn)
{
    watcher = fn;
}

bool sanitizer_enter(void)
{
    if (reporting || panic_happened())
        return false;
    reporting = true;
    return true;
}

/* ---- in words ----------------------------------------------------------- */

/* Why a byte may not be touched. If some of its granule may be, it is past
 * the end of something; of a variable, if the next granule says so. */
static enum kasan_shadow reason(uintptr_t addr)
{
    uint8_t s = *kasan_shadow(addr);

    if (s >= KASAN_GRANULE)
        return s;
    if (kasan_covers(addr + KASAN_GRANULE))
        s = *kasan_shadow(addr + KASAN_GRANULE);
    return s >= KASAN_STACK_LEFT && s <= KASAN_GLOBAL ? s : KASAN_GAP;
}

static bool on_stack(uintptr_t addr)
{
    return reason(addr) >= KASAN_STACK_LEFT &&
           reason(addr) <= KASAN_STACK_SCOPE;
}

static const char *kind_of(uintptr_t addr)
{
    switch (reason(addr)) {
    case KASAN_STACK_LEFT:
    case KASAN_STACK_MID:
    case KASAN_STACK_RIGHT:
        return "stack-out-of-bounds";
    case KASAN_STACK_SCOPE:
        return "stack-use-after-scope";
    case KASAN_GLOBAL:
        return "global-out-of-bounds";
    case KASAN_FREE:
        return "use-after-free";
    case KASAN_PAGE:
        return "use-of-free-page";
    default:
        return "heap-out-of-bounds";
    }
}

/* The lowest address of the frame whose closed rooms are around `addr`. */
static const struct stack_frame *frame_around(uintptr_t addr)
{
    uintptr_t at = addr & ~(uintptr_t)(KASAN_GRANULE - 1);
    uintptr_t lowest = at - PAGE_SIZE;

    while (at > lowest && kasan_covers(at) &&
           *kasan_shadow(at) != KASAN_STACK_LEFT)
        at -= KASAN_GRANULE;
    while (at > lowest && kasan_covers(at) &&
           *kasan_shadow(at - KASAN_GRANULE) == KASAN_STACK_LEFT)
        at -= KASAN_GRANULE;
    if (!paging_readable(at) ||
        ((const struct stack_frame *)at)->frame_magic != FRAME_MAGIC)
        return NULL;
    return (const struct stack_frame *)at;
}

static unsigned long number(const char **text)
{
    unsigned long n = 0;

    for (; **text >= '0' && **text <= '9'; (*text)++)
        n = n * 10 + (unsigned long)(**text - '0');
    if (**text == ' ')
        (*text)++;
    return n;
}

static void describe_stack(uintptr_t addr)
{
    const struct stack_frame *f = frame_around(addr);
    char name[64];
    const char *text;

    if (f == NULL)
        return;
    text = f->frame_objects;
    kprintf("the frame of %s, base + %lu; in it are\n",
            symbol_format(f->frame_function, name, sizeof(name)),
            (unsigned long)(addr - (uintptr_t)f));
    for (unsigned long n = number(&text); n > 0; n--) {
        unsigned long offset = number(&text);
        unsigned long size = number(&text);
        unsigned long length = number(&text);

        kprintf("  base + %-4lu %4lu bytes  %.*s\n", offset, size, (int)length,
                text);
        text += length;
        if (*text == ' ')
            text++;
    }
}

static void describe(uintptr_t addr)
{
    char command[32];
    const char *file;
    const char *name;
    uintptr_t start;
    size_t size;

    snprintf(command, sizeof(command), "whatis 0x%08lx", (unsigned long)addr);
    shell_execute(command);
    if (on_stack(addr))
        describe_stack(addr);
    name = kasan_global(addr, &file, &start, &size);
    if (name != NULL)
        kprintf("%zu bytes from the start of %s (%zu bytes, %s)\n",
                (size_t)(addr - start), name, size, file);
}

static void print_shadow(uintptr_t addr)
{
    uintptr_t row_bytes = ROW_GRANULES * KASAN_GRANULE;
    uintptr_t middle = addr & ~(row_bytes - 1);
    uintptr_t row = middle - ROWS_AROUND * row_bytes;

    kprintf("shadow, a byte for %u (00 all valid, 01-07 the first 1-7; f1-f8"
            "\nstack, f9 global, fb free object, fc gap, ff free page):\n",
            KASAN_GRANULE);
    for (; row <= middle + ROWS_AROUND * row_bytes; row += row_bytes) {
        if (!kasan_covers(row))
            continue;
        kprintf("%c 0x%08lx ", row == middle ? '>' : ' ', (unsigned long)row);
        for (uintptr_t at = row; at < row + row_bytes; at += KASAN_GRANULE)
            kprintf("%c%02x", addr - at < KASAN_GRANULE ? '*' : ' ',
                    *kasan_shadow(at));
        kprintf("\n");
    }
}

/* ---- the report --------------------------------------------------------- */

static void begin(void)
{
    irq_disable();
    cpu_self()->cpu_locks = 0;
    console_panic_mode();
}

static void print_callers(uintptr_t pc, uintptr_t ebp)
{
    uintptr_t frames[FRAMES_MAX] = {pc};

    print_frames(frames, 1 + backtrace(ebp, frames + 1, FRAMES_MAX - 1), false);
}

/* True if there is a watcher: the report ends here. */
static bool notify_watcher(const char *kind, const char *text, uintptr_t pc)
{
    char by[64];

    if (watcher == NULL)
        return false;
    watcher(kind, text, symbol_format(pc, by, sizeof(by)));
    reporting = false;
    return true;
}

/* True if a test is waiting for it: the report ends here. */
static bool note(const char *kind, uintptr_t addr, size_t size, bool write,
                 const char *text)
{
    struct sanitizer_report *r = expected;

    if (r == NULL)
        return false;
    reporting = false;
    if (r->report_count++ != 0)
        return true;
    r->report_kind = kind;
    r->report_addr = addr;
    r->report_size = size;
    r->report_write = write;
    strlcpy(r->report_text, text, sizeof(r->report_text));
    return true;
}

/* Prints a report about memory and panics. `what`: the access, or "free". */
static void report(const char *kind, const char *what, uintptr_t addr,
                   uintptr_t pc, uintptr_t ebp)
{
    char by[64];

    begin();
    symbol_format(pc, by, sizeof(by));
    kprintf("\nkasan: %s: %s at 0x%08lx\n", kind, what, (unsigned long)addr);
    debugcon_event("{\"event\":\"sanitizer\",\"kind\":\"%s\",\"what\":\"%s\","
                   "\"addr\":%lu,\"by\":\"%s\"}",
                   kind, what, (unsigned long)addr, by);
    print_callers(pc, ebp);
    describe(addr);
    print_shadow(addr);
    panic("kasan: %s: %s at 0x%08lx by %s", kind, what, (unsigned long)addr,
          by);
}

void kasan_report(uintptr_t addr, size_t size, bool write, uintptr_t pc,
                  uintptr_t ebp)
{
    const char *kind;
    char what[48];

    if (!sanitizer_enter())
        return;
    kind = kind_of(addr);
    snprintf(what, sizeof(what), "%s of %zu byte%s", write ? "write" : "read",
             size, size == 1 ? "" : "s");
    if (!notify_watcher(kind, what, pc) && !note(kind, addr, size, write, what))
        report(kind, what, addr, pc, ebp);
}

bool kasan_report_free(const char *kind, uintptr_t addr, uintptr_t pc,
                       uintptr_t ebp)
{
    if (!sanitizer_enter())
        return false;
    if (notify_watcher(kind, "free", pc))
        return true;
    if (!note(kind, addr, 0, true, "free"))
        report(kind, "free", addr, pc, ebp);
    return false;
}

void ubsan_report(const char *kind, const char *text, uintptr_t pc,
                  uintptr_t ebp)
{
    char by[64];

    if (notify_watcher(kind, text, pc) || note(kind, 0, 0, false, text))
        return;
    begin();
    symbol_format(pc, by, sizeof(by));
    kprintf("\nubsan: %s: %s\n", kind, text);
    debugcon_event("{\"event\":\"sanitizer\",\"kind\":\"%s\",\"what\":\"%s\","
                   "\"by\":\"%s\"}",
                   kind, text, by);
    print_callers(pc, ebp);
    panic("ubsan: %s: %s by %s", kind, text, by);
}
