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
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_NONE = -1,
};

#define CTRL(c) ((c)&0x1f)

/* The character for a key: those without one have Emacs' control characters.
 * 0: none. */
static inline char key_character(int key)
{
    static const char beyond[] = {
        [KEY_UP - KEY_UP] = CTRL('P'),    [KEY_DOWN - KEY_UP] = CTRL('N'),
        [KEY_LEFT - KEY_UP] = CTRL('B'),  [KEY_RIGHT - KEY_UP] = CTRL('F'),
        [KEY_HOME - KEY_UP] = CTRL('A'),  [KEY_END - KEY_UP] = CTRL('E'),
        [KEY_DELETE - KEY_UP] = CTRL('D')};

    if (key < KEY_UP)
        return (char)key;
    return key <= KEY_DELETE ? beyond[key - KEY_UP] : 0;
}
