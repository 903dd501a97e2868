/*
 * Numbers typed by the user.
 */
#include "user/lib/number.h"
#include "user/lib/err.h"
#include "user/lib/string.h"

uint32_t number_between(const char *text, uint32_t least, uint32_t most)
{
    uint32_t value;

    if (!parse_u32(text, &value) || value < least || value > most)
        errx(2, "%s: not a number from %u to %u", text, (unsigned)least,
             (unsigned)most);
    return value;
}

/* A number and its unit, or UINT64_MAX. */
static uint64_t size_of(const char *text)
{
    uint32_t value;
    unsigned shift;

    if (!scan_u32(&text, &value))
        return UINT64_MAX;
    shift = (*text | 32) == 'k' ? 10 : (*text | 32) == 'm' ? 20 : 0;
    text += shift != 0;
    return *text == 0 ? (uint64_t)value << shift : UINT64_MAX;
}

uint32_t size_between(const char *text, uint32_t least, uint32_t most)
{
    uint64_t size = size_of(text);

    if (size < least || size > most)
        errx(2, "%s: not a size from %u to %u bytes; 4k and 1M are sizes", text,
             (unsigned)least, (unsigned)most);
    return (uint32_t)size;
}
