/*
 * Step by allocation: the machine stops at each call of kmem_cache_alloc and
 * kmem_cache_free.
 *
 * v86 has no breakpoints. So while this mode is on, both functions begin with a
 * jump to a few instructions in memory below 1 MiB, which Slate never uses.
 * They write to a port of the page's, wait as long as the page wants, execute
 * what the jump has replaced, and jump back:
 *
 *     kmem_cache_alloc:                 below 1 MiB:
 *         jmp   detour ---------------> out   0xEA, al
 *         ...  <-------------------+    pushf
 *                                  |    cli
 *                                  |  1 cmpb  $0, wait
 *                                  |    jne   1
 *                                  |    popf
 *                                  |    (the first instructions)
 *                                  +--- jmp
 *
 * This is the only mode of the page in which the guest executes more than
 * without: eight instructions a call.
 */
import { DIRECT_MAP } from "./guest.mjs";

const PORT = 0xEA;
const PLACE = 0x6000, SPACE = 64; // of the detours; the last byte is `wait`
const JUMP = 5;                   // bytes of a near jump

/* The instructions with which a function of the kernel begins, as long as they
 * can be executed at another place: bytes, ?? for any. */
const MOVABLE = ["9c", "fa", "8f 40 ??", "66 f7 40 ?? ?? ??", "53", "55", "56",
                 "57", "89 ??", "83 ec ??"].map(p => p.split(" "));

/* How many bytes of whole movable instructions are at the beginning of `code`,
 * the least that have room for a jump; 0: others come before. */
function movable(code) {
    let n = 0;
    while (n < JUMP) {
        const found = MOVABLE.find(p => p.every(
            (byte, i) => byte === "??" || parseInt(byte, 16) === code[n + i]));
        if (!found)
            return 0;
        n += found.length;
    }
    return n;
}

function word(n) {
    return [n & 255, n >>> 8 & 255, n >>> 16 & 255, n >>> 24];
}

export class Stepper {
    /* `stopped({name, cache, object, caller})` is called when a call has been
     * reached: the function, its arguments, the address it returns to. */
    constructor(machine, guest, stopped) {
        Object.assign(this, { machine, guest, stopped });
        this.names = ["kmem_cache_alloc", "kmem_cache_free"];
        this.saved = null; // {address, bytes} of what was replaced
        machine.onPort(PORT, () => this.reached());
    }

    get on() {
        return this.saved !== null;
    }

    entry(name) {
        const found = this.guest.functions.find(f => f[2] === name);
        if (!found)
            throw new Error(`the kernel has no ${name}`);
        return found[0];
    }

    /* Turns the mode on: from now on the machine stops at each call. */
    start() {
        this.saved = this.names.map((name, i) => {
            const address = this.entry(name) - DIRECT_MAP;
            const code = this.machine.memory.slice(address, address + 16);
            const n = movable(code);
            if (n === 0)
                throw new Error(`${name} begins with other instructions`);
            const at = PLACE + i * SPACE, wait = at + SPACE - 1;
            const detour = [0xE6, PORT, 0x9C, 0xFA,
                            0x80, 0x3D, ...word(wait + DIRECT_MAP), 0,
                            0x75, 0xF7, 0x9D, ...code.slice(0, n), 0xE9];
            const back = address + n - (at + detour.length + 4);
            this.machine.write(at, [...detour, ...word(back)]);
            this.machine.write(wait, [0]);
            this.machine.write(address, [
                0xE9, ...word(at - (address + JUMP)),
                ...Array(n - JUMP).fill(0x90)]);
            return { address, bytes: code.slice(0, n) };
        });
        this.hold(false);
    }

    /* Turns it off. The machine goes on when it is told to. */
    end() {
        for (const { address, bytes } of this.saved)
            this.machine.write(address, bytes);
        this.saved = null;
        this.hold(false);
    }

    /* The machine has gone back to where the mode was off. */
    forget() {
        this.saved = null;
    }

    hold(on) {
        this.names.forEach((_, i) => this.machine.write(
            PLACE + (i + 1) * SPACE - 1, [on ? 1 : 0]));
    }

    /* The machine has written to the port. */
    reached() {
        if (!this.on)
            return;
        const { eax, edx, esp, eip } = this.machine.registers;
        const i = Math.floor((eip - DIRECT_MAP - PLACE) / SPACE);
        const name = this.names[i];
        this.hold(true);
        this.call = { name, cache: eax,
                      object: name === "kmem_cache_free" ? edx : 0,
                      caller: this.guest.u32(esp) };
        this.machine.pause();
        this.stopped(this.call);
    }

    /* To the next call. */
    async step() {
        this.hold(false);
        await this.machine.run();
    }
}
