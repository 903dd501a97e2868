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

uint32_t size_between(const char *text, uint32_t least, uint32_t most)
{
    uint32_t size;

    if (!parse_size(text, &size) || size < least || size > most)
        errx(2, "%s: not a size from %u to %u bytes; 4k and 1M are sizes", text,
             (unsigned)least, (unsigned)most);
    return size;
}
