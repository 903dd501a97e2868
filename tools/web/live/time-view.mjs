/*
 * The machine's time: pause, speed, a slider over the past, and the step from
 * one allocation to the next.
 */
import { button, element } from "./dom.mjs";
import { hex } from "./guest.mjs";
import { History } from "./history.mjs";
import { source } from "./source.mjs";
import { Stepper } from "./step.mjs";

const SPEEDS = [[1, "full speed"], [0.1, "a tenth"], [0.01, "a hundredth"],
                [0.001, "a thousandth"], [Infinity, "waits are skipped"]];

export class TimeView {
    /* `heap` is the HeapView that shows the moment. `returned(ms)` is called
     * when the machine has gone back. */
    constructor(section, machine, heap, returned) {
        Object.assign(this, { section, machine, heap, returned });
        this.history = new History(machine);
        this.stepper = new Stepper(machine, heap.guest,
                                   call => this.stopped(call));
        this.shown = -1; // the state that is shown; -1: the present
        this.build();
        this.update();
    }

    build() {
        this.slider = element("input");
        this.slider.type = "range";
        this.slider.min = 0;
        this.slider.setAttribute("aria-label", "moment");
        this.slider.addEventListener("input",
                                     () => this.show(+this.slider.value));
        this.moment = element("output", "", "moment");
        this.on = button("Run on from here", () => this.goBack(this.shown));
        this.now = button("Back to now", () => this.show(-1));

        this.speed = element("select");
        this.speed.setAttribute("aria-label", "speed");
        for (const [speed, text] of SPEEDS)
            this.speed.add(new Option(text, speed));
        this.speed.addEventListener("change", () => {
            this.machine.speed = +this.speed.value;
        });

        this.mode = element("input");
        this.mode.type = "checkbox";
        this.mode.addEventListener("change", () => this.setMode());
        const mode = element("label", " stop at each allocation");
        mode.prepend(this.mode);
        mode.title = "The guest then executes eight instructions more a call.";
        this.next = button("Next call", () => this.step());
        this.said = element("p", "", "call");
        this.said.setAttribute("role", "status");

        const bar = element("div", "", "bar"), line = element("div", "", "bar");
        bar.append(this.slider, this.moment, this.on, this.now);
        line.append(this.speed, mode, this.next);
        this.section.replaceChildren(bar, line, this.said);
    }

    /* Called for each frame of the screen. The past begins with the kernel: v86
     * cannot return to where the firmware sets up the devices. */
    frame() {
        this.mode.disabled = !this.heap.up;
        if (this.machine.running && this.heap.up && this.shown < 0 &&
            !this.stepper.on) {
            const count = this.history.states.length;
            this.history.notice();
            if (this.history.states.length !== count)
                this.update();
        }
    }

    update() {
        const { states } = this.history, past = this.shown >= 0;
        this.slider.max = states.length;
        this.slider.value = past ? this.shown : states.length;
        this.slider.disabled = states.length === 0;
        this.on.hidden = this.now.hidden = !past;
        this.moment.textContent = past ?
            `${((this.machine.time - states[this.shown].ms) / 1000).toFixed(0)
            } s ago` : "now";
        this.next.hidden = !this.stepper.on;
        if (!this.stepper.on)
            this.said.textContent = "";
    }

    /* Shows the heap of a state; the machine stands meanwhile. */
    async show(i) {
        if (i >= this.history.states.length)
            i = -1;
        if (i >= 0 && this.machine.running)
            await this.machine.pause();
        this.shown = i;
        this.heap.past = i >= 0 ? this.history.memory(i) : null;
        this.update();
        this.heap.draw();
    }

    /* Makes a state the present. */
    async goBack(i) {
        await this.machine.pause();
        if (this.stepper.on)
            this.stepper.forget();
        this.mode.checked = false;
        this.history.returnTo(i);
        this.shown = -1;
        this.heap.past = null;
        this.update();
        this.heap.point(0);
        this.returned(this.history.states[i].ms);
        await this.machine.run();
    }

    /* Goes back so many seconds, or as far as there is a past. */
    async goBackFor(seconds) {
        const { states } = this.history, wanted =
            this.machine.time - 1000 * seconds;
        const i = states.findLastIndex(s => s.ms <= wanted);
        await this.goBack(Math.max(i, 0));
    }

    async setMode() {
        await this.show(-1);
        if (this.mode.checked) {
            this.stepper.start();
            this.said.textContent =
                "The machine stops at its next allocation or free.";
        } else {
            this.stepper.end();
            this.heap.point(0);
        }
        await this.machine.run();
        this.update();
    }

    async step() {
        this.next.disabled = true;
        await this.stepper.step();
    }

    /* Goes on from the present. */
    async run() {
        await this.show(-1);
        if (this.stepper.on && !this.next.disabled)
            await this.step();
        else
            await this.machine.run();
    }

    /* The machine has reached a call of the allocator. */
    stopped(call) {
        const { guest, heap } = this.heap;
        guest.look(this.machine.memory);
        heap.read();
        const cache = heap.caches.find(c => c.at === call.cache);
        const object = call.object || heap.next(cache);
        const at = this.heap.guest.calls[call.caller];
        const f = guest.function(call.caller);
        this.said.replaceChildren(
            `${call.name}(${cache?.name ?? "?"}` +
            (call.object ? `, ${hex(call.object)})` : ")") +
            ` in ${f?.name ?? "?"}`, at ? ", " : "", at ? source(...at) : "",
            call.object ? "" : object ? `; will be ${hex(object)}` :
                "; the cache has no free object");
        this.next.disabled = false;
        this.next.hidden = false;
        this.next.focus({ preventScroll: true });
        this.heap.point(object);
    }
}
