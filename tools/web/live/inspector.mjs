/*
 * What one address is: the object, its cache and slab, and the members of its
 * struct. Pointers can be followed, with a way back.
 */
import { button, element } from "./dom.mjs";
import { hex, Inconsistent } from "./guest.mjs";
import { CELL_FREE, STATES } from "./heap.mjs";
import { describe, rows, structOf, words } from "./fields.mjs";
import { holders, ownerOf } from "./owners.mjs";

const OWNERS_MS = 1000; // a search is long: so often while the machine runs
const HOLDERS = 16;     // are shown

export class Inspector {
    /* `show(address)` is called when a place has been chosen here; `running()`
     * says whether the machine runs. */
    constructor(section, guest, heap, show, running) {
        Object.assign(this, { section, guest, heap, show, running });
        this.path = [];
        this.back = button("Back", () => this.return());
        this.close = button("Close", () => this.select(0));
        this.title = element("h3");
        this.facts = element("p", "", "facts");
        this.list = element("ul", "", "members");
        const bar = element("div", "", "bar");
        bar.append(this.title, this.back, this.close);
        section.append(bar, this.facts, this.list);
        section.hidden = true;
    }

    get address() {
        return this.path.at(-1) ?? 0;
    }

    /* Shows the object at an address; what was shown before is a step back. */
    select(address) {
        if (address === 0)
            this.path = [];
        else if (address !== this.address)
            this.path.push(address);
        this.said = "";
        this.update();
        this.show(this.address);
    }

    return() {
        this.path.pop();
        this.said = "";
        this.update();
        this.show(this.address);
    }

    /* The place as it is now. */
    look(address) {
        const { guest, heap } = this, found = heap.find(address);
        if (!found || found.index < 0)
            return this.outside(address, found);
        const { cache, slab, index } = found;
        const at = heap.address(cache, slab, index);
        const used = slab.cells[index] !== CELL_FREE;
        const struct = structOf(guest, cache);
        const owner = used ? this.owner(cache, at) : { text: "", rows: [] };
        return {
            title: `${struct ? `struct ${struct.name}` : cache.name} at ` +
                hex(at),
            facts: `Object ${index} of ${slab.chunks}, ` +
                `${used ? "allocated" : "free"}, in a ${STATES[slab.state]} ` +
                `slab at ${hex(slab.base)} with colour ${slab.colour}. ` +
                (owner.text && `It belongs to ${owner.text}. `) +
                `Cache ${cache.name}: ${cache.size} bytes an object, ` +
                `${cache.chunk} from one to the next.`,
            rows: [...struct ? rows(guest, heap, at, struct) :
                       words(guest, heap, at, cache.size), ...owner.rows],
        };
    }

    /* What an object belongs to, and what points to it: {text, rows}. */
    owner(cache, at) {
        const { guest, heap } = this, now = performance.now();
        const last = this.lastOwner;
        if (this.running() && last?.at === at && now - last.when < OWNERS_MS)
            return last;
        this.lastOwner = {
            at, when: now, text: ownerOf(guest, heap, cache, at),
            rows: holders(guest, heap, [{ cache, at }]).slice(0, HOLDERS).map(
                h => ({ name: "pointed to by", depth: 0, to: h.at,
                        text: h.cache ? `${h.cache.name} ${h.name}` :
                            `variable ${h.name}` })),
        };
        return this.lastOwner;
    }

    outside(address, found) {
        const { guest, heap } = this;
        const cache = heap.caches.find(c => c.at === address);
        if (cache)
            return { title: `cache ${cache.name}`, facts: hex(address),
                     rows: rows(guest, heap, address,
                                guest.struct("kmem_cache")) };
        if (found) {
            const end = found.slab.base + found.cache.slabBytes;
            if (!found.cache.large && address >= end - heap.header)
                return { title: `struct kmem_slab at ${hex(found.slab.at)}`,
                         facts: `The slab of ${found.cache.name} that it ` +
                             "is in.",
                         rows: rows(guest, heap, found.slab.at,
                                    guest.struct("kmem_slab")) };
            return { title: hex(address), rows: [],
                     facts: address < found.slab.base + found.slab.colour ?
                         `The colour of a slab of ${found.cache.name}: ` +
                         `${found.slab.colour} bytes before the first object.` :
                         `Unused bytes of a slab of ${found.cache.name}.` };
        }
        const v = guest.variableAt(address);
        if (v?.type.kind === "struct")
            return { title: v.name, facts: `A variable, struct ${v.type.name}.`,
                     rows: rows(guest, heap, address - v.offset,
                                guest.struct(v.type.name)) };
        return { title: describe(guest, heap, address) || hex(address),
                 facts: v ? "A variable." : "In no slab.",
                 rows: words(guest, heap, (address & ~3) >>> 0, 64) };
    }

    /* Draws it again if anything has changed. */
    update() {
        this.section.hidden = this.address === 0;
        if (this.address === 0)
            return;
        let now;
        try {
            now = this.look(this.address);
        } catch (e) {
            if (!(e instanceof Inconsistent))
                throw e;
            now = { title: hex(this.address), facts: e.message, rows: [] };
        }
        const said = JSON.stringify(now);
        if (said === this.said)
            return;
        this.said = said;
        this.title.textContent = now.title;
        this.facts.textContent = now.facts;
        this.back.disabled = this.path.length < 2;
        const had = this.list.contains(document.activeElement) ?
            document.activeElement.dataset.row : null;
        this.list.replaceChildren(...now.rows.map((row, i) =>
            this.row(row, i)));
        if (had !== null)
            this.list.querySelector(`[data-row="${had}"]`)?.focus();
    }

    row(row, i) {
        const line = element("li");
        const name = element("span", row.name);
        name.style.paddingInlineStart = `${row.depth}em`;
        const value = element("span");
        if (row.to) {
            const follow = button(row.text, () => this.select(row.to),
                                  { classes: "pointer" });
            follow.dataset.row = i;
            value.append(follow);
        } else {
            value.textContent = row.text;
        }
        line.append(name, value);
        return line;
    }
}
