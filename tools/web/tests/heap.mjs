/* The heap as it is drawn is the heap as the kernel itself describes it, at 50
 * random moments of a busy machine. */
import assert from "node:assert/strict";
import { pauseInKernel, report } from "./report.mjs";

const MOMENTS = 50;

/* What is drawn of each cache that has slabs. */
const drawn = page => page.evaluate(() => {
    const { heap } = window.slate;

    heap.draw();
    return Object.fromEntries(heap.heap.caches.filter(c => c.slabCount).map(
        c => [c.name, {
            stale: c.stale, size: c.size, chunk: c.chunk, inuse: c.inuse,
            allocs: c.allocs, frees: c.frees, slabs: c.slabs.length,
            free: c.slabs.filter(s => s.state === 2).length,
            full: c.slabs.filter(s => s.state === 0).length,
            used: c.slabs.reduce((n, s) => n + s.cells.filter(
                x => x === 1).length, 0),
            text: heap.rows.get(c.number).counts.textContent,
        }]));
});

export default async function (page) {
    await page.prompt();
    await page.shell("run -b kenbus -i 100000");
    const sums = new Set();
    let changing = 0;

    for (let i = 0; i < MOMENTS; i++) {
        await pauseInKernel(page, Math.floor(Math.random() * 8));
        const seen = await drawn(page);
        const said = (await report(page, "kmastat -j")).split("\n")
            .filter(line => line.startsWith('{"cache"'))
            .map(line => JSON.parse(line)).filter(c => c.slabs);

        sums.add(said.reduce((n, c) => n + c.allocs, 0));
        assert.deepEqual(Object.keys(seen).sort(),
                         said.map(c => c.cache).sort());
        for (const cache of said) {
            const { stale, text, used, ...mine } = seen[cache.cache];
            /* The machine may have stopped in the middle of a change. */
            if (stale || cache.bad) {
                changing++;
                continue;
            }
            const its = Object.fromEntries(Object.keys(mine).map(
                key => [key, cache[key]]));
            assert.deepEqual(mine, its, cache.cache);
            assert.equal(used, cache.inuse);
            assert.ok(text.includes(`${cache.inuse} of ${cache.total} objects`),
                      text);
        }
    }
    assert.ok(changing < MOMENTS, `${changing} caches were changing`);
    assert.ok(sums.size > MOMENTS / 2, "the machine was not busy");
}
