/*
 * Memory of the caches over time, stacked.
 */
export const SECONDS = 60;
const STEP_MS = 250, STEPS = SECONDS * 1000 / STEP_MS;

export class MemoryView {
    constructor(canvas) {
        this.canvas = canvas;
        this.samples = []; // {ms, bytes: Map of a cache's address to bytes}
    }

    /* Takes a sample if it is time; whether it did. */
    sample(caches, ms) {
        const last = this.samples.at(-1);
        if (last && ms < last.ms)
            this.samples = this.samples.filter(s => s.ms < ms);
        else if (last && ms - last.ms < STEP_MS)
            return false;
        this.samples.push({ ms, bytes: new Map(
            caches.filter(c => c.slabCount).map(
                c => [c.at, c.slabCount * c.slabBytes])) });
        if (this.samples.length > STEPS + 1)
            this.samples.shift();
        return true;
    }

    /* `owners`: the caches with a colour of their own, largest first; the rest
     * is one area, with colourOf(0). */
    draw(look, owners, colourOf) {
        const { canvas, samples } = this, ratio = window.devicePixelRatio || 1;
        const { width } = look, height = 72;

        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
        canvas.style.height = `${height}px`;
        const g = canvas.getContext("2d");
        g.setTransform(ratio, 0, 0, ratio, 0, 0);
        if (samples.length < 2)
            return;
        const sums = samples.map(s => [...s.bytes.values()].reduce(
            (a, b) => a + b, 0));
        const top = Math.max(...sums) * 1.1;
        const end = samples.at(-1).ms;
        const x = s => width * (1 - (end - s.ms) / (SECONDS * 1000));
        const y = bytes => height * (1 - bytes / top);
        const below = samples.map(() => 0);
        for (const at of [...owners, 0]) {
            g.fillStyle = colourOf(at);
            g.beginPath();
            samples.forEach((s, i) => g.lineTo(x(s), y(below[i])));
            for (let i = samples.length - 1; i >= 0; i--) {
                below[i] = at ? below[i] + (samples[i].bytes.get(at) ?? 0) :
                    sums[i];
                g.lineTo(x(samples[i]), y(below[i]));
            }
            g.fill();
        }
        g.fillStyle = look.colours.dim;
        g.font = "11px system-ui, sans-serif";
        g.fillText(`${Math.round(Math.max(...sums) / 1024)} KiB at most`, 4,
                   12);
    }
}
