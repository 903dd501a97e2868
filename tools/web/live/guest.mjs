/*
 * The guest's memory by the names of its source.
 *
 * layouts.json, which tools/web/layouts.py makes of the kernel's debug
 * information, says where members and variables are. The page reads the
 * machine's memory itself, so the guest executes nothing for it. The memory may
 * be that of a moment in the past.
 */

/* Where the kernel's direct map begins: KERNEL_BASE. */
export const DIRECT_MAP = 0xC0000000;
export const PAGE_SIZE = 4096;

/* A place that cannot be read as what it should be. The machine may be stopped
 * in the middle of a change, or its memory may be damaged. */
export class Inconsistent extends Error {}

export function hex(n) {
    return "0x" + (n >>> 0).toString(16).padStart(8, "0");
}

export class Guest {
    constructor(memory, layouts) {
        this.layouts = layouts;
        this.structs = new Map(Object.entries(layouts.structs).map(
            ([name, s]) => [name, { name, ...s, at: Object.fromEntries(
                Object.entries(s.members).map(([m, x]) => [m, x.offset])) }]));
        this.variables = layouts.variables;
        this.functions = layouts.functions;
        this.calls = layouts.calls;
        this.names = Object.fromEntries(Object.entries(layouts.enums).map(
            ([name, values]) => [name, new Map(
                Object.entries(values).map(([n, v]) => [v, n]))]));
        this.look(memory);
    }

    /* Reads this memory, a Uint8Array of physical addresses, from now on. */
    look(memory) {
        this.memory = memory;
        this.words = new Uint32Array(memory.buffer, memory.byteOffset,
                                     memory.length >>> 2);
    }

    /* Whether `n` bytes there are memory of the machine. */
    has(address, n = 1) {
        const at = (address - DIRECT_MAP) >>> 0;
        return at + n <= this.memory.length;
    }

    /* Where in this.memory an address of the kernel is. */
    place(address, n) {
        const at = (address - DIRECT_MAP) >>> 0;
        if (at + n > this.memory.length)
            throw new Inconsistent(`${hex(address)} is not in memory`);
        return at;
    }

    u8(address) {
        return this.memory[this.place(address, 1)];
    }

    u16(address) {
        const at = this.place(address, 2);
        return this.memory[at] | this.memory[at + 1] << 8;
    }

    u32(address) {
        const at = this.place(address, 4);
        if (at & 3)
            throw new Inconsistent(`${hex(address)} is not aligned`);
        return this.words[at >>> 2];
    }

    u64(address) {
        return this.u32(address) + this.u32(address + 4) * 2 ** 32;
    }

    /* The characters up to a NUL, `most` at most. */
    text(address, most) {
        let s = "";
        for (let i = 0, c; i < most && (c = this.u8(address + i)); i++)
            s += String.fromCharCode(c);
        return s;
    }

    struct(name) {
        const found = this.structs.get(name);
        if (!found)
            throw new Error(`layouts.json has no struct ${name}`);
        return found;
    }

    variable(name) {
        const found = this.variables[name];
        if (!found)
            throw new Error(`layouts.json has no variable ${name}`);
        return found.address;
    }

    /* The function that holds an address: {name, offset, file, line}, or
     * null. */
    function(address) {
        let low = 0, high = this.functions.length;
        while (low < high) {
            const middle = low + high >>> 1;
            if (this.functions[middle][0] <= address)
                low = middle + 1;
            else
                high = middle;
        }
        const found = this.functions[low - 1];
        if (!found || address >= found[0] + Math.max(found[1], 1))
            return null;
        const [start, , name, file, line] = found;
        return { name, offset: address - start, file, line };
    }

    /* The variable that holds an address: {name, offset, type}, or null. */
    variableAt(address) {
        for (const [name, { address: start, type }] of
            Object.entries(this.variables)) {
            const size = this.sizeOf(type);
            if (address >= start && address < start + Math.max(size, 1))
                return { name, offset: address - start, type };
        }
        return null;
    }

    /* Bytes of a type of layouts.json. */
    sizeOf(type) {
        switch (type.kind) {
        case "int":
        case "enum":
            return type.size;
        case "struct":
            return this.structs.get(type.name)?.size ?? 0;
        case "array":
            return type.count * this.sizeOf(type.of);
        default:
            return 4;
        }
    }

    /* The members of a circular list (kernel/lib/list.h), each moved back by
     * `offset`. */
    *list(head, offset, most) {
        for (let link = this.u32(head), n = 0; link !== head; n++) {
            if (n === most)
                throw new Inconsistent(`the list at ${hex(head)} has no end`);
            yield link - offset;
            link = this.u32(link);
        }
    }
}
