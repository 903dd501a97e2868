/*
 * From the scan codes of a PC keyboard (set 1) to characters and keys: a
 * state machine without hardware, fed by kbd.c and by its tests.
 */
#pragma once

#include "drivers/console.h"

struct scancode_decoder {
    uint8_t scan_shift; /* bit 0: left shift is down, bit 1: right */
    uint8_t scan_ctrl;  /* the same for control */
    bool scan_caps;
    bool scan_num;
    bool scan_extended; /* an E0 came */
    uint8_t scan_skip;  /* bytes of the Pause key still to come */
};

/* Takes in one byte. Returns a key (1 … 255 or enum console_key), or KEY_NONE
 * for releases, prefixes, shift keys and keys without a meaning. A decoder
 * starts as zeroes. US layout; Alt is ignored. */
int scancode_decode(struct scancode_decoder *s, uint8_t code);
