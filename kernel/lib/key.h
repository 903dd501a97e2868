/*
 * Numbers for keys without a character, above all byte values. The console's
 * drivers produce them from escape sequences and scan codes; line editors use
 * them.
 */
#pragma once

enum console_key {
    KEY_UP = 0x100,
    KEY_DOWN,
    KEY_LEFT,
    KEY_RIGHT,
    KEY_HOME,
    KEY_END,
    KEY_DELETE,
    KEY_INSERT,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_F1, /* … KEY_F1 + 11 is F12 */
    KEY_NONE = -1,
};
