/*
 * The machine's past: its state every second of its own time.
 *
 * A state is v86's without the memory, and the memory. Both are cut into
 * blocks of a page. A block that is as in the state before is the same array,
 * so a state costs what has changed since. The oldest states go when there are
 * too many, or too many bytes.
 */
const EVERY_MS = 1000, COUNT_MOST = 180, BYTES_MOST = 160 << 20;
const BLOCK = 4096;
const ZEROS = new Uint8Array(BLOCK);

/* Bytes as blocks; `before` is what they were, or null. */
class Blocks {
    constructor(bytes, before) {
        const words = new Uint32Array(bytes.buffer, bytes.byteOffset,
                                      bytes.length >>> 2);
        this.length = bytes.length;
        this.own = 0; // bytes that `before` has not
        this.blocks = [];
        for (let at = 0; at < bytes.length; at += BLOCK) {
            const old = before?.blocks[at / BLOCK] ?? ZEROS;
            if (same(words, at / 4, old)) {
                this.blocks.push(old);
            } else {
                this.own += BLOCK;
                this.blocks.push(bytes.slice(at, at + BLOCK));
            }
        }
    }

    copyTo(bytes) {
        this.blocks.forEach((block, i) => bytes.set(
            block.subarray(0, this.length - i * BLOCK), i * BLOCK));
    }
}

/* Whether the words from `at` on are those of a block. A last one that is no
 * whole block is as no other. */
function same(words, at, block) {
    if (block.length !== BLOCK || at + BLOCK / 4 > words.length)
        return false;
    const old = new Uint32Array(block.buffer, block.byteOffset, BLOCK / 4);
    for (let i = 0; i < BLOCK / 4; i++)
        if (words[at + i] !== old[i])
            return false;
    return true;
}

export class History {
    constructor(machine) {
        this.machine = machine;
        this.states = []; // {ms, typed, read, line, rest, memory}, oldest first
        this.bytes = 0;   // about what they take
    }

    /* Notes the machine's state if it is time. Not while it executes: between
     * two slices of the emulator. */
    notice() {
        const last = this.states.at(-1);
        if (!last || this.machine.time - last.ms >= EVERY_MS)
            this.take();
    }

    take() {
        const { machine } = this, last = this.states.at(-1);
        const { bytes, ...others } = machine.state();
        const state = { ...others, rest: new Blocks(bytes, last?.rest),
                        memory: new Blocks(machine.memory, last?.memory) };
        state.own = state.rest.own + state.memory.own;
        this.states.push(state);
        this.bytes += state.own;
        while (this.states.length > COUNT_MOST ||
               this.bytes > BYTES_MOST && this.states.length > 2)
            this.forget();
    }

    /* Forgets the oldest state. What the next one shares with it is the next
     * one's now. */
    forget() {
        const [oldest, next] = this.states;
        const kept = new Set([...next.rest.blocks, ...next.memory.blocks]);
        let shared = 0;
        for (const block of [...oldest.rest.blocks, ...oldest.memory.blocks])
            if (block !== ZEROS && kept.has(block))
                shared += BLOCK;
        this.bytes -= oldest.own - shared;
        next.own += shared;
        this.states.shift();
    }

    /* The memory of a state. */
    memory(i) {
        const bytes = new Uint8Array(this.machine.memory.length);
        this.states[i].memory.copyTo(bytes);
        return bytes;
    }

    /* Makes the machine what it was in a state; forgets what was later. */
    returnTo(i) {
        const { rest, memory, ...others } = this.states[i];
        const bytes = new Uint8Array(rest.length);
        rest.copyTo(bytes);
        this.machine.restore({ ...others, bytes }, memory);
        for (const later of this.states.splice(i + 1))
            this.bytes -= later.own;
    }
}
