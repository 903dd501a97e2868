/*
 * The model of an 80 x 25 text screen: a terminal that understands the few
 * control sequences which Slate itself prints, with lines that have scrolled
 * off kept for looking back. Knows no hardware but the layout of a cell, so
 * its tests run on ordinary memory.
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
    volatile uint16_t *screen_cells; /* SCREEN_ROWS x SCREEN_COLS, not ours */
    screen_line_t *screen_lines;     /* the ring, not ours */
    unsigned screen_size;            /* lines in the ring */
    unsigned screen_top;             /* index of the first line of now */
    unsigned screen_past;            /* lines kept above it */
    unsigned screen_view;            /* how many lines the user looks back */
    unsigned screen_row;
    unsigned screen_col;
    bool screen_wrap;   /* column 79 is written: the next character wraps */
    bool screen_hidden; /* the cursor is not to be seen */
    uint8_t screen_attr;
    uint8_t screen_state; /* of the control sequence being read */
    uint8_t screen_params;
    bool screen_private; /* the sequence began with `?` */
    uint16_t screen_param[4];
    /* While the second screen is shown: where the first one waits. */
    bool screen_second;
    unsigned screen_scrolled; /* lines that the second has scrolled since */
    unsigned screen_first_top, screen_first_past;
    unsigned screen_first_row, screen_first_col;
};

/* A cleared screen on `cells` with a ring of `size` (> SCREEN_ROWS) lines;
 * both stay with the caller and begin on multiples of 4. */
void screen_init(struct screen *s, volatile uint16_t *cells,
                 screen_line_t *lines, unsigned size);

/* Shows text at the cursor. \n starts a new line; \r, \b and \t move; ESC [
 * with A B C D H J K m is obeyed, every other sequence swallowed. Ends any
 * looking back.
 *
 * ESC [ ? 1 0 4 9 h keeps the screen and shows an empty one, with l in place of
 * h the kept one comes back, unless so much was printed meanwhile that the
 * ring has lost it, or has no room for two. ESC [ ? 2 5 l hides the cursor. */
void screen_write(struct screen *s, const char *text, size_t n);

/* Looks `lines` further back (negative: forward), within what is kept. */
void screen_look(struct screen *s, int lines);
