/*
 * The scenes of the paper, live: one for each idea of the paper.
 *
 * A scene is a list of steps. A step has a `text`; perhaps a question to answer
 * before (`ask`: the question, the answers, the number of the right one, and
 * why); what happens (`run`: commands for the kernel's shell; `pass`: seconds
 * of the machine that pass quickly; `damage`: what the page itself writes to
 * the machine's memory); and `claims`, which are read from the memory
 * afterwards: each a function of a Moment that returns [text, whether it is
 * true]. `show` is the cache that the picture goes to.
 *
 * `code` names functions of the kernel; the page adds file and line.
 */
import { CELL_DAMAGED, CELL_FREE, FREE } from "./heap.mjs";
import { PAGE_SIZE } from "./guest.mjs";

const LINE = 32, SETS = 128; // a Pentium's data cache: 8 KiB, two ways

/* The sets of the processor's cache that the slabs' first objects are in. */
export function setsOf(cache) {
    return cache.slabs.map(
        s => (s.base + s.colour) / LINE % SETS | 0);
}

export { SETS };

const DEADBEEF = 0xDEADBEEF; // KMEM_FREED of mm/debug/debug.h
const LOST = /^lost +\d/m;     // a row of `leaks`

/* The object that was freed last, which the next allocation returns. */
function freed(m) {
    return m.heap.find(m.heap.next(m.cache("stale")));
}

function different(list) {
    return new Set(list).size;
}

function sum(list) {
    return list.reduce((a, b) => a + b, 0);
}

/* Per cent of the slabs' memory that no client has requested. */
function waste(heap) {
    const bytes = sum(heap.caches.map(c => c.slabCount * c.slabBytes));
    const used = sum(heap.caches.filter(c => !c.internal).map(
        c => c.inuse * c.size));
    return 100 * (bytes - used) / bytes;
}

/* KiB of all slabs. */
function held(heap) {
    return sum(heap.caches.map(c => c.slabCount * c.slabBytes)) / 1024;
}

/* What a workload has left, after a reap, is what there was before. */
function asBefore(m) {
    const now = held(m.heap), before = held(m.before.heap);

    return [`the slabs have ${now} KiB, ${waste(m.heap).toFixed(0)} % of it ` +
            `not requested; before, ${before} KiB and ` +
            `${waste(m.before.heap).toFixed(0)} %`, now <= 1.25 * before];
}

export const SCENES = [{
    id: "object-caching",
    section: "2.1",
    title: "Object caching",
    code: ["kmem_cache_alloc", "kmem_slab_create"],
    steps: [{
        text: "Many objects of a kernel need the same preparation before " +
            "they are used: locks are initialized, lists are made empty, " +
            "counts are set to 0. A client that frees an object usually " +
            "leaves it in exactly that state. So the allocator prepares an " +
            "object only once, with a constructor of its cache.\n" +
            "The command creates a cache of objects of 256 bytes with a " +
            "constructor, and allocates one object.",
        ask: {
            question: "The client gets one object. How often has the " +
                "constructor been called?",
            answers: ["Once", "Once for each object of the new slab",
                      "Never: it is called when an object is used"],
            right: 1,
            because: "The allocator constructs all objects of a slab when it " +
                "creates the slab.",
        },
        run: "kmem create box 256 8 ctor; kmem alloc box 1",
        show: "box",
        claims: [
            m => [`the slab has ${m.cache("box").slabChunks} objects`,
                  m.cache("box").slabs.length === 1],
            m => [`the constructor was called ${m.cache("box").constructed} ` +
                  "times", m.cache("box").constructed ===
                  m.cache("box").slabChunks],
        ],
    }, {
        text: "Now the object is freed, and one is allocated again.",
        ask: {
            question: "How often is the constructor called for the second " +
                "allocation?",
            answers: ["Once", "Not at all"],
            right: 1,
            because: "The object was freed in its constructed state. This is " +
                "what object caching saves.",
        },
        run: "kmem free box 1; kmem alloc box 1",
        show: "box",
        claims: [
            m => [`${m.cache("box").allocs} objects were allocated`,
                  m.cache("box").allocs === 2],
            m => [`the constructor was called ${m.cache("box").constructed} ` +
                  "times, as before", m.cache("box").constructed ===
                  m.cache("box").slabChunks],
        ],
    }],
}, {
    id: "small-objects",
    section: "3.2.2",
    title: "A slab of small objects",
    code: ["kmem_slab_create", "kmem_cache_free"],
    steps: [{
        text: "A slab is one or more pages, cut into buffers of one size. " +
            "Objects of less than an eighth of a page have slabs of one " +
            "page, and everything that the allocator needs to know of them " +
            "is on that page.\n" +
            "The command fills one slab with objects of 200 bytes.",
        ask: {
            question: "A page has 4096 bytes. How many objects of 200 bytes " +
                "are in the slab?",
            answers: ["20", "19", "16"],
            right: 0,
            because: "The header, a kmem_slab, takes the last 32 bytes: " +
                "(4096 - 32) / 200 = 20.",
        },
        run: "kmem create small 200; kmem alloc small 20",
        show: "small",
        claims: [
            m => [`${m.cache("small").slabChunks} objects in a slab of one ` +
                  "page", m.cache("small").slabChunks === 20 &&
                  m.cache("small").slabBytes === PAGE_SIZE],
            m => ["the kmem_slab is the last 32 bytes of the page",
                  m.cache("small").slabs.every(
                      s => s.at + 32 === s.base + PAGE_SIZE)],
        ],
    }, {
        text: "Five objects are freed, at random places.",
        ask: {
            question: "Where does the allocator keep the list of the free " +
                "buffers?",
            answers: ["In an array beside the slab",
                      "In the free buffers themselves", "In a hash table"],
            right: 1,
            because: "The last word of a free buffer is the link to the " +
                "next. Point at a free object to see its address, and choose " +
                "it to see its words.",
        },
        run: "kmem free small 5 random",
        show: "small",
        claims: [
            m => ["the freelist of the slab has 5 buffers",
                  sum(m.cache("small").slabs.map(
                      s => s.cells.filter(x => x === CELL_FREE).length)) === 5],
            m => ["its first link is in a buffer of the same page",
                  m.cache("small").slabs.every(
                      s => s.head >= s.base && s.head < s.base + PAGE_SIZE)],
        ],
    }],
}, {
    id: "large-objects",
    section: "3.2.3",
    title: "A slab of large objects",
    code: ["kmem_slab_create", "kmem_hash_enter", "kmem_hash_remove"],
    steps: [{
        text: "Objects of an eighth of a page or more have slabs of several " +
            "pages, and a header in each would waste too much. So the " +
            "kmem_slab and a control block for each buffer, a kmem_bufctl, " +
            "are objects themselves, of two caches of the allocator.\n" +
            "The command allocates 18 objects of 700 bytes.",
        ask: {
            question: "When an object is freed, the allocator gets its " +
                "address only. How does it find the kmem_bufctl?",
            answers: ["It is at the end of the page",
                      "It looks at each slab of the cache",
                      "In a hash table of the cache"],
            right: 2,
            because: "The table leads from the address of each allocated " +
                "buffer to its kmem_bufctl. Objects of small slabs need " +
                "none: the page is computed from the address.",
        },
        run: "kmem create large 700; kmem alloc large 18",
        show: "large",
        claims: [
            m => [`${m.cache("large").slabChunks} objects in a slab of ` +
                  `${m.cache("large").slabPages} pages`,
                  m.cache("large").slabPages === 2],
            m => ["each kmem_slab is an object of the cache kmem_slab",
                  m.cache("large").slabs.every(
                      s => m.heap.find(s.at)?.cache.name === "kmem_slab")],
            m => ["the hash table has an entry for each allocated object",
                  m.cache("large").large && m.cache("large").inuse === 18],
        ],
    }],
}, {
    id: "an-eighth",
    section: "3.2",
    title: "At most an eighth is lost",
    code: ["kmem_large_pages", "kmem_geometry"],
    steps: [{
        text: "A page has room for one object of 3000 bytes, and 1096 bytes " +
            "would be lost. A slab of more pages has less at its end. The " +
            "allocator takes as many pages as it needs to lose at most an " +
            "eighth, 12.5 per cent.",
        ask: {
            question: "How many pages has a slab of objects of 3000 bytes?",
            answers: ["1", "2", "3", "4"],
            right: 2,
            because: "Three pages have 12288 bytes: four objects, and 288 " +
                "bytes are unused. In two pages 2192 bytes of 8192 would be.",
        },
        run: "kmem create wide 3000; kmem alloc wide 5",
        show: "wide",
        claims: [
            m => [`4 objects in a slab of ${m.cache("wide").slabPages} pages`,
                  m.cache("wide").slabPages === 3 &&
                  m.cache("wide").slabChunks === 4],
            m => {
                const some = m.heap.caches.filter(
                    c => c.slabCount && c.chunk <= 8 * PAGE_SIZE);
                const lost = c => c.slabBytes - c.slabChunks * c.chunk;
                const most = Math.max(...some.map(
                    c => 100 * lost(c) / c.slabBytes));
                return [`of all ${some.length} caches with slabs, none loses ` +
                        `more than ${most.toFixed(1)} %`, most <= 12.5];
            },
        ],
    }],
}, {
    id: "the-freelist",
    section: "3.3",
    title: "The order of the slabs",
    code: ["kmem_slab_take", "kmem_slab_give"],
    steps: [{
        text: "The slabs of a cache are in one list, in three parts: first " +
            "the full slabs, then those of which some objects are allocated " +
            "(partial), then the free ones. The freelist pointer, ▶, is at " +
            "the first slab that has a free buffer.",
        ask: {
            question: "Some slabs are partial and some are free. From which " +
                "slab does the next allocation come?",
            answers: ["From a free one", "From the first partial one",
                      "From a new one"],
            right: 1,
            because: "So free slabs stay free, and can be given back to the " +
                "system when memory is needed.",
        },
        run: "kmem create row 256; kmem alloc row 90; " +
            "kmem free row 30 fifo; kmem free row 10 random",
        show: "row",
        claims: [
            m => ["full slabs come first, then partial ones, then free ones",
                  m.cache("row").slabs.every(
                      (s, i, all) => i === 0 || all[i - 1].state <= s.state)],
            m => ["▶ is at the first slab with a free buffer",
                  m.cache("row").slabs.find(s => s.head !== 0)?.at ===
                  m.cache("row").freelist],
            m => [`${m.cache("row").slabs.filter(
                s => s.state === FREE).length} slabs are free`,
                  m.cache("row").slabs.some(s => s.state === FREE)],
        ],
    }, {
        text: "One more object is allocated.",
        run: "kmem alloc row 1",
        show: "row",
        claims: [
            m => ["it comes from the slab that ▶ was at",
                  m.cache("row").slabs.some(s => m.before.cache("row")
                      .freelist === s.at && s.refcnt > 0)],
            m => ["no slab was created", m.cache("row").slabCount ===
                  m.before.cache("row").slabCount],
        ],
    }],
}, {
    id: "reaping",
    section: "3.4",
    title: "The working set and reaping",
    code: ["kmem_reap", "kmem_reapable", "kmem_ws_take"],
    steps: [{
        text: "Free slabs are memory that nobody uses. But a program that " +
            "frees objects often allocates them again at once, so the " +
            "allocator keeps the free slabs that were needed lately: the " +
            "working set.\n" +
            "The command allocates 300 objects, frees them all, and reaps.",
        ask: {
            question: "All slabs are free. How many does the reap destroy?",
            answers: ["All", "None", "Half of them"],
            right: 1,
            because: "All of them were in use a moment ago: they are the " +
                "working set.",
        },
        run: "kmem create set 256; kmem alloc set 300; kmem free set all; " +
            "reap set",
        show: "set",
        claims: [
            m => [`${m.cache("set").slabCount} slabs are still there`,
                  m.cache("set").slabCount > 15],
            m => ["none of them has an allocated object",
                  m.cache("set").inuse === 0],
        ],
    }, {
        text: "The working set is computed anew every 15 seconds, from the " +
            "fewest slabs that were free in the interval. After two " +
            "intervals without use a slab does not belong to it any more. " +
            "Here the page skips 31 seconds in which the machine only waits.",
        pass: 31,
        run: "reap set",
        show: "set",
        claims: [
            m => ["all slabs were destroyed, and their pages are free",
                  m.cache("set").slabCount === 0],
        ],
    }],
}, {
    id: "colouring",
    section: "4.1",
    title: "Colouring",
    code: ["kmem_slab_create", "kmem_geometry"],
    steps: [{
        text: "If every slab began with its first object, the first objects " +
            "of all slabs would be at the same place of a page. A " +
            "processor's cache has few places for such addresses, so these " +
            "objects would push each other out of it. The allocator uses the " +
            "unused bytes of a slab: each new slab begins a little later. " +
            "That offset is the slab's colour.\n" +
            "The command creates a cache without colours and one with them, " +
            "and fills ten slabs of each.",
        ask: {
            question: "A Pentium's data cache has 128 sets of 32 bytes. In " +
                "how many sets are the first objects of ten slabs, without " +
                "colours?",
            answers: ["1", "10", "128"],
            right: 0,
            because: "The slabs begin at pages, and a page is 128 * 32 " +
                "bytes: the same place of each page is in the same set.",
        },
        run: "kmem create plain 340 32 nocolour; kmem alloc plain 110; " +
            "kmem create coloured 340 32; kmem alloc coloured 110",
        show: "coloured",
        sets: ["plain", "coloured"],
        claims: [
            m => ["without colours the first objects of " +
                  `${m.cache("plain").slabCount} slabs are in ` +
                  `${different(setsOf(m.cache("plain")))} set`,
                  different(setsOf(m.cache("plain"))) === 1],
            m => ["with colours those of " +
                  `${m.cache("coloured").slabCount} slabs are in ` +
                  `${different(setsOf(m.cache("coloured")))} sets`,
                  different(setsOf(m.cache("coloured"))) > 5],
        ],
    }],
}, {
    id: "fragmentation",
    section: "5.2",
    title: "Fragmentation",
    code: ["kmem_reap", "kmem_slab_take"],
    steps: [{
        text: "Memory is lost in three ways: a buffer is larger than its " +
            "object, a slab is partial, or the allocator needs the memory " +
            "for itself. With other allocators this loss grows while a " +
            "machine runs. The paper compares what is lost after one " +
            "workload and another. First a program allocates much and frees " +
            "it, and what is free is reaped.",
        ask: {
            question: "How much more memory have the slabs after the " +
                "workload and a reap?",
            answers: ["Twice as much as before", "As much as the workload had",
                      "Hardly any"],
            right: 2,
            because: "Objects of one type are often freed together, so their " +
                "slabs become free, and a reap returns them.",
        },
        run: "run spike; reap -a",
        claims: [asBefore],
    }, {
        text: "A program that looks at every file.",
        run: "run find /; reap -a",
        claims: [asBefore],
    }, {
        text: "Many programs that do what the users of a machine did in 1994.",
        run: "run kenbus; reap -a",
        claims: [asBefore],
    }],
}, {
    id: "redzones",
    section: "6.4",
    title: "Redzones",
    code: ["kmem_free_debug", "kmem_error"],
    steps: [{
        text: "In its debugging modes the allocator finds mistakes of its " +
            "clients. With mode Z each object has a redzone: bytes that " +
            "nobody may write to. They are checked when the object is freed.",
        run: "kmem create guarded 200; debug +FZ guarded; " +
            "kmem alloc guarded 5",
        show: "guarded",
        claims: [
            m => [`an object of 200 bytes has ${m.cache("guarded").chunk} ` +
                  "bytes now", m.cache("guarded").chunk > 200],
        ],
    }, {
        text: "Now the page writes one byte, as a wrong program would: the " +
            "first one after the third object. The object turns red in the " +
            "picture, since the page reads the redzones, too.",
        damage: m => {
            const c = m.cache("guarded");
            return { at: m.heap.address(c, c.slabs[0], 2) + c.size,
                     bytes: [0x41] };
        },
        show: "guarded",
        claims: [
            m => ["one object's redzone is damaged", sum(m.cache("guarded")
                .slabs.map(s => s.cells.filter(
                    x => x === CELL_DAMAGED).length)) === 1],
        ],
    }, {
        text: "When the object is freed, the allocator reports the damage " +
            "and stops the machine.",
        ask: {
            question: "What would have happened without a redzone?",
            answers: ["The same", "The next object would have been changed, " +
                      "and something else would have failed later",
                      "Nothing"],
            right: 1,
            because: "Such a mistake is noticed at another place than where " +
                "it was made. This is why the paper calls the allocator the " +
                "natural place to look for it.",
        },
        run: "kmem free guarded all",
        dies: /outside its bounds/,
        claims: [],
    }],
}, {
    id: "freed-memory",
    section: "6.3",
    title: "Use of freed memory",
    code: ["kmem_free_debug", "kmem_alloc_debug", "kmem_error"],
    steps: [{
        text: "With mode P the allocator fills free memory with the words " +
            "0xdeadbeef, and with mode U it keeps the last transactions of " +
            "each object: which task allocated or freed it, when, and the " +
            "callers (auditing, section 6.1).",
        run: "kmem create stale 200; debug +FPU stale; kmem alloc stale 3; " +
            "kmem free stale 1 fifo; log -c stale -n 4",
        show: "stale",
        claims: [
            m => ["every word of a free object is 0xdeadbeef",
                  m.cache("stale").slabs.every(s => [...s.cells.keys()].every(
                      i => s.cells[i] !== CELL_FREE ||
                          m.words(m.cache("stale"), s, i).every(
                              n => n === DEADBEEF)))],
            m => ["the log names the functions that asked: play_alloc, " +
                  "play_free", /play_alloc/.test(m.text) &&
                  /play_free/.test(m.text)],
        ],
    }, {
        text: "Now the page writes to the object that was freed, as a " +
            "program would that has kept a pointer to it.",
        damage: m => {
            const { cache, slab, index } = freed(m);
            return { at: m.heap.address(cache, slab, index) + 8,
                     bytes: [0x41, 0, 0, 0] };
        },
        show: "stale",
        claims: [
            m => {
                const { cache, slab, index } = freed(m);
                const wrong = m.words(cache, slab, index).filter(
                    n => n !== DEADBEEF);
                return ["one word of the freed object is " +
                        `0x${wrong[0]?.toString(16)}`, wrong.length === 1];
            },
        ],
    }, {
        text: "Nothing has noticed it yet. Another object is allocated.",
        ask: {
            question: "When is the write noticed?",
            answers: ["Never: the object is free",
                      "When that object is allocated again",
                      "When the machine is switched off"],
            right: 1,
            because: "At an allocation the allocator looks whether the " +
                "object still has its pattern. The report names the last " +
                "transactions, so it says who has freed the object.",
        },
        run: "kmem alloc stale 1",
        dies: /modified after being freed/,
        claims: [],
    }],
}, {
    id: "leaks",
    section: "6.7",
    title: "Leaks",
    code: ["kmem_leak_scan"],
    steps: [{
        text: "An object that nothing points to can never be freed: it has " +
            "leaked. The kernel looks for pointers in its data, in stacks " +
            "and registers, and in all objects that are reached from " +
            "there.\nThe command allocates five objects. The shell keeps the " +
            "address of each in an object of the cache kmem_play.",
        run: "kmem create lost 200; debug +U lost; kmem alloc lost 5; leaks",
        show: "lost",
        claims: [
            m => ["no object of the cache has leaked", !LOST.test(m.text)],
        ],
    }, {
        text: "The page writes 0 over the address of one of them, as a wrong " +
            "program would.",
        ask: {
            question: "How will the kernel know that the object has leaked, " +
                "and is not just in use?",
            answers: ["By its age", "No pointer leads to it any more",
                      "By the number of objects in the cache"],
            right: 1,
            because: "It needs no help of the program: memory is searched " +
                "for the addresses of all objects, as a garbage collector " +
                "does.",
        },
        damage: m => {
            const cache = m.cache("kmem_play"), lost = m.cache("lost");
            const address = m.heap.address(lost, lost.slabs[0], 2);
            for (const slab of cache.slabs)
                for (const i of slab.cells.keys()) {
                    const words = m.words(cache, slab, i);
                    if (words.includes(address))
                        return { at: m.heap.address(cache, slab, i) +
                                     4 * words.indexOf(address),
                                 bytes: [0, 0, 0, 0] };
                }
            throw new Error("no object of kmem_play points there");
        },
        run: "leaks",
        show: "lost",
        claims: [
            m => ["an object of the cache is suspect, and the report says " +
                  "who allocated it", LOST.test(m.text) &&
                  /play_alloc|cmd_kmem/.test(m.text)],
        ],
    }],
}];
