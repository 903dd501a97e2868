/* The slider: the heap as it was, and the machine run on from there. Then slow
 * motion, and the step from call to call. */
import assert from "node:assert/strict";

/* What is drawn of the caches. */
const drawn = page => page.evaluate(() => {
    window.slate.heap.draw();
    return window.slate.heap.heap.caches.map(
        c => `${c.name} ${c.inuse} ${c.slabCount} ${c.freelist} ` +
            c.slabs.map(s => [s.base, s.head, ...s.cells]).join());
});

export default async function (page) {
    await page.prompt();
    await page.shell("kmem create box 256 8 ctor; kmem alloc box 50");
    const one = await drawn(page);
    const at = await page.evaluate(() => {
        window.slate.time.history.take();
        return window.slate.time.history.states.length - 1;
    });
    const work = "kmem free box 20 fifo; kmem alloc box 70; " +
        "kmem create more 700; kmem alloc more 30";
    await page.shell(work);
    const two = await drawn(page);
    assert.notDeepEqual(two, one);

    await page.evaluate(i => window.slate.time.show(i), at);
    assert.deepEqual(await drawn(page), one);
    assert.match(await page.textContent("#time .moment"), / s ago$/);
    assert.equal(await page.textContent("#status"), "Paused");
    await page.click("#time button:text-is('Back to now')");
    assert.deepEqual(await drawn(page), two);

    await page.evaluate(i => window.slate.time.show(i), at);
    await page.click("#time button:text-is('Run on from here')");
    await page.waitForFunction(() => window.slate.machine.running);
    assert.deepEqual(await drawn(page), one);
    await page.shell(work);
    assert.deepEqual(await drawn(page), two);
    await page.shows("back to second");

    /* Bytes are counted right while the oldest states go. */
    await page.evaluate(() => {
        const { history } = window.slate.time;
        for (let i = 0; i < 300; i++)
            history.take();
        const all = new Set();
        for (const s of history.states)
            for (const b of [...s.rest.blocks, ...s.memory.blocks])
                all.add(b);
        if (Math.abs(history.bytes - 4096 * (all.size - 1)) > 4096 * 8)
            throw new Error(`${history.bytes} for ${all.size} blocks`);
    });

    /* Slow motion: a key at once ends the wait for the next tick of the clock,
     * which takes ten seconds; a button does, too. */
    await page.selectOption("#time select", "0.001");
    const begin = await page.evaluate(() => window.slate.machine.time);
    await page.waitForFunction(t => window.slate.machine.time > t + 1, begin);
    await page.shell("echo slow");
    await page.click("#pause");
    await page.waitForSelector("#status:text-is('Paused')");
    await page.click("#pause");
    await page.waitForSelector("#status:text-is('Running')");

    /* From call to call: each names its caller, and the object is the one that
     * is then allocated. The button works before the machine has stopped. */
    await page.selectOption("#time select", "0.01");
    await page.check("#time input[type=checkbox]");
    const free = await page.evaluate(() => window.slate.heap.heap.caches.find(
        c => c.name === "box").inuse);
    await page.evaluate(() => window.slate.machine.type("kmem alloc box 3\r"));
    const said = [];
    for (let i = 0; i < 6; i++) {
        await page.waitForFunction(() => !window.slate.time.next.disabled &&
            window.slate.time.said.textContent.startsWith("kmem_cache_"));
        said.push(await page.textContent("#time .call"));
        await page.click("#time button:text-is('Next call')");
    }
    await page.selectOption("#time select", "1");
    await page.prompt();
    await page.uncheck("#time input[type=checkbox]");
    await page.waitForFunction(() => !window.slate.time.stepper.on);
    assert.equal(await page.evaluate(() => window.slate.heap.pointed), 0);
    const box = said.filter(text => text.startsWith("kmem_cache_alloc(box)"));
    assert.equal(box.length, 3, said.join("\n"));
    for (const text of box) {
        assert.match(text,
                     / in play_alloc, kernel\/shell\/\S+\.c:\d+; will be /);
        const address = text.match(/will be (0x[0-9a-f]+)/)[1];
        assert.ok(await page.evaluate(at => {
            const { heap } = window.slate;
            heap.draw();
            const found = heap.heap.find(at);
            return found.cache.name === "box" &&
                found.slab.cells[found.index] === 1;
        }, Number(address)), text);
    }
    assert.equal(await page.evaluate(() => window.slate.heap.heap.caches.find(
        c => c.name === "box").inuse), free + 3);
    /* The kernel's code is as before. */
    await page.shell("verify");
    await page.shows("every invariant holds");

    /* Back to the middle of a record; and a line that is not a record. */
    await page.prompt();
    const records = await page.evaluate(async () => {
        const { machine, time: { history } } = window.slate, seen = [];
        const write = text => [...text].forEach(
            c => machine.cpu.io.port_write8(0xE9, c.charCodeAt(0)));
        await machine.pause();
        machine.on("event", event => seen.push(event.event));
        write('{"event":');
        history.take();
        write('"a"}\n');
        history.returnTo(history.states.length - 1);
        write('"b"}\nodd\n');
        return seen;
    });
    assert.deepEqual(records, ["a", "b", "garbled"]);
}
