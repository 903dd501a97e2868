/*
 * The keyboard's scan codes (drivers/scancode.c).
 */
#include "drivers/scancode.h"
#include "tools/workshop/ktest/ktest.h"

#define RELEASE 0x80

/* The keys of a PC keyboard, by rows: first scan code, then characters. */
static const struct {
    uint8_t first;
    const char *plain;
    const char *shifted;
} rows[] = {
    {0x02, "1234567890-=", "!@#$%^&*()_+"},
    {0x10, "qwertyuiop[]", "QWERTYUIOP{}"},
    {0x1E, "asdfghjkl;'`", "ASDFGHJKL:\"~"},
    {0x2B, "\\zxcvbnm,./", "|ZXCVBNM<>?"},
};

static int feed(struct scancode_decoder *s, const char *codes)
{
    int key = KEY_NONE;

    for (; *codes; codes++)
        key = scancode_decode(s, (uint8_t)*codes);
    return key;
}

static bool is_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

/* Presses and releases every key of the rows and compares. */
static void check_rows(struct scancode_decoder *s, bool shift, bool caps)
{
    for (unsigned r = 0; r < ARRAY_SIZE(rows); r++) {
        for (unsigned i = 0; rows[r].plain[i]; i++) {
            uint8_t code = (uint8_t)(rows[r].first + i);
            char plain = rows[r].plain[i];
            bool upper = is_letter(plain) ? shift != caps : shift;

            KT_EQ(scancode_decode(s, code), upper ? rows[r].shifted[i] : plain);
            KT_EQ(scancode_decode(s, code | RELEASE), KEY_NONE);
        }
    }
}

KTEST(scancode, characters)
{
    struct scancode_decoder s = {0};

    check_rows(&s, false, false);
    KT_EQ(feed(&s, "\x01"), 27);
    KT_EQ(feed(&s, "\x0E"), '\b');
    KT_EQ(feed(&s, "\x0F"), '\t');
    KT_EQ(feed(&s, "\x1C"), '\n');
    KT_EQ(feed(&s, "\x39"), ' ');
    KT_EQ(feed(&s, "\x37"), '*');
    KT_EQ(feed(&s, "\x56"), '\\');
}

KTEST(scancode, either_shift)
{
    struct scancode_decoder s = {0};

    KT_EQ(feed(&s, "\x2A"), KEY_NONE);
    check_rows(&s, true, false);
    KT_EQ(feed(&s, "\x36\xAA"), KEY_NONE); /* the other one is still down */
    check_rows(&s, true, false);
    KT_EQ(feed(&s, "\x56"), '|');
    feed(&s, "\xB6");
    check_rows(&s, false, false);
}

KTEST(scancode, caps_lock_turns_letters_only)
{
    struct scancode_decoder s = {0};

    KT_EQ(feed(&s, "\x3A\xBA"), KEY_NONE);
    check_rows(&s, false, true);
    feed(&s, "\x2A");
    check_rows(&s, true, true);
    feed(&s, "\xAA\x3A\xBA");
    check_rows(&s, false, false);
}

KTEST(scancode, control)
{
    struct scancode_decoder s = {0};

    feed(&s, "\x1D");
    KT_EQ(feed(&s, "\x1E"), 1);  /* ^A */
    KT_EQ(feed(&s, "\x2E"), 3);  /* ^C */
    KT_EQ(feed(&s, "\x2C"), 26); /* ^Z */
    KT_EQ(feed(&s, "\x1A"), 27); /* ^[ */
    KT_EQ(feed(&s, "\x2B"), 28); /* ^\ */
    KT_EQ(feed(&s, "\x1B"), 29); /* ^] */
    KT_EQ(feed(&s, "\x07"), 30); /* ^^ */
    KT_EQ(feed(&s, "\x0C"), 31); /* ^_ */
    KT_EQ(feed(&s, "\x1C"), '\n');
    KT_EQ(feed(&s, "\x02"), KEY_NONE);
    KT_EQ(feed(&s, "\x39"), KEY_NONE);
    feed(&s, "\x9D");
    KT_EQ(feed(&s, "\x2E"), 'c');
    feed(&s, "\xE0\x1D"); /* the right one */
    KT_EQ(feed(&s, "\x2E"), 3);
    feed(&s, "\xE0\x9D");
    KT_EQ(feed(&s, "\x2E"), 'c');
}

KTEST(scancode, extended_keys)
{
    struct scancode_decoder s = {0};

    KT_EQ(feed(&s, "\xE0\x48"), KEY_UP);
    KT_EQ(feed(&s, "\xE0\x50"), KEY_DOWN);
    KT_EQ(feed(&s, "\xE0\x4B"), KEY_LEFT);
    KT_EQ(feed(&s, "\xE0\x4D"), KEY_RIGHT);
    KT_EQ(feed(&s, "\xE0\x47"), KEY_HOME);
    KT_EQ(feed(&s, "\xE0\x4F"), KEY_END);
    KT_EQ(feed(&s, "\xE0\x49"), KEY_PAGE_UP);
    KT_EQ(feed(&s, "\xE0\x51"), KEY_PAGE_DOWN);
    KT_EQ(feed(&s, "\xE0\x52"), KEY_NONE);
    KT_EQ(feed(&s, "\xE0\x53"), KEY_DELETE);
    KT_EQ(feed(&s, "\xE0\x1C"), '\n');
    KT_EQ(feed(&s, "\xE0\x35"), '/');
    KT_EQ(feed(&s, "\xE0\xC8"), KEY_NONE);
    KT_EQ(feed(&s, "\xE0\x5B"), KEY_NONE); /* a key with a window on it */
    KT_EQ(feed(&s, "\x1E"), 'a');          /* the prefix holds for one code */
}

KTEST(scancode, shifts_that_the_keyboard_adds)
{
    struct scancode_decoder s = {0};

    KT_EQ(feed(&s, "\xE0\x2A\xE0\x48"), KEY_UP);
    KT_EQ(feed(&s, "\x1E"), 'a');
    feed(&s, "\x2A"); /* a real shift, lifted and put back by the keyboard */
    KT_EQ(feed(&s, "\xE0\xAA\xE0\x4B"), KEY_LEFT);
    KT_EQ(feed(&s, "\xE0\xCB\xE0\x2A\x1E"), 'A');
}

KTEST(scancode, function_keys_give_nothing)
{
    struct scancode_decoder s = {0};

    for (unsigned i = 0; i < 10; i++)
        KT_EQ(scancode_decode(&s, (uint8_t)(0x3B + i)), KEY_NONE);
    KT_EQ(feed(&s, "\x57"), KEY_NONE);
    KT_EQ(feed(&s, "\x58"), KEY_NONE);
}

KTEST(scancode, keypad_and_num_lock)
{
    static const char digits[] = "789-456+1230.";
    struct scancode_decoder s = {0};

    KT_EQ(feed(&s, "\x48"), KEY_UP);
    KT_EQ(feed(&s, "\x4C"), KEY_NONE); /* 5 means nothing */
    KT_EQ(feed(&s, "\x4E"), '+');
    feed(&s, "\x45\xC5");
    for (unsigned i = 0; digits[i]; i++)
        KT_EQ(scancode_decode(&s, (uint8_t)(0x47 + i)), digits[i]);
    KT_EQ(feed(&s, "\xE0\x48"), KEY_UP); /* an arrow stays one */
    KT_EQ(feed(&s, "\x2A\x48"), KEY_UP);
    KT_EQ(feed(&s, "\xAA\x45\xC5\x48"), KEY_UP);
    KT_EQ(feed(&s, "\x2A\x48"), '8');
}

KTEST(scancode, pause_gives_nothing)
{
    struct scancode_decoder s = {0};

    KT_EQ(feed(&s, "\xE1\x1D\x45\xE1\x9D\xC5"), KEY_NONE);
    KT_EQ(feed(&s, "\x2E"), 'c'); /* neither control nor num lock */
    KT_EQ(feed(&s, "\x48"), KEY_UP);
}

KTEST(scancode, alt_is_ignored)
{
    struct scancode_decoder s = {0};

    KT_EQ(feed(&s, "\x38\x1E"), 'a');
    KT_EQ(feed(&s, "\xE0\x38\x1E"), 'a');
    KT_EQ(feed(&s, "\xB8\xE0\xB8"), KEY_NONE);
}

KTEST(scancode, any_bytes_leave_it_usable)
{
    struct scancode_decoder s = {0};
    uint32_t seed = 7;

    for (unsigned i = 0; i < 20000; i++) {
        int key;

        seed = seed * 1664525u + 1013904223u;
        key = scancode_decode(&s, (uint8_t)(seed >> 24));
        if (key != KEY_NONE && (key < 1 || key > KEY_PAGE_DOWN))
            KT_FAIL("code 0x%x gave key 0x%x", seed >> 24, (unsigned)key);
    }
    feed(&s, "\x9D\x9D\x9D\xE0\x9D\xAA\xB6"); /* all are released */
    s.scan_caps = false;
    check_rows(&s, false, false);
}
