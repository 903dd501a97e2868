/*
 * Decodes the bytes of a serial terminal into keys: the escape sequences of
 * ECMA-48 and xterm for arrows, Home, Delete and others.
 */
#pragma once

#include "drivers/console.h"

struct ansi_decoder {
    uint8_t ansi_state;
    bool ansi_cr;        /* the last byte was a carriage return */
    bool ansi_first;     /* still in the sequence's first number */
    uint16_t ansi_param; /* that number */
};

/* Processes one byte. Returns a key (1 to 255 or enum console_key), or KEY_NONE
 * while a sequence is incomplete or unknown. Every byte yields at most one key.
 * The initial state is all zeroes. */
int ansi_decode(struct ansi_decoder *a, uint8_t byte);
