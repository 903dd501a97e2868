/*
 * From the bytes that a serial terminal sends to keys: undoes the escape
 * sequences of ECMA-48 and of xterm for arrows, Home, Delete and the like.
 */
#pragma once

#include "drivers/console.h"

struct ansi_decoder {
    uint8_t ansi_state;
    bool ansi_cr;        /* the last byte was a carriage return */
    bool ansi_first;     /* still in the sequence's first number */
    uint16_t ansi_param; /* that number */
};

/* Takes in one byte. Returns a key (1 … 255 or enum console_key), or KEY_NONE
 * while a sequence is incomplete or means nothing here. Never stores more
 * than one key's worth: every byte yields at most one. A decoder starts as
 * zeroes. */
int ansi_decode(struct ansi_decoder *a, uint8_t byte);
