/*
 * Formatted printing into memory, after the C standard (C17, 7.21.6.1).
 *
 * A directive is parsed into a struct spec. Then its argument becomes text in
 * pieces, which are written in this order:
 *
 *     blanks  sign or 0x  zeros  digits  blanks
 */
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"

/* The output buffer. Text that does not fit is only counted. */
struct out {
    char *out_buf;
    size_t out_size;
    size_t out_len;
};

/* In the order of the characters in read_flags. */
enum spec_flag {
    FLAG_LEFT = 1 << 0,  /* - */
    FLAG_ZERO = 1 << 1,  /* 0 */
    FLAG_PLUS = 1 << 2,  /* + */
    FLAG_BLANK = 1 << 3, /* a blank in place of a missing sign */
    FLAG_ALT = 1 << 4,   /* # */
};

struct spec {
    unsigned spec_flags;
    size_t spec_width;
    int spec_precision; /* negative: none was given */
    unsigned spec_bits; /* of an integer argument */
    char spec_conversion;
};

/* A 64-bit number in octal, the longest way to write one. */
#define DIGITS_MAX 22

#define BILLION        1000000000u /* the largest power of ten in 32 bits */
#define BILLION_DIGITS 9

/* ---- output ------------------------------------------------------------- */

static void out_put(struct out *o, const char *s, size_t n)
{
    if (o->out_len < o->out_size)
        memcpy(o->out_buf + o->out_len, s, MIN(n, o->out_size - o->out_len));
    o->out_len += n;
}

static void put_fill(struct out *o, char c, size_t n)
{
    if (o->out_len < o->out_size)
        memset(o->out_buf + o->out_len, c, MIN(n, o->out_size - o->out_len));
    o->out_len += n;
}

/* A field of the requested width: a prefix, zeroes and `n` characters. */
static void put_field(struct out *o, const struct spec *sp, const char *prefix,
                      size_t zeroes, const char *s, size_t n)
{
    size_t prefix_len = strlen(prefix);
    size_t used = prefix_len + zeroes + n;
    size_t pad = sp->spec_width > used ? sp->spec_width - used : 0;

    if (!(sp->spec_flags & FLAG_LEFT))
        put_fill(o, ' ', pad);
    out_put(o, prefix, prefix_len);
    put_fill(o, '0', zeroes);
    out_put(o, s, n);
    if (sp->spec_flags & FLAG_LEFT)
        put_fill(o, ' ', pad);
}

/* ---- numbers ------------------------------------------------------------ */

/* These write digits before `end` and return the first. 0 has none. */
static char *digits_u32(uint32_t value, char *end)
{
    for (; value != 0; value /= 10)
        *--end = (char)('0' + value % 10);
    return end;
}

/* Uses 64-bit division, a long loop, only for large numbers, for nine digits at
 * a time. */
static char *digits_decimal(uint64_t value, char *end)
{
    while (value >> 32) {
        char *group = end - BILLION_DIGITS;
        char *at = digits_u32((uint32_t)(value % BILLION), end);

        while (at > group)
            *--at = '0';
        end = group;
        value /= BILLION;
    }
    return digits_u32((uint32_t)value, end);
}

static char *digits_binary(uint64_t value, unsigned shift, bool upper,
                           char *end)
{
    const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";

    for (; value != 0; value >>= shift)
        *--end = digits[value & ((1u << shift) - 1)];
    return end;
}

/* Prints a number with its sign or 0x in `prefix`. */
static void put_number(struct out *o, const struct spec *sp, const char *prefix,
                       const char *digits, size_t n)
{
    size_t least = sp->spec_precision < 0 ? 1 : (size_t)sp->spec_precision;

    if ((sp->spec_flags & (FLAG_LEFT | FLAG_ZERO)) == FLAG_ZERO &&
        sp->spec_precision < 0 && sp->spec_width > strlen(prefix))
        least = MAX(least, sp->spec_width - strlen(prefix));
    put_field(o, sp, prefix, least > n ? least - n : 0, digits, n);
}

static void put_signed(struct out *o, const struct spec *sp, int64_t value)
{
    char text[DIGITS_MAX];
    char *end = text + sizeof(text);
    uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
    char *at = digits_decimal(size, end);
    const char *sign = "";

    if (value < 0)
        sign = "-";
    else if (sp->spec_flags & FLAG_PLUS)
        sign = "+";
    else if (sp->spec_flags & FLAG_BLANK)
        sign = " ";
    put_number(o, sp, sign, at, (size_t)(end - at));
}

/* A pointer has always full width, so that columns of addresses line up. */
static void put_unsigned(struct out *o, struct spec *sp, uint64_t value)
{
    char text[DIGITS_MAX];
    char *end = text + sizeof(text);
    char *at;
    const char *prefix = "";

    switch (sp->spec_conversion) {
    case 'o':
        at = digits_binary(value, 3, false, end);
        /* A leading 0, unless the precision or the value 0 gives one. */
        if ((sp->spec_flags & FLAG_ALT) &&
            (value != 0 ? sp->spec_precision <= end - at
                        : sp->spec_precision == 0))
            prefix = "0";
        break;
    case 'p':
        at = digits_binary(value, 4, false, end);
        sp->spec_precision = 2 * sizeof(void *);
        prefix = "0x";
        break;
    case 'x':
    case 'X':
        at = digits_binary(value, 4, sp->spec_conversion == 'X', end);
        if ((sp->spec_flags & FLAG_ALT) && value != 0)
            prefix = sp->spec_conversion == 'X' ? "0X" : "0x";
        break;
    default:
        at = digits_decimal(value, end);
        break;
    }
    put_number(o, sp, prefix, at, (size_t)(end - at));
}

static void put_string(struct out *o, const struct spec *sp, const char *s)
{
    if (s == NULL)
        s = "(null)";
    put_field(o, sp, "", 0, s,
              sp->spec_precision < 0 ? strlen(s)
                                     : strnlen(s, (size_t)sp->spec_precision));
}

/* ---- directives --------------------------------------------------------- */

/* A va_list in a structure, so that functions can share it by pointer whatever
 * its type. */
struct args {
    va_list args_list;
};

/* An integer argument of any length, extended to 64 bits. */
static uint64_t integer(const struct spec *sp, struct args *a)
{
    unsigned drop = 32 - sp->spec_bits;
    uint32_t value;

    if (sp->spec_bits == 64)
        return va_arg(a->args_list, uint64_t);
    value = va_arg(a->args_list, uint32_t) << drop;
    if (sp->spec_conversion == 'd' || sp->spec_conversion == 'i')
        return (uint64_t)((int32_t)value >> drop);
    return value >> drop;
}

static const char *read_flags(const char *f, struct spec *sp)
{
    static const char flags[] = "-0+ #";
    const char *flag;

    for (; *f != '\0' && (flag = strchr(flags, *f)) != NULL; f++)
        sp->spec_flags |= 1u << (flag - flags);
    return f;
}

/* A number in the format, or `*` and the number from the arguments. */
static const char *read_number(const char *f, int *n, struct args *a)
{
    if (*f == '*') {
        *n = va_arg(a->args_list, int);
        return f + 1;
    }
    for (*n = 0; *f >= '0' && *f <= '9'; f++)
        *n = *n * 10 + (*f - '0');
    return f;
}

static const char *read_width(const char *f, struct spec *sp, struct args *a)
{
    int n;

    f = read_number(f, &n, a);
    if (n < 0)
        sp->spec_flags |= FLAG_LEFT;
    sp->spec_width = n < 0 ? -(unsigned)n : (unsigned)n;
    if (*f == '.')
        f = read_number(f + 1, &sp->spec_precision, a);
    return f;
}

/* int, long and size_t have 32 bits. */
static const char *read_length(const char *f, struct spec *sp)
{
    char c = *f;
    bool twice = c != '\0' && f[1] == c;

    if (c == 'h')
        sp->spec_bits = twice ? 8 : 16;
    else if (c == 'l')
        sp->spec_bits = twice ? 64 : 32;
    else if (c != 'z')
        return f;
    return f + 1 + (twice && c != 'z');
}

/* False if there is no such conversion. */
static bool convert(struct out *o, struct spec *sp, struct args *a)
{
    char c;

    switch (sp->spec_conversion) {
    case 'd':
    case 'i':
        put_signed(o, sp, (int64_t)integer(sp, a));
        return true;
    case 'o':
    case 'u':
    case 'x':
    case 'X':
        put_unsigned(o, sp, integer(sp, a));
        return true;
    case 'c':
        c = (char)va_arg(a->args_list, int);
        put_field(o, sp, "", 0, &c, 1);
        return true;
    case 's':
        put_string(o, sp, va_arg(a->args_list, const char *));
        return true;
    case 'p':
        put_unsigned(o, sp, (uintptr_t)va_arg(a->args_list, void *));
        return true;
    case '%':
        out_put(o, "%", 1);
        return true;
    default:
        return false;
    }
}

/* Prints the directive at `f`, a percent sign, and returns what follows it. An
 * invalid one is printed unchanged. */
static const char *directive(struct out *o, const char *f, struct args *a)
{
    const char *start = f;
    struct spec sp = {.spec_precision = -1, .spec_bits = 32};

    f = read_flags(f + 1, &sp);
    f = read_width(f, &sp, a);
    f = read_length(f, &sp);
    sp.spec_conversion = *f;
    if (*f != 0)
        f++;
    if (!convert(o, &sp, a))
        out_put(o, start, (size_t)(f - start));
    return f;
}

int vsnprintf(char *buf, size_t size, const char *fmt, va_list ap)
{
    struct out o = {.out_buf = buf, .out_size = size};
    struct args a;

    va_copy(a.args_list, ap);
    while (*fmt != 0) {
        const char *run = fmt;

        while (*fmt != 0 && *fmt != '%')
            fmt++;
        out_put(&o, run, (size_t)(fmt - run));
        if (*fmt == '%')
            fmt = directive(&o, fmt, &a);
    }
    va_end(a.args_list);
    if (size > 0)
        buf[MIN(o.out_len, size - 1)] = 0;
    return (int)o.out_len;
}

int snprintf(char *buf, size_t size, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(buf, size, fmt, ap);
    va_end(ap);
    return n;
}
