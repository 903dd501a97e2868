/*
 * The model of an 80 x 25 text screen: a terminal that understands the control
 * sequences that Slate prints, and keeps lines that scrolled off. It depends on
 * no hardware but the format of a cell, so its tests run in ordinary memory.
 */
#pragma once

#include "kernel/lib/types.h"

#define SCREEN_COLS 80u
#define SCREEN_ROWS 25u

/* Each cell: attribute << 8 | character. */
typedef uint16_t screen_line_t[SCREEN_COLS] __attribute__((aligned(4)));

/*
 *     ring of lines            cells (what is shown)
 *     +-----------+
 *     |  past     |            +------------------+
 *     +-----------+ <- top     |  25 lines from   |
 *     |  25 lines |            |  top - view on   |
 *     |  of now   |            +------------------+
 *     +-----------+
 */
struct screen {
    volatile uint16_t *screen_cells; /* SCREEN_ROWS x SCREEN_COLS, the
                                        caller's */
    screen_line_t *screen_lines;     /* the ring, the caller's */
    unsigned screen_size;            /* lines in the ring */
    unsigned screen_top;             /* index of the current screen's first
                                        line */
    unsigned screen_past;            /* lines kept before it */
    unsigned screen_view;            /* lines the user scrolled back */
    unsigned screen_row;
    unsigned screen_col;
    bool screen_wrap; /* column 79 is written: the next character wraps */
    uint8_t screen_attr;
    uint8_t screen_state; /* of the control sequence being read */
    uint8_t screen_params;
    uint16_t screen_param[4];
};

/* Initializes a cleared screen on `cells` with a ring of `size` (> SCREEN_ROWS)
 * lines; both are the caller's and aligned to 4. */
void screen_init(struct screen *s, volatile uint16_t *cells,
                 screen_line_t *lines, unsigned size);

/* Shows text at the cursor. \n starts a new line; \r, \b and \t move; ESC [
 * with C H J K m is processed, other sequences are ignored. Ends scrolling
 * back. */
void screen_write(struct screen *s, const char *text, size_t n);

/* Scrolls `lines` back (negative: forward), within the lines kept. While it is
 * back, the end of the last row says how far. */
void screen_look(struct screen *s, int lines);
