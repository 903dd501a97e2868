/*
 * Who has a pointer to an object: other objects, and variables of the kernel;
 * and from there on the way to the task, or the variable, that it belongs to.
 *
 * Where an object's structure is known, its pointers are searched, else all of
 * its words, as the leak scan of the kernel does (mm/debug/leak.c). Stacks are
 * not: they have pointers of calls that have returned.
 */
import { DIRECT_MAP, Inconsistent } from "./guest.mjs";
import { CELL_FREE } from "./heap.mjs";
import { structOf } from "./fields.mjs";

const STEPS = 4;      // from an object to its owner
const WIDTH = 16;     // objects that are followed in a step
const LARGEST = 4096; // bytes of a variable that is searched
const STACKS = "kstack";

/* The words in [from, from + bytes) that point into one of the targets:
 * [offset, target]. */
function* pointers(guest, from, bytes, targets) {
    const first = guest.place(from, bytes) >>> 2;
    for (let i = 0; i < bytes >>> 2; i++) {
        const word = guest.words[first + i];
        if (word < DIRECT_MAP)
            continue;
        for (const target of targets)
            if (word - target.at >>> 0 < target.cache.size)
                yield [4 * i, target];
    }
}

/* The innermost member of a struct at an offset: [name, type], the name as
 * "a.b" or "a[1].b"; null between members. */
function memberAt(guest, struct, offset) {
    const found = Object.entries(struct?.members ?? {}).find(
        ([, { offset: at, type }]) => offset >= at &&
            offset < at + guest.sizeOf(type));
    if (!found)
        return null;
    let [name, { offset: at, type }] = found;
    at = offset - at;
    if (type.kind === "array") {
        const size = guest.sizeOf(type.of);
        name += `[${Math.floor(at / size)}]`;
        at %= size;
        type = type.of;
    }
    if (type.kind !== "struct")
        return [name, type];
    const inner = memberAt(guest, guest.structs.get(type.name), at);
    return inner ? [`${name}.${inner[0]}`, inner[1]] : [name, type];
}

/* The name of a word of an object; null if it is known to be a number. */
function nameOf(guest, struct, offset) {
    const found = struct && memberAt(guest, struct, offset);
    if (!struct)
        return `+${offset}`;
    return found && !["int", "enum"].includes(found[1].kind) ? found[0] : null;
}

function* allocated(heap) {
    for (const cache of heap.caches)
        if (!cache.internal && cache.name !== STACKS)
            for (const slab of cache.slabs)
                for (const [i, cell] of slab.cells.entries())
                    if (cell !== CELL_FREE)
                        yield { cache, at: heap.address(cache, slab, i) };
}

/* The allocated objects that point to one of the targets, which are
 * {cache, at}, and the variables: {cache, at, name, like}. Of a variable,
 * cache is null and `at` is 0. `like`: both are of one cache, as neighbours in
 * a list are. */
export function holders(guest, heap, targets) {
    const found = [];
    for (const { cache, at } of allocated(heap))
        for (const [offset, target] of pointers(guest, at, cache.size,
                                                targets)) {
            const name = nameOf(guest, structOf(guest, cache), offset);
            if (name && target.at !== at)
                found.push({ cache, at, name, like: target.cache === cache });
        }
    for (const [name, { address, type }] of Object.entries(guest.variables)) {
        const bytes = Math.min(guest.sizeOf(type), LARGEST);
        if (address & 3 || !guest.has(address, bytes))
            continue;
        for (const _ of pointers(guest, address, bytes, targets)) {
            found.push({ cache: null, at: 0, name, like: false });
            break;
        }
    }
    return found;
}

/* What an object belongs to, as text: the nearest task by its name, or else a
 * variable; "" for a task, and without either. */
function search(guest, heap, cache, object) {
    const seen = new Set([object]), name = guest.struct("task").at.task_name;
    let targets = [{ cache, at: object }], variable = "";
    for (let step = 0; step < STEPS && targets.length; step++) {
        const found = holders(guest, heap, targets).filter(h => !h.like);
        const task = found.find(h => h.cache?.name === "task");
        if (task)
            return `task ${guest.text(task.at + name, 32)}`;
        variable ||= found.find(h => !h.cache)?.name ?? "";
        targets = found.filter(h => h.cache && !seen.has(h.at))
            .slice(0, WIDTH);
        targets.forEach(h => seen.add(h.at));
    }
    return variable && `variable ${variable}`;
}

/* The same; "" also if memory cannot be read. */
export function ownerOf(guest, heap, cache, object) {
    try {
        return cache.name === "task" ? "" : search(guest, heap, cache, object);
    } catch (e) {
        if (!(e instanceof Inconsistent))
            throw e;
        return "";
    }
}
