/* On a telephone: commands, objects and keys by touch. */
import assert from "node:assert/strict";

export const context = { hasTouch: true, isMobile: true,
                         viewport: { width: 400, height: 800 } };

export default async function (page) {
    await page.prompt();
    await page.tap("#commands button:text-is('kmastat')");
    await page.shows("CACHE             SIZE CHUNK INUSE");
    await page.prompt();

    const at = await page.evaluate(() => {
        const { heap } = window.slate;
        const cache = heap.heap.caches.find(c => c.name === "task");
        const row = heap.rows.get(cache.number), p = row.slabs.places[0];

        row.canvas.scrollIntoView({ block: "center" });
        const box = row.canvas.getBoundingClientRect();
        return { x: box.x + p.x + (p.slab.colour + cache.chunk / 2) * p.scale,
                 y: box.y + p.y + p.height / 2 };
    });
    await page.touchscreen.tap(at.x, at.y);
    assert.match(await page.textContent("#heap .inspector h3"),
                 /^struct task at 0x/);
    await page.tap("#heap .inspector button:text-is('Close')");
    assert.ok(await page.isHidden("#heap .inspector"));

    await page.tap("#serial");
    await page.keyboard.insertText("echo by touch"); // as a keyboard on glass
    await page.keyboard.press("Enter");
    await page.shows("\nby touch\n");
}
