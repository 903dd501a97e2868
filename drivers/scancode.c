/*
 * Scan code set 1 (IBM PC AT Technical Reference, keyboard chapter).
 *
 * A key sends its code when pressed and code + 0x80 when released. Keys that
 * the first PC did not have send the prefix E0 and the code of a similar key.
 * The keyboard adds shift codes with E0 around some of them, which are ignored.
 * Pause sends E1 and five more bytes, in pairs, and no release.
 */
#include "drivers/scancode.h"

enum {
    SC_CTRL = 0x1D,
    SC_LEFT_SHIFT = 0x2A,
    SC_SLASH = 0x35,
    SC_RIGHT_SHIFT = 0x36,
    SC_ALT = 0x38,
    SC_CAPS = 0x3A,
    SC_NUM = 0x45,
    SC_PAD = 0x47, /* the keypad: 7 8 9 - 4 5 6 + 1 2 3 0 . */
    SC_PAD_END = 0x53,
    SC_102ND = 0x56, /* the extra key of European keyboards */
    SC_ENTER = 0x1C,
    SC_RELEASE = 0x80,
    SC_EXTENDED = 0xE0,
    SC_PAUSE = 0xE1,
};

/* Index: scan code. 0: no character. Keypad * is 0x37. */
static const char plain[] = "\0\033"
                            "1234567890-=\b\t"
                            "qwertyuiop[]\n\0"
                            "asdfghjkl;'`\0\\"
                            "zxcvbnm,./\0*\0 ";
static const char shifted[] = "\0\033"
                              "!@#$%^&*()_+\b\t"
                              "QWERTYUIOP{}\n\0"
                              "ASDFGHJKL:\"~\0|"
                              "ZXCVBNM<>?\0*\0 ";

static const char pad_digits[] = "789-456+1230.";

static const int16_t pad_keys[] = {
    KEY_HOME,      KEY_UP,    KEY_PAGE_UP, '-',     KEY_LEFT,
    KEY_NONE,      KEY_RIGHT, '+',         KEY_END, KEY_DOWN,
    KEY_PAGE_DOWN, KEY_NONE,  KEY_DELETE,
};

/* The character with Control: ^A to ^_, or nothing. */
static int control(char c)
{
    if (c == ' ' || c == '\n' || c == '\b' || c == '\t' || c == 27)
        return c == ' ' ? KEY_NONE : c;
    if (c >= 'a' && c <= 'z')
        return c & 0x1F;
    if (c == '[' || c == '\\' || c == ']')
        return c & 0x1F;
    if (c == '6') /* ^^ and ^_ need no shift */
        return 30;
    return c == '-' ? 31 : KEY_NONE;
}

static int character(const struct scancode_decoder *s, uint8_t code)
{
    bool shift = s->scan_shift != 0;
    char c;

    if (code == SC_102ND)
        return shift ? '|' : '\\';
    if (code >= sizeof(plain) - 1)
        return KEY_NONE;
    c = plain[code];
    if (c == 0)
        return KEY_NONE;
    if (s->scan_ctrl)
        return control(c);
    if (c >= 'a' && c <= 'z' && s->scan_caps)
        shift = !shift;
    return shift ? shifted[code] : c;
}

static void set_bit(uint8_t *held, uint8_t bit, bool down)
{
    *held = (uint8_t)(down ? *held | bit : *held & ~bit);
}

/* Tracks shift, control and the locks. False: `code` is none of these. */
static bool modifier(struct scancode_decoder *s, uint8_t code, bool down)
{
    switch (code) {
    case SC_LEFT_SHIFT:
        set_bit(&s->scan_shift, 1, down);
        return true;
    case SC_RIGHT_SHIFT:
        set_bit(&s->scan_shift, 2, down);
        return true;
    case SC_CTRL:
        set_bit(&s->scan_ctrl, 1, down);
        return true;
    case SC_CAPS:
        s->scan_caps ^= down;
        return true;
    case SC_NUM:
        s->scan_num ^= down;
        return true;
    default:
        return code == SC_ALT;
    }
}

static int extended(struct scancode_decoder *s, uint8_t code, bool down)
{
    if (code == SC_CTRL) {
        set_bit(&s->scan_ctrl, 2, down);
        return KEY_NONE;
    }
    if (!down)
        return KEY_NONE;
    if (code == SC_ENTER)
        return '\n';
    if (code == SC_SLASH)
        return '/';
    if (code >= SC_PAD && code <= SC_PAD_END && pad_keys[code - SC_PAD] > 255)
        return pad_keys[code - SC_PAD];
    return KEY_NONE;
}

/* On the keypad shift overrides num lock, as on every PC. */
static int pressed(const struct scancode_decoder *s, uint8_t code)
{
    bool digits = s->scan_num != (s->scan_shift != 0);

    if (code >= SC_PAD && code <= SC_PAD_END)
        return digits ? pad_digits[code - SC_PAD] : pad_keys[code - SC_PAD];
    return character(s, code);
}

int scancode_decode(struct scancode_decoder *s, uint8_t code)
{
    bool down = (code & SC_RELEASE) == 0;

    if (s->scan_skip > 0) {
        s->scan_skip--;
        return KEY_NONE;
    }
    if (code == SC_EXTENDED || code == SC_PAUSE) {
        s->scan_extended = code == SC_EXTENDED;
        s->scan_skip = code == SC_PAUSE ? 2 : 0;
        return KEY_NONE;
    }
    code &= (uint8_t)~SC_RELEASE;
    if (s->scan_extended) {
        s->scan_extended = false;
        return extended(s, code, down);
    }
    if (modifier(s, code, down) || !down)
        return KEY_NONE;
    return pressed(s, code);
}
