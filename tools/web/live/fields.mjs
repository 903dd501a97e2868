/*
 * What is at an address, and a structure's members as text.
 */
import { DIRECT_MAP, Inconsistent, hex } from "./guest.mjs";

/* The struct that a cache's objects have: Slate names a cache after it. */
export function structOf(guest, cache) {
    const struct = guest.structs.get(cache.name);
    return struct?.size === cache.size ? struct : null;
}

/* A whole number of 1, 2, 4 or 8 bytes. */
function number(guest, address, type) {
    switch (type.size) {
    case 1:
        return type.signed ? guest.u8(address) << 24 >> 24 : guest.u8(address);
    case 2:
        return type.signed ? guest.u16(address) << 16 >> 16 :
            guest.u16(address);
    case 8:
        return guest.u64(address);
    default:
        return type.signed ? guest.u32(address) | 0 : guest.u32(address);
    }
}

/* A name for what a pointer points to: a function, a variable, an object; ""
 * for what has none. */
export function describe(guest, heap, address) {
    if (address === 0)
        return "NULL";
    const f = guest.function(address);
    if (f)
        return f.name + (f.offset ? `+0x${f.offset.toString(16)}` : "");
    const found = heap.find(address);
    if (found)
        return found.index < 0 ? `in a slab of ${found.cache.name}` :
            found.cache.name;
    const v = guest.variableAt(address);
    return v ? v.name + (v.offset ? `+${v.offset}` : "") : "";
}

/* The members of the struct at an address as rows: {name, depth, text, to}.
 * `to` is the address that a pointer has and that can be followed, else 0.
 * Members that are structs come with theirs. */
export function rows(guest, heap, address, struct) {
    const found = [];

    function add(name, depth, at, type) {
        const row = { name, depth, text: "", to: 0 };
        found.push(row);
        try {
            value(row, at, type);
        } catch (e) {
            if (!(e instanceof Inconsistent))
                throw e;
            row.text = "cannot be read";
        }
    }

    function members(at, name, depth) {
        const inner = guest.structs.get(name);
        for (const [member, { offset, type }] of
            Object.entries(inner?.members ?? {}))
            add(member, depth, at + offset, type);
    }

    /* An address is often kept as a number, and an enum in a byte. */
    function whole(row, n, type) {
        const enumerator = guest.names[row.name]?.get(n);
        if (enumerator) {
            row.text = enumerator;
        } else if (type.size === 4 && !type.signed && n >= DIRECT_MAP) {
            pointer(row, n);
        } else {
            row.text = /addr|ptr/.test(type.name) ? hex(n) : n.toString();
        }
    }

    function pointer(row, to) {
        const what = describe(guest, heap, to);
        row.text = to ? hex(to) + (what ? ` ${what}` : "") : "NULL";
        row.to = guest.has(to) ? to : 0;
    }

    function value(row, at, type) {
        switch (type?.kind) {
        case "int":
            whole(row, number(guest, at, type), type);
            break;
        case "enum": {
            const n = number(guest, at, { ...type, signed: false });
            row.text = guest.names[type.name]?.get(n) ?? n.toString();
            break;
        }
        case "pointer":
            pointer(row, guest.u32(at));
            break;
        case "struct":
            members(at, type.name, row.depth + 1);
            break;
        case "array":
            if (type.of.kind === "int" && type.of.name === "char") {
                row.text = JSON.stringify(guest.text(at, type.count));
                break;
            }
            row.text = `${type.count} of ${type.of.name ?? type.of.kind}`;
            for (let i = 0; i < Math.min(type.count, 16); i++)
                add(`[${i}]`, row.depth + 1, at + i * guest.sizeOf(type.of),
                    type.of);
            break;
        default:
            row.text = "?";
        }
    }

    members(address, struct.name, 0);
    return found;
}

/* The words of an object without a struct, as rows. */
export function words(guest, heap, address, size) {
    const found = [];
    for (let i = 0; i < Math.min(size, 256); i += 4) {
        const n = guest.u32(address + i), what = describe(guest, heap, n);
        const text = Array.from({ length: 4 }, (_, k) => n >>> 8 * k & 255)
            .map(c => c >= 32 && c < 127 ? String.fromCharCode(c) : ".")
            .join("");
        found.push({ name: `+${i}`, depth: 0, to: what && guest.has(n) ? n : 0,
                     text: `${hex(n)} ${what || text}` });
    }
    return found;
}
