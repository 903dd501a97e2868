/* Hovering, choosing an object, following its pointers, and the way back. */
import assert from "node:assert/strict";
import { place } from "./report.mjs";

const title = page => page.textContent("#heap .inspector h3");

/* The value of a member that is shown. */
const member = (page, name) => page.locator(
    `#heap .members li:has(> span:first-child:text-is("${name}")) > ` +
    "span:last-child").first();

export default async function (page) {
    await page.prompt();
    await page.shell("run -b sleep 1000");
    await page.click("#pause");
    await page.waitForSelector("#pause:text-is('Run')");

    const first = await place(page, "task", 0);
    await page.mouse.move(first.x, first.y);
    const hex = `0x${first.address.toString(16)}`;
    const [said, ...members] =
        (await page.textContent("#heap .tip")).split("\n");
    assert.equal(said, `task ${hex}, allocated`);
    assert.ok(members.length > 3 && members.every(
        text => /^\w+ \S/.test(text)), members.join());
    await page.mouse.click(first.x, first.y);
    assert.equal(await title(page), `struct task at ${hex}`);
    assert.equal(await member(page, "task_name").textContent(), '"kernel"');

    /* From a program to its handles, a file and its inode. */
    const sleeper = await page.evaluate(() => {
        const { heap } = window.slate, { guest } = heap;
        const tasks = heap.heap.caches.find(c => c.name === "task");
        const slab = tasks.slabs[0], name = guest.struct("task").at.task_name;

        return [...slab.cells.keys()].findIndex(i => slab.cells[i] === 1 &&
            guest.text(heap.heap.address(tasks, slab, i) + name, 16) ===
                "sleep");
    });
    assert.notEqual(sleeper, -1);
    const program = await place(page, "task", sleeper);
    await page.mouse.click(program.x, program.y);
    for (const [name, to] of [["task_handles", "struct handle_table"],
                              ["handle_object", "struct file"],
                              ["file_inode", "struct inode"]]) {
        await member(page, name).locator("button").click();
        assert.match(await title(page), new RegExp(`^${to} at `));
        assert.match(await page.textContent("#heap .inspector .facts"),
                     /It belongs to task sleep\. /);
    }
    /* And back from the inode to what points to it. */
    await page.click("#heap .members li:has-text('pointed to by') " +
                     "button:text-is('file file_inode')");
    assert.match(await title(page), /^struct file at /);
    await page.click("#heap .inspector button:text-is('Back')");
    assert.match(await title(page), /^struct inode at /);
    await page.click("#heap .inspector button:text-is('Close')");
    assert.ok(await page.isHidden("#heap .inspector"));

    /* The same by keys: the first object of the first slab, then the next. */
    await page.focus("#heap .caches");
    await page.keyboard.press("ArrowRight");
    const one = await title(page);
    await page.keyboard.press("ArrowRight");
    assert.notEqual(await title(page), one);
    await page.keyboard.press("ArrowLeft");
    assert.equal(await title(page), one);

    /* The first object's redzone is damaged after it, the third's before it:
     * both are drawn as such, and are still allocated. An impossible number of
     * pages is ignored. */
    await page.click("#pause");
    await page.shell("kmem create guarded 200; debug +FZ guarded; " +
                     "kmem alloc guarded 3");
    await page.click("#pause");
    await page.waitForSelector("#pause:text-is('Run')");
    const { colours, stale } = await page.evaluate(() => {
        const { heap, machine } = window.slate, { guest } = heap;
        const read = () => heap.heap.caches.find(c => c.name === "guarded");
        heap.draw();
        const cache = read(), { slabs, canvas } =
            { ...heap.rows.get(cache.number), ...cache };
        const at = i => heap.heap.address(cache, slabs[0], i);
        const now = performance.now(), ratio = window.devicePixelRatio;
        for (const address of [at(0) + cache.size, at(2) - 1])
            machine.write(guest.place(address, 1), [0x41]);
        heap.draw(now);
        heap.draw(now + 10000); // no mark of a change is left
        const p = heap.rows.get(cache.number).slabs.places[0];
        const line = canvas.getContext("2d").getImageData(
            0, ratio * (p.y + p.height / 2), canvas.width, 1).data;
        const colours = [0, 1, 2].map(i => {
            const x = Math.floor(ratio * (p.x + (p.slab.colour +
                (i + 0.4) * cache.chunk) * p.scale));
            return line.slice(4 * x, 4 * x + 4).join();
        });
        machine.write(guest.place(cache.at, 4) +
            guest.struct("kmem_cache").at.cache_slab_pages, [0, 0, 1, 0]);
        heap.draw();
        return { colours, stale: read().stale };
    });
    assert.equal(colours[0], colours[2]);
    assert.notEqual(colours[0], colours[1]);
    assert.equal(stale, 1);
    const damaged = await place(page, "guarded", 0);
    await page.mouse.click(damaged.x, damaged.y);
    assert.match(await page.textContent("#heap .inspector .facts"),
                 /^Object 0 of \d+, allocated, /);
}
