/*
 * Decodes the scan codes of a PC keyboard (set 1) into characters and keys: a
 * state machine without hardware, used by kbd.c and its tests.
 */
#pragma once

#include "drivers/console.h"

struct scancode_decoder {
    uint8_t scan_shift; /* bit 0: left shift is down, bit 1: right */
    uint8_t scan_ctrl;  /* the same for control */
    bool scan_caps;
    bool scan_num;
    bool scan_extended; /* the prefix E0 was received */
    uint8_t scan_skip;  /* bytes of the Pause key still to come */
};

/* Processes one byte. Returns a key (1 to 255 or enum console_key), or KEY_NONE
 * for releases, prefixes, shift keys and unused keys. The initial state is all
 * zeroes. US layout; Alt is ignored. */
int scancode_decode(struct scancode_decoder *s, uint8_t code);
