/*
 * The keys of a serial terminal (drivers/ansi.c).
 */
#include "drivers/ansi.h"
#include "tools/workshop/ktest/ktest.h"

/* The last key that a string of bytes gives, *keys counting all. */
static int decode(const char *bytes, unsigned *keys)
{
    struct ansi_decoder a = {0};
    int last = KEY_NONE;

    *keys = 0;
    for (; *bytes; bytes++) {
        int key = ansi_decode(&a, (uint8_t)*bytes);

        if (key == KEY_NONE)
            continue;
        last = key;
        ++*keys;
    }
    return last;
}

static void expect(const char *bytes, int want, int line)
{
    unsigned keys;
    int key = decode(bytes, &keys);

    if (key != want || keys != (want == KEY_NONE ? 0u : 1u))
        ktest_fail(__FILE__, line, "ESC%s: %u keys, last 0x%x, want 0x%x",
                   bytes + 1, keys, (unsigned)key, (unsigned)want);
}

#define EXPECT(bytes, key) expect(bytes, key, __LINE__)

KTEST(ansi, cursor_keys)
{
    EXPECT("\033[A", KEY_UP);
    EXPECT("\033[B", KEY_DOWN);
    EXPECT("\033[C", KEY_RIGHT);
    EXPECT("\033[D", KEY_LEFT);
    EXPECT("\033[H", KEY_HOME);
    EXPECT("\033[F", KEY_END);
    EXPECT("\033OA", KEY_UP);
    EXPECT("\033OH", KEY_HOME);
    EXPECT("\033[1;5C", KEY_RIGHT);
}

KTEST(ansi, numbered_keys)
{
    EXPECT("\033[1~", KEY_HOME);
    EXPECT("\033[3~", KEY_DELETE);
    EXPECT("\033[4~", KEY_END);
    EXPECT("\033[5~", KEY_PAGE_UP);
    EXPECT("\033[6~", KEY_PAGE_DOWN);
    EXPECT("\033[7~", KEY_HOME);
    EXPECT("\033[8~", KEY_END);
    EXPECT("\033[3;2~", KEY_DELETE);
}

KTEST(ansi, function_keys_and_insert_are_dropped)
{
    EXPECT("\033OP", KEY_NONE);
    EXPECT("\033OS", KEY_NONE);
    EXPECT("\033[[A", KEY_NONE);
    EXPECT("\033[[E", KEY_NONE);
    EXPECT("\033[2~", KEY_NONE);
    EXPECT("\033[9~", KEY_NONE);
    EXPECT("\033[11~", KEY_NONE);
    EXPECT("\033[24~", KEY_NONE);
}

KTEST(ansi, unknown_sequences_are_dropped_whole)
{
    EXPECT("\033[99~", KEY_NONE);
    EXPECT("\033[16~", KEY_NONE);
    EXPECT("\033[0~", KEY_NONE);
    EXPECT("\033[?25h", KEY_NONE);
    EXPECT("\033[99999999999999;1;1;1;1~", KEY_NONE);
    EXPECT("\033[1;2;3Z", KEY_NONE);
    EXPECT("\033OZ", KEY_NONE);
    EXPECT("\033[[Z", KEY_NONE);
}

KTEST(ansi, a_broken_sequence_does_not_eat_control_keys)
{
    EXPECT("\033\003", 3);
    EXPECT("\033[\003", 3);
    EXPECT("\033[1;\r", '\n');
    EXPECT("\033O\r", '\n');
    EXPECT("\033[[\b", '\b');
    EXPECT("\033[3\033[A", KEY_UP);
    EXPECT("\033x", 'x');
}

KTEST(ansi, line_ends_and_backspace)
{
    unsigned keys;

    KT_EQ(decode("\r", &keys), '\n');
    KT_EQ(decode("\n", &keys), '\n');
    KT_EQ(decode("\r\n", &keys), '\n');
    KT_EQ(keys, 1);
    decode("\r\r\n\n", &keys);
    KT_EQ(keys, 3);
    KT_EQ(decode("\177", &keys), '\b');
    KT_EQ(decode("\b", &keys), '\b');
}

KTEST(ansi, every_byte_gives_itself_or_nothing)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        struct ansi_decoder a = {0};
        int key = ansi_decode(&a, (uint8_t)byte);

        if (byte == 0 || byte == 27)
            KT_EQ(key, KEY_NONE);
        else if (byte != '\r' && byte != 127)
            KT_EQ(key, byte);
    }
}
