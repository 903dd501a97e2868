/*
 * The slabs of one cache, drawn to scale on a canvas: a rectangle for each
 * slab, in the order of the cache's list, with its colour, a cell for each
 * object, and the unused rest with the header. `>` is the freelist pointer.
 *
 * What has just changed is marked for a moment: an object that was allocated
 * or freed, a slab that was created or destroyed.
 */
import { CELL_FREE } from "./heap.mjs";
import { PAGE_SIZE } from "./guest.mjs";

const FLASH_MS = 450, BIRTH_MS = 900;
const GAP = 6, ROW_GAP = 5, POINTER = 7;

/* Draws the cells of one slab, runs of equal ones at once, so that a cell may
 * be narrower than a point of the screen. */
function drawCells(g, slab, x, y, height, chunk, fills) {
    const apart = chunk >= 4;
    for (let i = 0; i < slab.chunks;) {
        const kind = slab.cells[i];
        let n = 1;
        if (!apart)
            while (i + n < slab.chunks && slab.cells[i + n] === kind)
                n++;
        g.fillStyle = fills[kind];
        g.fillRect(x + i * chunk, y, n * chunk - (apart ? 1 : 0), height);
        i += n;
    }
}

export class SlabsView {
    constructor(canvas) {
        this.canvas = canvas;
        this.history = new Map(); // address of a slab -> what was drawn of it
        this.ghosts = [];         // destroyed slabs, for a moment
        this.places = [];         // {slab, x, y, width, scale}
        this.moving = false;      // something is still marked
        this.first = true;
    }

    /* Notes what has changed since the last call. */
    notice(cache, now) {
        const seen = new Set();
        for (const slab of cache.slabs) {
            seen.add(slab.at);
            const before = this.history.get(slab.at);
            if (!before || before.base !== slab.base ||
                before.cells.length !== slab.cells.length) {
                this.history.set(slab.at, {
                    base: slab.base, cells: slab.cells,
                    born: this.first ? -Infinity : now,
                    times: new Float64Array(slab.chunks).fill(-Infinity) });
                continue;
            }
            for (let i = 0; i < slab.chunks; i++)
                if (slab.cells[i] !== before.cells[i]) {
                    before.times[i] = now;
                    this.moving = true;
                }
            before.cells = slab.cells;
        }
        for (const at of this.history.keys())
            if (!seen.has(at)) {
                const place = this.places.find(p => p.slab.at === at);
                if (place)
                    this.ghosts.push({ ...place, died: now });
                this.history.delete(at);
            }
        this.ghosts = this.ghosts.filter(x => now - x.died < BIRTH_MS);
        this.first = false;
    }

    /* Where each slab goes; returns the height. Objects of whole pages need
     * less room than others to be seen. */
    arrange(cache, width, perPage) {
        const natural = cache.slabPages *
            (cache.chunk < PAGE_SIZE ? perPage : perPage / 4);
        const each = Math.min(natural, Math.max(width - POINTER, 16));
        const scale = each / cache.slabBytes;
        const height = perPage >= 512 ? 18 : 11;
        let x = 0, y = 0;
        this.places = cache.slabs.map(slab => {
            if (x && x + POINTER + each > width) {
                x = 0;
                y += height + ROW_GAP;
            }
            const place = { slab, x: x + POINTER, y, width: each, height,
                            scale };
            x += POINTER + each + GAP;
            return place;
        });
        return this.places.length ? y + height : 0;
    }

    /* Draws the cache. `look` has width, perPage, colours, used (a
     * colour), header (bytes), still (no marks that
     * fade), selected (an address). */
    draw(cache, look, now) {
        const { canvas } = this, ratio = window.devicePixelRatio || 1;
        const height = this.arrange(cache, look.width, look.perPage);
        if (canvas.width !== Math.round(look.width * ratio) ||
            canvas.height !== Math.round(height * ratio)) {
            canvas.width = Math.round(look.width * ratio);
            canvas.height = Math.round(height * ratio);
            canvas.style.height = `${height}px`;
        }
        const g = canvas.getContext("2d");
        g.setTransform(ratio, 0, 0, ratio, 0, 0);
        g.clearRect(0, 0, look.width, height);
        this.moving = false;
        for (const place of this.places)
            this.drawSlab(g, cache, place, look, now);
        for (const ghost of look.still ? [] : this.ghosts) {
            this.moving = true;
            g.globalAlpha = 1 - (now - ghost.died) / BIRTH_MS;
            g.strokeStyle = look.colours.bad;
            g.lineWidth = 2;
            g.setLineDash([3, 2]);
            g.strokeRect(ghost.x + 1, ghost.y + 1, ghost.width - 2,
                         ghost.height - 2);
            g.setLineDash([]);
            g.globalAlpha = 1;
        }
    }

    drawSlab(g, cache, place, look, now) {
        const { slab, x, y, width, height, scale } = place;
        const { colours } = look, chunk = cache.chunk * scale;
        const first = x + slab.colour * scale;

        g.fillStyle = colours.tail;
        g.fillRect(x, y, width, height);
        g.fillStyle = colours.colour;
        g.fillRect(x, y, slab.colour * scale, height);
        drawCells(g, slab, first, y, height, chunk,
                  [colours.free, look.used, colours.bad]);
        if (!cache.large) {
            g.fillStyle = colours.header;
            g.fillRect(x + width - look.header * scale, y, look.header * scale,
                       height);
        }
        if (cache.slabPages > 1) {
            g.fillStyle = colours.background;
            for (let i = 1; i < cache.slabPages; i++)
                g.fillRect(x + i * PAGE_SIZE * scale - 0.5, y + height - 3, 1,
                           3);
        }
        if (cache.freelist === slab.at) {
            g.fillStyle = colours.ink;
            g.beginPath();
            g.moveTo(x - POINTER + 1, y + height / 2 - 4);
            g.lineTo(x - 1, y + height / 2);
            g.lineTo(x - POINTER + 1, y + height / 2 + 4);
            g.fill();
        }
        this.drawMarks(g, cache, place, look, now, first, chunk);
    }

    drawMarks(g, cache, place, look, now, first, chunk) {
        const { slab, x, y, width, height } = place, { colours } = look;
        const known = this.history.get(slab.at);

        if (!look.still && known) {
            for (let i = 0; i < slab.chunks; i++) {
                const age = now - known.times[i];
                if (age >= FLASH_MS)
                    continue;
                this.moving = true;
                g.globalAlpha = 1 - age / FLASH_MS;
                g.fillStyle = slab.cells[i] === CELL_FREE ? colours.died :
                    colours.born;
                g.fillRect(first + i * chunk, y, Math.max(chunk - 1, 1.5),
                           height);
            }
            const age = now - known.born;
            if (age < BIRTH_MS) {
                this.moving = true;
                g.globalAlpha = 1 - age / BIRTH_MS;
                g.strokeStyle = colours.born;
                g.lineWidth = 2;
                g.strokeRect(x - 1, y - 1, width + 2, height + 2);
            }
            g.globalAlpha = 1;
        }
        if (look.selected >= slab.base &&
            look.selected < slab.base + cache.slabBytes) {
            const i = Math.floor((look.selected - slab.base - slab.colour) /
                                 cache.chunk);
            g.strokeStyle = colours.ink;
            g.lineWidth = 2;
            if (i >= 0 && i < slab.chunks)
                g.strokeRect(first + i * chunk - 1, y - 1,
                             Math.max(chunk, 3) + 1, height + 2);
            else
                g.strokeRect(x - 1, y - 1, width + 2, height + 2);
        }
    }

    /* The address that is drawn at a point of the canvas, or 0. */
    at(x, y) {
        const p = this.places.find(p => x >= p.x && x < p.x + p.width &&
                                   y >= p.y && y < p.y + p.height + ROW_GAP);
        return p ? p.slab.base + Math.floor((x - p.x) / p.scale) : 0;
    }
}
