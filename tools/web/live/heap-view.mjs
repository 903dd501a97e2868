/*
 * The heap, drawn as it changes: memory over time, the page frames, and each
 * cache with its slabs to scale.
 *
 * Everything is read from the machine's memory (heap.mjs) between two slices
 * of the emulator, at most 30 times a second, and only while the page is seen.
 */
import { button, element } from "./dom.mjs";
import { Guest, hex } from "./guest.mjs";
import { Heap, CELL_FREE } from "./heap.mjs";
import { rows, structOf } from "./fields.mjs";
import { ownerOf } from "./owners.mjs";
import { FramesView } from "./frames-view.mjs";
import { Inspector } from "./inspector.mjs";
import { MemoryView } from "./memory-view.mjs";
import { SlabsView } from "./slabs-view.mjs";

const FRAME_MS = 1000 / 30, FRAMES_MS = 250;
const HOVERED = 8; // members that are shown of the object under the pointer
const COLOURS = ["used", "free", "colour", "tail", "header", "bad", "kernel",
                 "reserved", "empty", "user", "oversize", "ink", "dim",
                 "background", "born", "died", "k0", "k1", "k2", "k3", "k4",
                 "k5", "k6", "k7", "k8", "kx"];
const OWN = COLOURS.filter(name => /^k\d$/.test(name));
const ZOOMS = [48, 96, 192, 384, 768]; // points of the screen for a page

const KEYS = [["used", "allocated object, in the colour of its cache"],
              ["free", "free object"],
              ["colour", "colour: bytes before the first object"],
              ["tail", "unused"], ["header", "kmem_slab"]];

function kib(bytes) {
    return `${Math.round(bytes / 1024).toLocaleString("en")} KiB`;
}

/* A cache: a line of text, and its slabs. */
class CacheRow {
    constructor(view, cache) {
        this.view = view;
        this.section = element("section", "", "cache");
        const head = element("div", "", "cache-head");
        this.swatch = element("span", "", "swatch");
        this.name = button(cache.name, () => view.inspector.select(this.at),
                           { classes: "cache-name" });
        this.counts = element("span", "", "counts");
        head.append(this.swatch, this.name, this.counts);
        this.canvas = element("canvas");
        this.canvas.setAttribute("role", "img");
        this.slabs = new SlabsView(this.canvas);
        this.section.append(head, this.canvas);
        this.section.addEventListener("pointerenter",
                                      () => view.highlight(this.at));
        this.section.addEventListener("pointerleave",
                                      () => view.highlight(0));
        for (const kind of ["pointermove", "pointerleave", "click"])
            this.canvas.addEventListener(kind, e => this.pointed(kind, e));
    }

    pointed(kind, e) {
        const address = kind === "pointerleave" ? 0 :
            this.slabs.at(e.offsetX, e.offsetY);
        if (kind === "click")
            this.view.inspector.select(address);
        else
            this.view.hover(address, e);
    }

    update(cache, now, look) {
        this.at = cache.at;
        const counts = cache.slabCount === 0 ? `${cache.size} bytes, no slab` :
            `${cache.size} bytes, ${cache.inuse} of ` +
            `${cache.slabCount * cache.slabChunks} objects, ` +
            `${cache.slabCount} ${cache.slabCount === 1 ? "slab" : "slabs"}` +
            (cache.slabPages === 1 ? "" : ` of ${cache.slabPages} pages`);
        if (this.counts.textContent !== counts) {
            this.counts.textContent = counts;
            this.canvas.setAttribute("aria-label",
                                     `slabs of ${cache.name}: ${counts}`);
        }
        this.slabs.notice(cache, now);
        const drawn = `${cache.allocs} ${cache.frees} ${cache.freelist} ` +
            `${cache.slabCount} ${cache.freeCount} ${cache.number} ` +
            `${look.version} ${look.selected}`;
        if (drawn === this.drawn && !this.slabs.moving)
            return;
        this.drawn = drawn;
        this.swatch.style.background = this.view.colourOf(cache.at);
        this.slabs.draw(cache, { ...look, used: this.view.colourOf(cache.at) },
                        now);
    }
}

export class HeapView {
    constructor(section, machine, layouts) {
        this.section = section;
        this.machine = machine;
        this.ended = new AbortController();
        this.past = null; // memory of a moment in the past, instead
        this.wanted = ""; // the cache to go to when it has a slab
        this.guest = new Guest(machine.memory, layouts);
        this.heap = new Heap(this.guest);
        this.rows = new Map();   // number of a cache -> CacheRow
        this.owners = new Map(); // address of a cache -> its colour's name
        this.zoom = 2;
        this.up = false;         // whether the kernel has a heap
        this.version = 0;        // of what all canvases look like
        this.highlighted = 0;
        this.pointed = 0;
        this.last = -Infinity;
        this.lastFrames = -Infinity;
        this.drawnFrames = 0; // and the milliseconds that they took
        this.spent = 0;
        this.build();
        this.inspector = new Inspector(this.place, this.guest, this.heap,
                                       address => this.selected(address),
                                       () => this.machine.running);
        for (const query of ["(prefers-color-scheme: dark)",
                             "(prefers-reduced-motion: reduce)"])
            matchMedia(query).addEventListener(
                "change", () => this.restyle(), { signal: this.ended.signal });
        this.observer = new ResizeObserver(() => this.restyle());
        this.observer.observe(section);
        this.restyle();
    }

    build() {
        this.summary = element("p", "", "summary");
        this.summary.setAttribute("role", "status");
        this.summary.setAttribute("aria-live", "off");
        this.over = element("canvas", "", "over-time");
        this.over.setAttribute("role", "img");
        this.over.setAttribute("aria-label",
                               "memory of the caches over the last minute");
        this.memory = new MemoryView(this.over);
        const frames = element("div", "", "frames");
        this.map = element("canvas");
        frames.append(this.map);
        this.map.setAttribute("role", "img");
        this.map.setAttribute("aria-label", "page frames by owner");
        this.frames = new FramesView(this.map, this.guest);
        this.map.addEventListener("pointermove", e => this.overMap(e));
        this.map.addEventListener("pointerleave", () => this.hover(0));
        this.map.addEventListener("click", e => {
            const i = this.frames.at(e.offsetX, e.offsetY);
            if (i >= 0)
                this.inspector.select(this.frames.address(i));
        });

        const legend = element("ul", "", "legend");
        for (const [kind, text] of KEYS) {
            const key = element("li", text);
            const box = element("span", "", "swatch");

            box.style.background = `var(--${kind})`;
            key.prepend(box);
            legend.append(key);
        }
        legend.append(element("li", "▶ freelist pointer"));

        const bar = element("div", "", "bar");
        this.all = element("input");
        this.all.type = "checkbox";
        this.all.addEventListener("change", () => this.restyle());
        const all = element("label", " caches without slabs");
        all.prepend(this.all);
        bar.append(element("h2", "Caches"), all,
                   button("−", () => this.setZoom(-1),
                          { label: "smaller slabs" }),
                   button("+", () => this.setZoom(1),
                          { label: "larger slabs" }));
        this.list = element("div", "", "caches");
        this.list.tabIndex = 0;
        this.list.setAttribute("role", "group");
        this.list.setAttribute("aria-label", "caches; arrow keys choose an " +
                               "object");
        this.list.addEventListener("keydown", e => this.key(e));
        this.place = element("aside", "", "inspector");
        this.place.setAttribute("aria-label", "the chosen object");
        this.tip = element("div", "", "tip");
        this.tip.hidden = true;
        this.section.append(this.summary, this.over,
                            element("h2", "Page frames"), frames, bar, legend,
                            this.list, this.place, this.tip);
    }

    /* Reads the colours and widths again: the page looks otherwise. */
    restyle() {
        const style = getComputedStyle(this.section);
        const colours = Object.fromEntries(COLOURS.map(
            name => [name, style.getPropertyValue(`--${name}`).trim()]));
        this.look = {
            colours, width: Math.max(this.list.clientWidth - 2, 100),
            perPage: ZOOMS[this.zoom], header: this.heap.header,
            still: matchMedia("(prefers-reduced-motion: reduce)").matches,
            selected: this.inspector?.address ?? 0, version: ++this.version,
        };
        this.lastFrames = -Infinity;
    }

    setZoom(step) {
        this.zoom = Math.min(Math.max(this.zoom + step, 0), ZOOMS.length - 1);
        this.restyle();
        this.draw();
    }

    /* The colour of a cache. */
    colourOf(at) {
        return this.look.colours[this.owners.get(at) ?? "kx"];
    }

    /* Nine caches have a colour of their own. Another one gets that of the
     * smallest when it has four times its memory, so that colours rarely
     * change. */
    giveColours() {
        const bytes = new Map(this.heap.caches.map(
            c => [c.at, c.slabCount * c.slabBytes]));
        const largest = [...bytes.keys()].sort(
            (a, b) => bytes.get(b) - bytes.get(a));
        for (const at of this.owners.keys())
            if (!bytes.has(at))
                this.owners.delete(at);
        for (const at of largest) {
            if (bytes.get(at) === 0 || this.owners.has(at))
                continue;
            let colour = OWN.find(
                name => ![...this.owners.values()].includes(name));
            if (!colour) {
                const least = largest.findLast(x => this.owners.has(x));
                if (bytes.get(at) < 4 * bytes.get(least))
                    break;
                colour = this.owners.get(least);
                this.owners.delete(least);
                this.restyle();
            }
            this.owners.set(at, colour);
        }
    }

    /* Takes all of it off the page. */
    end() {
        this.ended.abort();
        this.observer.disconnect();
        this.section.replaceChildren();
    }

    /* Called for each frame of the screen. */
    frame(now) {
        if (!this.machine.running || now - this.last < FRAME_MS - 2)
            return;
        this.last = now;
        this.draw(now);
    }

    /* Reads the machine and draws what has changed. */
    draw(now = performance.now()) {
        const began = performance.now();
        this.guest.look(this.past ?? this.machine.memory);
        this.up = this.guest.u32(this.guest.variable("kmem_state")) ===
            this.guest.layouts.enums.kmem_state.KMEM_UP;
        if (!this.up) {
            this.summary.textContent = "The kernel has no heap yet.";
            return;
        }
        const caches = this.heap.read();
        this.look.selected = this.inspector.address || this.pointed;
        this.giveColours();
        this.sum(caches);
        if (!this.past && this.memory.sample(caches, this.machine.time) ||
            this.lastFrames === -Infinity)
            this.memory.draw({ ...this.look,
                               width: this.section.clientWidth },
                             [...this.owners.keys()],
                             at => this.colourOf(at));
        if (now - this.lastFrames >= FRAMES_MS) {
            this.lastFrames = now;
            this.frames.draw(this.heap.frames(), this.look,
                             at => this.colourOf(at), this.highlighted);
        }
        this.drawCaches(caches, now);
        this.inspector.update();
        this.drawnFrames++;
        this.spent += performance.now() - began;
    }

    sum(caches) {
        const some = caches.filter(c => c.slabCount);
        const bytes = some.reduce((n, c) => n + c.slabCount * c.slabBytes, 0);
        const used = some.reduce((n, c) => n + c.inuse * c.size, 0);
        const slabs = some.reduce((n, c) => n + c.slabCount, 0);
        const text = `${caches.length} caches, ${slabs} slabs, ${kib(bytes)}` +
            (bytes ? `, ${Math.round(100 * used / bytes)} % of it allocated` :
                "");
        if (this.summary.textContent !== text)
            this.summary.textContent = text;
    }

    drawCaches(caches, now) {
        const gone = new Set(this.rows.keys());
        for (const cache of caches) {
            let row = this.rows.get(cache.number);
            gone.delete(cache.number);
            if (!row) {
                row = new CacheRow(this, cache);
                this.rows.set(cache.number, row);
                this.list.append(row.section);
            }
            const hidden = !cache.slabCount && !this.all.checked;
            if (row.section.hidden !== hidden)
                row.section.hidden = hidden;
            if (!hidden)
                row.update(cache, now, this.look);
        }
        for (const number of gone) {
            this.rows.get(number).section.remove();
            this.rows.delete(number);
        }
        if (caches.some(c => c.name === this.wanted && c.slabCount)) {
            this.goTo(this.wanted);
            this.wanted = "";
        }
    }

    highlight(at) {
        if (this.highlighted === at)
            return;
        this.highlighted = at;
        this.lastFrames = -Infinity;
        if (!this.machine.running)
            this.draw();
    }

    selected(address) {
        this.look.selected = address;
        this.look.version = ++this.version;
        if (!this.machine.running)
            this.draw();
    }

    /* Marks an object: what the next call of the allocator is about. */
    point(address) {
        this.pointed = address;
        this.look.version = ++this.version;
        this.draw();
    }

    /* Brings a cache into view. */
    goTo(name) {
        const cache = this.heap.caches.find(c => c.name === name);
        this.rows.get(cache?.number)?.section.scrollIntoView(
            { block: "start" });
    }

    overMap(e) {
        const i = this.frames.at(e.offsetX, e.offsetY);
        if (i < 0) {
            this.hover(0);
            return;
        }
        const { states, owners } = this.frames.frames;
        const cache = this.heap.caches.find(c => c.at === owners[i]);
        const [name] = Object.entries(
            this.guest.layouts.enums.page_state).find(
            ([, n]) => n === states[i]) ?? ["?"];
        this.say(`frame ${i}, ${hex(this.frames.address(i))}: ` +
                 (cache ? cache.name : name.replace("PAGE_", "")
                     .toLowerCase()), e);
    }

    hover(address, e) {
        const found = address ? this.heap.find(address) : null;
        if (!found) {
            this.tip.hidden = true;
            return;
        }
        const { cache, slab, index } = found;
        if (index < 0) {
            this.say(`slab ${hex(slab.base)} of ${cache.name}, colour ` +
                     `${slab.colour}`, e);
            return;
        }
        const at = this.heap.address(cache, slab, index);
        const used = slab.cells[index] !== CELL_FREE;
        const struct = structOf(this.guest, cache);
        const members = struct && used ? rows(this.guest, this.heap, at, struct)
            .filter(row => row.text).slice(0, HOVERED)
            .map(row => `\n${row.name} ${row.text}`) : [];
        const owner = used ? ownerOf(this.guest, this.heap, cache, at) : "";
        this.say(`${cache.name} ${hex(at)}, ` +
                 (used ? "allocated" : "free") + (owner && ` for ${owner}`) +
                 members.join(""), e);
    }

    say(text, e) {
        this.tip.textContent = text;
        this.tip.hidden = false;
        const { offsetWidth: width, offsetHeight: height } = this.tip;
        this.tip.style.left =
            `${Math.min(e.clientX + 12, innerWidth - width - 8)}px`;
        this.tip.style.top =
            `${Math.min(e.clientY + 16, innerHeight - height - 8)}px`;
    }

    /* Arrow keys choose the next object, the first of the next slab, and so
     * on. */
    key(e) {
        const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1],
                        ArrowUp: [-1, 0], ArrowDown: [1, 0] }[e.key];
        if (!steps || e.target !== this.list)
            return;
        e.preventDefault();
        const slabs = this.heap.caches.flatMap(
            cache => cache.slabs.map(slab => ({ cache, slab })));
        if (!slabs.length)
            return;
        const now = this.heap.find(this.inspector.address);
        let i = slabs.findIndex(x => x.slab === now?.slab);
        let n = now?.index ?? 0;
        if (i < 0) {
            i = 0;
            n = 0;
        } else if (steps[0]) {
            i = (i + steps[0] + slabs.length) % slabs.length;
            n = 0;
        } else {
            n += steps[1];
            if (n < 0 || n >= slabs[i].slab.chunks) {
                i = (i + steps[1] + slabs.length) % slabs.length;
                n = n < 0 ? slabs[i].slab.chunks - 1 : 0;
            }
        }
        const { cache, slab } = slabs[i];
        this.inspector.select(this.heap.address(cache, slab, n));
        this.rows.get(cache.number)?.section.scrollIntoView(
            { block: "nearest" });
    }
}

