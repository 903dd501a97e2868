/*
 * The undefined behaviour sanitizer. Before every operation that C leaves
 * undefined for some operands the compiler inserts a test for those, and a
 * call of one of the functions below with a description of the operation.
 * Each reports what was about to happen and where in the source.
 *
 * An operand is handed over as a word: its value, or, if it does not fit, its
 * address.
 */
#include "kernel/lib/printf.h"
#include "tools/workshop/sanitize/kasan.h"

struct location {
    const char *location_file;
    uint32_t location_line;
    uint32_t location_column;
};

struct type {
    uint16_t type_kind; /* 0: an integer */
    uint16_t type_info; /* bit 0: signed; the rest: log2 of the bits */
    char type_name[];   /* in quotes */
};

struct operation { /* overflow, a value that its type does not have */
    struct location op_where;
    const struct type *op_type;
};

struct shift {
    struct location shift_where;
    const struct type *shift_left;
    const struct type *shift_right;
};

struct index {
    struct location index_where;
    const struct type *index_array;
    const struct type *index_type;
};

struct mismatch {
    struct location mismatch_where;
    const struct type *mismatch_type;
    uint8_t mismatch_align; /* log2 */
    uint8_t mismatch_use;   /* index into uses[] */
};

struct place { /* pointer overflow, unreachable code */
    struct location place_where;
};

struct returned {
    struct location returned_attribute;
};

struct argument {
    struct location arg_where;
    struct location arg_attribute;
    int arg_number;
};

struct builtin {
    struct location builtin_where;
    uint8_t builtin_kind; /* 0 ctz, 1 clz */
};

#define TEXT_MAX  128
#define VALUE_MAX 24

static const char *const uses[] = {
    "load of",
    "store to",
    "reference to",
    "member access within",
    "member call on",
    "constructor call on",
    "downcast of",
    "downcast of",
    "upcast of",
    "cast to virtual base of",
    "nonnull binding to",
    "dynamic operation on",
};

/* Builds the text of a report, `where` and then the message. */
static void say(const char *kind, const struct location *where, uintptr_t pc,
                uintptr_t ebp, const char *fmt, ...) PRINTF_LIKE(5, 6);

static void say(const char *kind, const struct location *where, uintptr_t pc,
                uintptr_t ebp, const char *fmt, ...)
{
    char text[TEXT_MAX];
    va_list ap;
    int n;

    if (!sanitizer_enter())
        return;
    n = snprintf(text, sizeof(text), "%s:%u: ", where->location_file,
                 (unsigned)where->location_line);
    va_start(ap, fmt);
    if (n > 0 && n < (int)sizeof(text))
        vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
    va_end(ap);
    ubsan_report(kind, text, pc, ebp);
}

#define SAY(kind, where, ...) say(kind, where, CALLER, __VA_ARGS__)

static unsigned bits_of(const struct type *t)
{
    return 1u << (t->type_info >> 1);
}

static bool is_signed(const struct type *t)
{
    return t->type_kind == 0 && (t->type_info & 1) != 0;
}

static uint64_t value_of(const struct type *t, uintptr_t word)
{
    unsigned bits = t->type_kind == 0 ? bits_of(t) : 32;
    uint64_t value = bits == 64 ? *(const uint64_t *)word : word;

    if (bits < 64)
        value &= ((uint64_t)1 << bits) - 1;
    if (bits < 64 && is_signed(t) && (value >> (bits - 1) & 1) != 0)
        value |= ~(((uint64_t)1 << bits) - 1);
    return value;
}

static const char *show(const struct type *t, uintptr_t word, char *buf)
{
    uint64_t value = value_of(t, word);

    if (t->type_kind == 0 && bits_of(t) > 64)
        snprintf(buf, VALUE_MAX, "a wide number");
    else if (is_signed(t))
        snprintf(buf, VALUE_MAX, "%lld", (long long)value);
    else
        snprintf(buf, VALUE_MAX, "%llu", (unsigned long long)value);
    return buf;
}

/* ---- arithmetic --------------------------------------------------------- */

#define OVERFLOW(name, sign)                                                   \
    void __ubsan_handle_##name##_overflow(const struct operation *op,          \
                                          uintptr_t a, uintptr_t b)            \
    {                                                                          \
        char left[VALUE_MAX];                                                  \
        char right[VALUE_MAX];                                                 \
                                                                               \
        SAY("integer-overflow", &op->op_where,                                 \
            "%s " sign " %s is too much for %s", show(op->op_type, a, left),   \
            show(op->op_type, b, right), op->op_type->type_name);              \
    }

OVERFLOW(add, "+")
OVERFLOW(sub, "-")
OVERFLOW(mul, "*")

void __ubsan_handle_negate_overflow(const struct operation *op, uintptr_t a)
{
    char value[VALUE_MAX];

    SAY("integer-overflow", &op->op_where, "-(%s) is too much for %s",
        show(op->op_type, a, value), op->op_type->type_name);
}

void __ubsan_handle_divrem_overflow(const struct operation *op, uintptr_t a,
                                    uintptr_t b)
{
    char left[VALUE_MAX];
    char right[VALUE_MAX];

    SAY("division", &op->op_where, "%s / %s", show(op->op_type, a, left),
        show(op->op_type, b, right));
}

void __ubsan_handle_shift_out_of_bounds(const struct shift *s, uintptr_t a,
                                        uintptr_t b)
{
    char left[VALUE_MAX];
    char right[VALUE_MAX];

    SAY("shift", &s->shift_where, "%s of %s shifted by %s bits",
        show(s->shift_left, a, left), s->shift_left->type_name,
        show(s->shift_right, b, right));
}

/* ---- pointers and arrays ------------------------------------------------ */

void __ubsan_handle_out_of_bounds(const struct index *i, uintptr_t word)
{
    char value[VALUE_MAX];

    SAY("index", &i->index_where, "index %s of %s",
        show(i->index_type, word, value), i->index_array->type_name);
}

void __ubsan_handle_type_mismatch_v1(const struct mismatch *m, uintptr_t addr)
{
    uintptr_t align = (uintptr_t)1 << m->mismatch_align;
    const char *use =
        m->mismatch_use < ARRAY_SIZE(uses) ? uses[m->mismatch_use] : "use of";
    const char *name = m->mismatch_type->type_name;

    if (addr == 0)
        SAY("null-pointer", &m->mismatch_where, "%s a null pointer to %s", use,
            name);
    else if (addr % align != 0)
        SAY("alignment", &m->mismatch_where,
            "%s 0x%08lx, which is misaligned for %s", use, (unsigned long)addr,
            name);
    else
        SAY("object-size", &m->mismatch_where,
            "%s 0x%08lx, which has no room for %s", use, (unsigned long)addr,
            name);
}

void __ubsan_handle_pointer_overflow(const struct place *p, uintptr_t base,
                                     uintptr_t result)
{
    SAY("pointer-overflow", &p->place_where,
        "a pointer to 0x%08lx is moved to 0x%08lx", (unsigned long)base,
        (unsigned long)result);
}

void __ubsan_handle_nonnull_arg(const struct argument *a)
{
    SAY("null-argument", &a->arg_where, "argument %d may not be null",
        a->arg_number);
}

void __ubsan_handle_nonnull_return_v1(const struct returned *r,
                                      const struct location *where)
{
    (void)r;
    SAY("null-return", where, "this function may not return null");
}

void __ubsan_handle_vla_bound_not_positive(const struct operation *op,
                                           uintptr_t bound)
{
    char value[VALUE_MAX];

    SAY("array-size", &op->op_where, "an array of %s elements",
        show(op->op_type, bound, value));
}

/* ---- values and places -------------------------------------------------- */

void __ubsan_handle_load_invalid_value(const struct operation *op,
                                       uintptr_t word)
{
    char value[VALUE_MAX];

    SAY("invalid-value", &op->op_where, "%s is no value of %s",
        show(op->op_type, word, value), op->op_type->type_name);
}

void __ubsan_handle_invalid_builtin(const struct builtin *b)
{
    SAY("builtin", &b->builtin_where, "%s of 0",
        b->builtin_kind == 0 ? "__builtin_ctz" : "__builtin_clz");
}

void __ubsan_handle_builtin_unreachable(const struct place *p)
{
    SAY("unreachable", &p->place_where, "unreachable code was reached");
}
