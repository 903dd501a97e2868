/*
 * Physical memory: a cell for each page frame, in the colour of its owner. The
 * canvas has a point for each frame; the style sheet enlarges it, and draws the
 * lines between.
 */
import { DIRECT_MAP, PAGE_SIZE } from "./guest.mjs";

export const CELL = 4; // points of the screen; as in heap.css

/* enum page_state -> the name of a colour. Frames of a cache have its own. */
const USES = {
    PAGE_RESERVED: "reserved", PAGE_KERNEL: "kernel", PAGE_FREE: "empty",
    PAGE_ALLOC: "oversize", PAGE_OVERSIZE: "oversize", PAGE_UNMAPPED: "bad",
    PAGE_USER: "user",
};

/* A colour "#rrggbb" as a word of ImageData. */
function pixel(colour, opacity) {
    const n = parseInt(colour.slice(1), 16);
    return (opacity << 24 | (n & 255) << 16 | n & 0xff00 | n >>> 16) >>> 0;
}

export class FramesView {
    constructor(canvas, guest) {
        this.canvas = canvas;
        this.uses = new Map(Object.entries(guest.layouts.enums.page_state).map(
            ([name, n]) => [n, USES[name] ?? null]));
    }

    /* `colourOf(address of a cache)` is its colour. Frames of others than
     * `highlight` are pale, if it is not 0. */
    draw(frames, look, colourOf, highlight) {
        const { canvas } = this, count = frames.states.length;
        const across = Math.max(16, Math.floor(look.width / CELL));
        const down = Math.ceil(count / across);

        if (canvas.width !== across || canvas.height !== down) {
            canvas.width = across;
            canvas.height = down;
            canvas.parentElement.style.width = `${across * CELL}px`;
            canvas.parentElement.style.height = `${down * CELL}px`;
        }
        const g = canvas.getContext("2d"), known = new Map();
        const image = g.createImageData(across, down);
        const pixels = new Uint32Array(image.data.buffer);
        for (let i = 0; i < count; i++) {
            const key = frames.owners[i] || frames.states[i];
            let colour = known.get(key);
            if (colour === undefined) {
                const use = this.uses.get(frames.states[i]);
                colour = pixel(use ? look.colours[use] : colourOf(key),
                               highlight && key !== highlight ? 64 : 255);
                known.set(key, colour);
            }
            pixels[i] = colour;
        }
        g.putImageData(image, 0, 0);
        Object.assign(this, { frames, across });
    }

    /* The frame at a point, or -1. */
    at(x, y) {
        const i = Math.floor(y / CELL) * this.across + Math.floor(x / CELL);
        return i < (this.frames?.states.length ?? 0) ? i : -1;
    }

    /* The address that the kernel has for a frame. */
    address(i) {
        return (DIRECT_MAP + i * PAGE_SIZE) >>> 0;
    }
}
