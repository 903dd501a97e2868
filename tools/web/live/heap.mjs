/*
 * The heap as data: one walk over caches, slabs and buffers, over the kernel's
 * own structures (mm/kmem_impl.h), and one over the page frames (mm/page.h).
 *
 * The machine stops anywhere, also in the middle of a change of a list. A cache
 * that cannot be read whole keeps what was read of it before, and says so:
 * `stale` counts how often in a row.
 */
import { Inconsistent, PAGE_SIZE } from "./guest.mjs";

const KMF_HASH = 1, KMF_REDZONE = 0x400; // mm/kmem_impl.h, mm/kmem.h
const GUARD = 0xBB, GUARD_FRONT = 8;      // KMEM_GUARD… of mm/debug/debug.h
export const FULL = 0, PARTIAL = 1, FREE = 2;
export const STATES = ["full", "partial", "free"];
/* What is in a cell of Slab.cells. */
export const CELL_FREE = 0, CELL_USED = 1, CELL_DAMAGED = 2; // its redzone

export class Heap {
    constructor(guest) {
        this.guest = guest;
        this.caches = [];
        this.cache = guest.struct("kmem_cache").at;
        this.slab = guest.struct("kmem_slab").at;
        this.bufctl = guest.struct("kmem_bufctl").at;
        this.header = guest.struct("kmem_slab").size;
        this.page = guest.struct("page");
        this.internal = guest.layouts.enums.kmem_kind.KMEM_KIND_INTERNAL;
    }

    /* Reads all caches, in creation order. */
    read() {
        const before = new Map(this.caches.map(c => [c.at, c])), found = [];
        try {
            for (const at of this.guest.list(this.guest.variable("kmem_caches"),
                                             this.cache.cache_link, 1000))
                found.push(this.readCache(at, before.get(at)));
        } catch (e) {
            if (!(e instanceof Inconsistent))
                throw e;
            for (const c of this.caches.slice(found.length))
                found.push(c);
        }
        this.caches = found;
        return found;
    }

    readCache(at, before) {
        try {
            return this.wholeCache(at, before);
        } catch (e) {
            if (!(e instanceof Inconsistent) || !before)
                throw e;
            before.stale++;
            return before;
        }
    }

    wholeCache(at, before) {
        const { guest, cache: m } = this, u32 = x => guest.u32(at + m[x]);
        const number = u32("cache_number");
        const same = before?.number === number;
        const c = {
            at, number, stale: 0,
            name: same ? before.name : guest.text(at + m.cache_name, 64),
            flags: u32("cache_flags"),
            size: u32("cache_size"),
            chunk: u32("cache_chunk"),
            slabPages: u32("cache_slab_pages"),
            slabChunks: u32("cache_slab_chunks"),
            colourMin: u32("cache_colour_min"),
            internal: guest.u8(at + m.cache_kind) === this.internal,
            redzoneEnd: u32("cache_redzone_end"),
            constructed: guest.u64(at + m.cache_ctors),
            freelist: u32("cache_freelist"),
            allocs: guest.u64(at + m.cache_allocs_total) +
                ((u32("cache_allocs") - u32("cache_allocs_total")) >>> 0),
            inuse: (u32("cache_allocs") - u32("cache_frees")) | 0,
            slabCount: u32("cache_slabs"),
            freeCount: u32("cache_free_slabs"),
        };
        c.frees = c.allocs - c.inuse;
        c.large = (c.flags & KMF_HASH) !== 0;
        c.slabBytes = c.slabPages * PAGE_SIZE;
        c.link = u32("cache_bufctl");
        c.slabs = this.slabsOf(c);
        return c;
    }

    slabsOf(c) {
        const slabs = [];
        for (const at of this.guest.list(c.at + this.cache.cache_null,
                                         this.slab.slab_link,
                                         c.slabCount + 1))
            slabs.push(this.readSlab(c, at));
        if (slabs.length !== c.slabCount)
            throw new Inconsistent(`${c.name} has another number of slabs`);
        return slabs;
    }

    readSlab(c, at) {
        const { guest, slab: m } = this;
        if (guest.u32(at + m.slab_cache) !== c.at)
            throw new Inconsistent(`${c.name} has a foreign slab`);
        const base = guest.u32(at + m.slab_base);
        guest.place(base, c.slabBytes); // the pages are drawn one by one
        const head = guest.u32(at + m.slab_head);
        const refcnt = guest.u32(at + m.slab_refcnt);
        const chunks = guest.u16(at + m.slab_chunks);
        const colour = guest.u16(at + m.slab_colour);
        if (chunks * c.chunk > c.slabBytes)
            throw new Inconsistent(`${c.name} has a slab of ${chunks} chunks`);
        return { at, base, head, refcnt, chunks, colour,
                 state: refcnt === 0 ? FREE : head === 0 ? FULL : PARTIAL,
                 cells: this.cellsOf(c, base + colour, head, chunks,
                                     refcnt) };
    }

    /* The buffer of a bufctl. */
    bufferOf(c, bufctl) {
        return c.large ? this.guest.u32(bufctl + this.bufctl.bufctl_addr) :
            bufctl - c.link;
    }

    /* What is in each chunk of a slab: the freelist says which are free. */
    cellsOf(c, first, head, chunks, refcnt) {
        const cells = new Uint8Array(chunks).fill(CELL_USED);
        let free = 0;
        for (let at = head; at; at = this.guest.u32(at)) {
            const i = (this.bufferOf(c, at) - first) / c.chunk;
            if (cells[i] !== CELL_USED) // no such cell, or free already
                throw new Inconsistent(`${c.name} has a broken freelist`);
            cells[i] = CELL_FREE;
            free++;
        }
        if (free !== chunks - refcnt)
            throw new Inconsistent(`${c.name} is changing`);
        if (c.flags & KMF_REDZONE)
            this.checkRedzones(c, first, cells);
        return cells;
    }

    /* Marks the allocated objects whose redzone is not as it should be: the
     * bytes before and after the object (paper, section 6.4). */
    checkRedzones(c, first, cells) {
        const front = Math.min(c.colourMin, GUARD_FRONT);
        const { memory } = this.guest, start = front +
            this.guest.place(first - front, front + c.chunk * cells.length);
        const damaged = (from, to) => memory.subarray(from, to).some(
            byte => byte !== GUARD);
        for (let i = 0; i < cells.length; i++) {
            const at = start + i * c.chunk;
            if (cells[i] === CELL_USED && (damaged(at - front, at) ||
                damaged(at + c.size, at + c.redzoneEnd)))
                cells[i] = CELL_DAMAGED;
        }
    }

    /* The slab and the buffer that hold an address: {cache, slab, index}; the
     * index is -1 beside the buffers. Or null. */
    find(address) {
        for (const cache of this.caches)
            for (const slab of cache.slabs) {
                if (address < slab.base ||
                    address >= slab.base + cache.slabBytes)
                    continue;
                const i = Math.floor((address - slab.base - slab.colour) /
                                     cache.chunk);
                return { cache, slab,
                         index: i >= 0 && i < slab.chunks ? i : -1 };
            }
        return null;
    }

    /* The object that the next allocation from a cache will return, or 0. */
    next(cache) {
        const slab = cache?.slabs.find(s => s.at === cache.freelist);
        if (!slab?.head)
            return 0;
        return this.bufferOf(cache, slab.head);
    }

    address(cache, slab, index) {
        return slab.base + slab.colour + index * cache.chunk;
    }

    /* All page frames: {states, owners}, an entry each. The state is that of
     * the block a frame belongs to (enum page_state). */
    frames() {
        const { guest, page } = this;
        const count = guest.u32(guest.variable("page_count"));
        const array = guest.u32(guest.variable("page_array"));
        const tail = guest.layouts.enums.page_state.PAGE_TAIL;
        const first = guest.place(array, count * page.size);
        const state = first + page.at.page_state;
        const owner = first + page.at.page_owner >>> 2;
        const states = new Uint8Array(count), owners = new Uint32Array(count);
        for (let i = 0; i < count; i++) {
            const now = guest.memory[state + i * page.size];
            states[i] = now === tail && i ? states[i - 1] : now;
            owners[i] = now === tail && i ? owners[i - 1] :
                guest.words[owner + i * page.size / 4];
        }
        return { states, owners };
    }
}
