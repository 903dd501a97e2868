/*
 * The mistakes, and the command that makes them, with a panic: `sanitize KIND`.
 *
 * Volatile variables and functions that are not inlined hide mistakes from the
 * compiler, which knows these rules too.
 */
#include "tools/workshop/sanitize/mistakes.h"
#include "drivers/console.h"
#include "kernel/lib/string.h"
#include "tools/workshop/sanitize/kasan.h"
#include "kernel/shell/shell.h"
#include "kernel/vm/user.h"
#include "mm/buddy.h"
#include "mm/kmem.h"
#include "mm/inspect/kmem_stat.h"

#define MISTAKE static __attribute__((noinline)) void

#define ODD 13 /* bytes asked for: a class has 16, a granule 8 */

static volatile int one = 1;
static volatile int zero;
static volatile int largest = INT32_MAX;
static volatile char sink;

static __attribute__((noipa)) void write_byte(char *p)
{
    *p = 1;
}

static __attribute__((noipa)) void read_byte(const char *p)
{
    sink = *p;
}

/* ---- the heap ----------------------------------------------------------- */

MISTAKE heap_write(void)
{
    char *p = kmem_alloc(ODD, KM_SLEEP);

    write_byte(p + ODD);
    kmem_free(p, ODD);
}

MISTAKE heap_read(void)
{
    char *p = kmem_zalloc(ODD, KM_SLEEP);

    read_byte(p + ODD);
    kmem_free(p, ODD);
}

MISTAKE heap_wide_read(void)
{
    char *p = kmem_zalloc(ODD, KM_SLEEP);

    sink = (char)*(volatile uint32_t *)(p + ODD / 4 * 4);
    kmem_free(p, ODD);
}

MISTAKE heap_large(void)
{
    char *p = kmem_alloc(KMEM_MAXBUF + ODD, KM_SLEEP);

    write_byte(p + KMEM_MAXBUF + ODD);
    kmem_free(p, KMEM_MAXBUF + ODD);
}

/* The last bytes of a slab of small objects belong to the allocator. */
MISTAKE slab_header(void)
{
    char *p = kmem_alloc(ODD, KM_SLEEP);

    read_byte((const char *)((uintptr_t)p | PAGE_MASK));
    kmem_free(p, ODD);
}

MISTAKE after_free(void)
{
    char *p = kmem_alloc(64, KM_SLEEP);

    kmem_free(p, 64);
    write_byte(p + ODD);
}

MISTAKE read_after_free(void)
{
    char *p = kmem_alloc(1024, KM_SLEEP);

    kmem_free(p, 1024);
    read_byte(p);
}

MISTAKE free_twice(void)
{
    char *p = kmem_alloc(64, KM_SLEEP);

    kmem_free(p, 64);
    kmem_free(p, 64);
}

MISTAKE free_inside(void)
{
    char *p = kmem_alloc(64, KM_SLEEP);

    kmem_cache_free(kmem_size_class(64), p + 8);
    kmem_free(p, 64);
}

MISTAKE free_elsewhere(void)
{
    char *p = kmem_alloc(64, KM_SLEEP);

    kmem_cache_free(kmem_size_class(128), p);
    kmem_free(p, 64);
}

MISTAKE free_other_size(void)
{
    char *p = kmem_alloc(ODD, KM_SLEEP);

    kmem_free(p, ODD - 1);
    kmem_free(p, ODD);
}

MISTAKE free_page(void)
{
    struct page *p = buddy_alloc(0);
    char *at = page_to_virt(p);

    buddy_free(p, 0);
    write_byte(at);
}

/* ---- ranges ------------------------------------------------------------- */

MISTAKE copy_too_much(void)
{
    char *p = kmem_zalloc(ODD, KM_SLEEP);
    char to[32];

    memcpy(to, p, ODD + (size_t)one);
    read_byte(to);
    kmem_free(p, ODD);
}

MISTAKE fill_too_much(void)
{
    char *p = kmem_alloc(ODD, KM_SLEEP);

    memset(p, 0, ODD + (size_t)one);
    kmem_free(p, ODD);
}

/* Without its NUL, a string goes on past the object. */
MISTAKE endless_string(void)
{
    char *p = kmem_alloc(ODD, KM_SLEEP);

    memset(p, 'x', ODD);
    sink = (char)strlen(p);
    kmem_free(p, ODD);
}

/* As a system call copies data to a program. */
MISTAKE user_too_much(void)
{
    char *p = kmem_zalloc(ODD, KM_SLEEP);
    char to[32];

    user_copy(to, p, ODD + (size_t)one);
    read_byte(to);
    kmem_free(p, ODD);
}

/* ---- stack and globals -------------------------------------------------- */

static char table[ODD];

MISTAKE stack_write(void)
{
    char on_stack[ODD];

    write_byte(on_stack + ODD);
    read_byte(on_stack);
}

MISTAKE stack_left_block(void)
{
    char *p = table;

    for (int i = 0; i < one; i++) {
        char inner[32];

        write_byte(inner);
        p = inner;
    }
    /* cppcheck-suppress invalidLifetime */
    read_byte(p);
}

MISTAKE global_read(void)
{
    read_byte(table + ODD);
}

/* ---- undefined behaviour ------------------------------------------------ */

enum colour {
    RED,
    GREEN
};

struct pair {
    int pair_a;
    int pair_b;
};

static __attribute__((noipa, nonnull)) void take(const int *p)
{
    sink = (char)(uintptr_t)p;
}

MISTAKE shift_far(void)
{
    sink = (char)(one << (one + 32));
}

MISTAKE add_over(void)
{
    sink = (char)(largest + one);
}

MISTAKE negate_least(void)
{
    int least = -largest - one;

    sink = (char)-least;
}

MISTAKE divide(void)
{
    sink = (char)(one / zero);
}

MISTAKE index_far(void)
{
    static const int row[4] = {1, 2, 3, 4};

    sink = (char)row[one + 3];
}

MISTAKE misaligned(void)
{
    static int words[2];
    volatile uintptr_t at = (uintptr_t)words + 1;

    sink = (char)*(volatile int *)at;
}

MISTAKE member_of_null(void)
{
    struct pair *volatile none = NULL;

    take(&none->pair_b);
}

MISTAKE null_argument(void)
{
    const int *volatile none = NULL;

    take(none);
}

MISTAKE pointer_far(void)
{
    const char *volatile p = table;

    sink = (char)(uintptr_t)(p + largest);
}

MISTAKE not_a_bool(void)
{
    volatile bool b = false;

    *(volatile char *)&b = 2;
    sink = b;
}

MISTAKE count_zeros(void)
{
    sink = (char)__builtin_clz((unsigned)zero);
}

/* ---- the table ---------------------------------------------------------- */

static const char overrun[] = "heap-out-of-bounds";
static const char overflow[] = "integer-overflow";

const struct mistake mistakes[] = {
    {"heap", overrun, "writes one byte past an object", heap_write},
    {"read", overrun, "reads one byte past an object", heap_read},
    {"wide", overrun, "reads a word that ends past an object", heap_wide_read},
    {"large", overrun, "writes past a request of whole pages", heap_large},
    {"header", overrun, "reads the slab's own data", slab_header},
    {"uaf", "use-after-free", "writes to an object that is free", after_free},
    {"uaf-read", "use-after-free", "reads one", read_after_free},
    {"free", "double-free", "frees an object twice", free_twice},
    {"inside", "interior-free", "frees the middle of an object", free_inside},
    {"foreign", "foreign-free", "frees an object to another cache",
     free_elsewhere},
    {"size", "wrong-size-free", "frees with another size than it asked for",
     free_other_size},
    {"page", "use-of-free-page", "writes to a page that buddy has", free_page},
    {"memcpy", overrun, "copies more than an object has", copy_too_much},
    {"memset", overrun, "fills more than an object has", fill_too_much},
    {"strlen", overrun, "measures a string without an end", endless_string},
    {"user", overrun, "copies more than an object has to a program",
     user_too_much},
    {"stack", "stack-out-of-bounds", "writes past an array on the stack",
     stack_write},
    {"scope", "stack-use-after-scope", "reads a variable after its block",
     stack_left_block},
    {"global", "global-out-of-bounds", "reads past a global array",
     global_read},
    {"shift", "shift", "shifts by more bits than there are", shift_far},
    {"add", overflow, "adds 1 to the largest int", add_over},
    {"negate", overflow, "negates the least int", negate_least},
    {"divide", "division", "divides by 0", divide},
    {"index", "index", "takes element 4 of 4", index_far},
    {"align", "alignment", "reads an int at an odd address", misaligned},
    {"null", "null-pointer", "takes a member of a null pointer",
     member_of_null},
    {"nonnull", "null-argument", "passes null where it may not", null_argument},
    {"pointer", "pointer-overflow", "moves a pointer round the end of memory",
     pointer_far},
    {"bool", "invalid-value", "reads a bool that is 2", not_a_bool},
    {"builtin", "builtin", "counts the leading zeros of 0", count_zeros},
};

const size_t mistake_count = ARRAY_SIZE(mistakes);

/* ---- the command -------------------------------------------------------- */

static int list(void)
{
    kprintf("%-9s %-22s %s\n", "KIND", "REPORT", "WHAT IT DOES");
    for (size_t i = 0; i < mistake_count; i++)
        kprintf("%-9s %-22s %s\n", mistakes[i].mistake_name,
                mistakes[i].mistake_kind, mistakes[i].mistake_says);
    return 0;
}

static int cmd_sanitize(char **argv)
{
    if (!argv[1])
        return list();
    for (size_t i = 0; i < mistake_count; i++) {
        if (strcmp(argv[1], mistakes[i].mistake_name) == 0) {
            mistakes[i].mistake_make();
            return shell_error("no sanitizer reported it");
        }
    }
    return shell_error("no kind '%.32s'; `sanitize` lists them", argv[1]);
}

static void offer_mistakes(const struct shell_offer *o)
{
    for (size_t i = 0; i < mistake_count; i++)
        shell_offer(o, mistakes[i].mistake_name);
}

SHELL_COMMAND(sanitize, {"[MISTAKE]", cmd_sanitize, SHELL_ACTION});
SHELL_WORDS(MISTAKE, offer_mistakes);
