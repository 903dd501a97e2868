/*
 * The decoder of a serial terminal's keys (ECMA-48, section 5.4; xterm's
 * "PC-style function keys").
 *
 *     ESC [ A          cursor keys, Home and End      CSI
 *     ESC [ 3 ~        Delete, Page Up …              CSI with a number
 *     ESC [ 1 ; 5 C    the same with Control held     rest ignored
 *     ESC O A          the same, application mode     SS3
 *     ESC [ [ A        F1 of the Linux console        ignored
 *
 * An incomplete or unknown sequence is dropped as a whole, so that no part of
 * it becomes text. A control character inside a sequence ends it and is
 * processed, so that ^C and Enter always work.
 */
#include "drivers/ansi.h"

enum ansi_state {
    GROUND,
    ESCAPE,
    CSI,
    SS3,
    LINUX
};

#define ESC 27

static int ground(struct ansi_decoder *a, uint8_t byte)
{
    bool after_cr = a->ansi_cr;

    a->ansi_state = byte == ESC ? ESCAPE : GROUND;
    a->ansi_cr = byte == '\r';
    switch (byte) {
    case 0:
    case ESC:
        return KEY_NONE;
    case '\r':
        return '\n';
    case '\n':
        return after_cr ? KEY_NONE : '\n';
    case 127:
        return '\b';
    default:
        return byte;
    }
}

static int letter_key(uint8_t byte)
{
    static const int16_t keys[] = {KEY_UP,   KEY_DOWN, KEY_RIGHT, KEY_LEFT,
                                   KEY_NONE, KEY_END,  KEY_NONE,  KEY_HOME};

    return byte >= 'A' && byte <= 'H' ? keys[byte - 'A'] : KEY_NONE;
}

static int number_key(unsigned n)
{
    static const int16_t keys[] = {KEY_NONE,      KEY_HOME, KEY_NONE,
                                   KEY_DELETE,    KEY_END,  KEY_PAGE_UP,
                                   KEY_PAGE_DOWN, KEY_HOME, KEY_END};

    return n < ARRAY_SIZE(keys) ? keys[n] : KEY_NONE;
}

static int csi(struct ansi_decoder *a, uint8_t byte)
{
    if (byte >= '0' && byte <= '9') {
        if (a->ansi_first && a->ansi_param < 1000)
            a->ansi_param = (uint16_t)(a->ansi_param * 10 + (byte - '0'));
        return KEY_NONE;
    }
    if (byte == '[' && a->ansi_first && a->ansi_param == 0) {
        a->ansi_state = LINUX;
        return KEY_NONE;
    }
    a->ansi_first = false;
    if (byte < '@') /* `;` and other parameter bytes */
        return KEY_NONE;
    a->ansi_state = GROUND;
    return byte == '~' ? number_key(a->ansi_param) : letter_key(byte);
}

static int after_escape(struct ansi_decoder *a, uint8_t byte)
{
    a->ansi_param = 0;
    a->ansi_first = true;
    if (byte == '[')
        a->ansi_state = CSI;
    else if (byte == 'O')
        a->ansi_state = SS3;
    else
        return ground(a, byte); /* Alt and a key: the key */
    return KEY_NONE;
}

int ansi_decode(struct ansi_decoder *a, uint8_t byte)
{
    if (a->ansi_state == GROUND || byte < ' ' || byte > '~')
        return ground(a, byte);
    switch (a->ansi_state) {
    case ESCAPE:
        return after_escape(a, byte);
    case CSI:
        return csi(a, byte);
    case LINUX:
        a->ansi_state = GROUND;
        return KEY_NONE;
    default: /* SS3 */
        a->ansi_state = GROUND;
        return letter_key(byte);
    }
}
