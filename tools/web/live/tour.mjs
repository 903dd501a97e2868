/*
 * The paper, live: scenes beside the machine. Each starts on a new machine. A
 * step is done by the page: it types the commands, waits for the prompt, and
 * shows what is then true, read from the machine's memory.
 */
import { button, element } from "./dom.mjs";
import { clock } from "./clock.mjs";
import { Shell } from "./shell.mjs";
import { SCENES, SETS, setsOf } from "./scenes.mjs";
import { source } from "./source.mjs";

/* The heap after a step, and before it. */
class Moment {
    constructor(heap, before, text) {
        this.heap = { caches: heap.caches, find: at => heap.find(at),
                      next: cache => heap.next(cache),
                      address: (...where) => heap.address(...where) };
        this.before = before;
        this.text = text; // what the commands printed
        this.guest = heap.guest;
    }

    /* The words of an object. */
    words(cache, slab, index) {
        const at = this.heap.address(cache, slab, index);

        return Array.from({ length: cache.size >> 2 },
                          (_, i) => this.guest.u32(at + 4 * i));
    }

    cache(name) {
        return this.heap.caches.find(c => c.name === name);
    }
}

export class Tour {
    /* `restart()` boots a new machine, with its prompt, and returns it and its
     * HeapView: {machine, heap}. `link(id)` notes which scene is shown. */
    constructor(section, restart, link) {
        Object.assign(this, { section, restart, link });
        this.number = 0; // of starts: what belongs to an earlier one ends
    }

    async open(id) {
        const at = Math.max(SCENES.findIndex(s => s.id === id), 0);
        const scene = SCENES[at], number = ++this.number;

        this.section.hidden = false;
        this.link(scene.id);
        this.draw(scene, at);
        const { machine, heap } = await this.restart();
        if (number !== this.number)
            return;
        Object.assign(this, { machine, heap, scene });
        this.shell = new Shell(machine);
        await this.shell.prompt();
        if (number !== this.number)
            return;
        this.code.replaceChildren(...this.places());
        this.showStep(0);
    }

    close() {
        this.number++;
        this.section.hidden = true;
        this.link("");
    }

    draw(scene, at) {
        const bar = element("div", "", "tour-bar"), choice = element("select");
        choice.setAttribute("aria-label", "scene");
        SCENES.forEach((s, i) => choice.add(new Option(
            `${s.section}  ${s.title}`, s.id, false, i === at)));
        choice.addEventListener("change", () => this.open(choice.value));
        bar.append(choice, button("Again", () => this.open(scene.id)),
                   button("Close", () => this.close()));
        this.steps = element("div", "", "steps");
        this.code = element("p", "", "code");
        this.section.replaceChildren(bar, element(
            "h2", `${scene.title}`), element("p",
            `Section ${scene.section} of the slab paper, scene ${at + 1} of ` +
            `${SCENES.length}`, "section"), this.steps, this.code);
        this.after = SCENES[at + 1];
    }

    /* Where the scene's functions are in the source. */
    places() {
        const found = [element("span", "In the source: ")];
        for (const name of this.scene.code) {
            const f = this.heap.guest.functions.find(x => x[2] === name);
            if (!f)
                continue;
            const code = element("code", `${name}, `);
            code.append(source(f[3], f[4]));
            found.push(code);
        }
        return found;
    }

    showStep(i) {
        const step = this.scene.steps[i], box = element("section", "", "step");
        for (const text of step.text.split("\n"))
            box.append(element("p", text));
        this.steps.append(box);
        const act = button(this.label(step), () => this.act(i, box, act),
                           { classes: "act" });
        if (step.ask) {
            act.disabled = true;
            box.append(this.question(step.ask, i, act));
        }
        box.append(act);
        (step.ask ? box.querySelector("input") : act)
            .focus({ preventScroll: true });
        box.scrollIntoView({ block: "nearest" });
    }

    label(step) {
        return [step.pass && `${step.pass} seconds pass`,
                step.damage && "Write the byte", step.run]
            .filter(Boolean).join("; ");
    }

    question(ask, i, act) {
        const set = element("fieldset"), because = element("p", "", "because");
        set.append(element("legend", ask.question));
        ask.answers.forEach((answer, n) => {
            const label = element("label"), input = element("input");
            input.type = "radio";
            input.name = `step-${i}`;
            input.value = n;
            input.addEventListener("change", () => {
                act.disabled = false;
            });
            label.append(input, ` ${answer}`);
            set.append(label);
        });
        set.append(because);
        because.setAttribute("role", "status");
        set.reveal = () => {
            const chosen = set.querySelector("input:checked");
            set.disabled = true;
            because.textContent =
                (+chosen.value === ask.right ? "Right. " :
                    `It is: ${ask.answers[ask.right]}. `) + ask.because;
        };
        return set;
    }

    async act(i, box, act) {
        const step = this.scene.steps[i], number = this.number;
        act.disabled = true;
        const before = this.moment();
        await this.perform(step, before);
        if (number !== this.number)
            return;
        box.querySelector("fieldset")?.reveal();
        this.show(i, box, before);
        this.next(i, box);
    }

    async perform(step, before) {
        const { machine } = this;
        if (step.pass) {
            const end = clock.now() + 1000 * step.pass;
            machine.speed = Infinity;
            while (clock.now() < end)
                await new Promise(requestAnimationFrame);
            machine.speed = 1;
        }
        if (step.damage) {
            const { at, bytes } = step.damage(before);
            machine.write(this.heap.guest.place(at, bytes.length), bytes);
        }
        if (step.dies)
            await this.shell.dies(step.run);
        else if (step.run)
            await this.shell.run(step.run);
    }

    moment(before = null) {
        this.heap.draw();
        return new Moment(this.heap.heap, before, this.shell.text);
    }

    /* Shows what is true after a step. */
    show(i, box, before) {
        const step = this.scene.steps[i], now = this.moment(before);
        const results = step.claims.map(claim => claim(now));
        if (step.dies)
            results.push([`the kernel stopped: ${this.shell.death}`,
                          step.dies.test(this.shell.death ?? "")]);
        const list = element("ul", "", "claims");
        for (const [text, holds] of results)
            list.append(element("li", text, holds ? "holds" : "fails"));
        box.append(list);
        if (step.sets)
            box.append(...step.sets.map(name => this.sets(now.cache(name))));
        if (step.show)
            this.heap.goTo(step.show);
    }

    /* The sets of a processor's cache, darker for more first objects. */
    sets(cache) {
        const figure = element("figure", "", "sets"), row = element("div");
        const counts = Array(SETS).fill(0);
        for (const set of setsOf(cache))
            counts[set]++;
        for (const n of counts) {
            const cell = element("span");
            cell.style.opacity = n ? Math.min(0.3 + n / 8, 1) : 1;
            cell.className = n ? "hit" : "";
            row.append(cell);
        }
        figure.append(row, element("figcaption", `the first objects of the ` +
            `slabs of ${cache.name} in the ${SETS} sets of the cache`));
        return figure;
    }

    next(i, box) {
        if (i + 1 < this.scene.steps.length)
            this.showStep(i + 1);
        else if (this.after)
            box.append(button(`Next: ${this.after.title}`,
                              () => this.open(this.after.id),
                              { classes: "act" }));
        else
            box.append(element("p", "This was the last scene."));
    }
}
