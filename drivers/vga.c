/*
 * The display adapter in text mode 3 (IBM VGA Technical Reference: CRT
 * controller registers). The screen model does the work; this file gives it
 * video memory and moves the hardware cursor once per write.
 */
#include "drivers/vga.h"
#include "drivers/console.h"
#include "drivers/screen.h"
#include "kernel/x86/io.h"

#define VGA_MEMORY ((volatile uint16_t *)0xC00B8000u) /* direct map */
#define VGA_LINES  400u /* lines kept, the 25 of the screen included */

#define CRTC_INDEX 0x3D4
#define CRTC_DATA  0x3D5

enum {
    CRTC_CURSOR_START = 0x0A,
    CRTC_CURSOR_END = 0x0B,
    CRTC_START_HIGH = 0x0C,
    CRTC_START_LOW = 0x0D,
    CRTC_CURSOR_HIGH = 0x0E,
    CRTC_CURSOR_LOW = 0x0F,
};

static struct screen screen;
static screen_line_t lines[VGA_LINES];

static void crtc_write(uint8_t index, uint8_t value)
{
    outb(CRTC_INDEX, index);
    outb(CRTC_DATA, value);
}

/* While the user scrolls back, it is placed below the screen. */
static void show_cursor(void)
{
    unsigned at = screen.screen_row * SCREEN_COLS + screen.screen_col;

    if (screen.screen_view > 0)
        at = SCREEN_ROWS * SCREEN_COLS;
    crtc_write(CRTC_CURSOR_HIGH, (uint8_t)(at >> 8));
    crtc_write(CRTC_CURSOR_LOW, (uint8_t)at);
}

void vga_init(void)
{
    screen_init(&screen, VGA_MEMORY, lines, VGA_LINES);
    crtc_write(CRTC_START_HIGH, 0); /* boot loaders may have scrolled */
    crtc_write(CRTC_START_LOW, 0);
    crtc_write(CRTC_CURSOR_START, 14); /* the two lowest scan lines */
    crtc_write(CRTC_CURSOR_END, 15);
    show_cursor();
}

void vga_write(const char *text, size_t n)
{
    spin_assert_held(&console_lock);
    screen_write(&screen, text, n);
    show_cursor();
}

void vga_look(int pages)
{
    spin_assert_held(&console_lock);
    screen_look(&screen, pages * (int)(SCREEN_ROWS - 1));
    show_cursor();
}
