/*
 * What the drawing costs the guest: prints frames a second, and the guest's
 * instructions a second with the heap drawn and without, in turns, while
 * hackbench runs. Nothing here is a limit.
 */
import assert from "node:assert/strict";

const TURNS = 6, FRAMES = 90;

/* Instructions and milliseconds of FRAMES frames of the screen. */
const turn = (page, drawing) => page.evaluate(
    ([drawing, frames]) => new Promise(resolve => {
        const { machine, heap } = window.slate;
        const counter = () => machine.cpu.instruction_counter[0];
        const begin = { at: performance.now(), count: counter(),
                        drawn: heap.drawnFrames, spent: heap.spent };

        window.slate.drawing = drawing;
        const next = () => {
            if (frames-- > 0) {
                requestAnimationFrame(next);
                return;
            }
            resolve({ ms: performance.now() - begin.at,
                      instructions: (counter() - begin.count) >>> 0,
                      drawn: heap.drawnFrames - begin.drawn,
                      spent: heap.spent - begin.spent });
        };
        requestAnimationFrame(next);
    }), [drawing, FRAMES]);

const sum = (turns, what) => turns.reduce((n, t) => n + t[what], 0);

export default async function (page) {
    await page.shell("run -b hackbench -g 4 -l 10000");
    const on = [], off = [];

    await turn(page, true); // hackbench begins, and code is compiled
    for (let i = 0; i < TURNS; i++) {
        on.push(await turn(page, true));
        off.push(await turn(page, false));
    }
    assert.ok(sum(on, "drawn") > 0 && sum(off, "drawn") === 0);
    const rate = turns => sum(turns, "instructions") / sum(turns, "ms") / 1000;
    console.log(`${(1000 * sum(on, "drawn") / sum(on, "ms")).toFixed(0)} ` +
        "frames a second, " +
        `${(sum(on, "spent") / sum(on, "drawn")).toFixed(1)} ms each\n` +
        `${rate(on).toFixed(0)} million instructions a second with the heap ` +
        `drawn, ${rate(off).toFixed(0)} without: ` +
        `${(100 - 100 * rate(on) / rate(off)).toFixed(1)} % slower`);
}
