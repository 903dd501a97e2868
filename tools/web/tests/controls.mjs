/* Pause, the second console, and the keyboard alone. */
import assert from "node:assert/strict";

const counter = page => page.evaluate(
    () => window.slate.machine.cpu.instruction_counter[0]);
const focused = page => page.evaluate(() => document.activeElement.id);

export default async function (page) {
    await page.prompt();
    await page.click("#pause");
    await page.waitForSelector("#pause:text-is('Run')");
    assert.equal(await page.textContent("#status"), "Paused");
    const before = await counter(page);
    await page.click("#serial");
    await page.keyboard.type("echo typed while paused\n");
    assert.equal(await counter(page), before);
    await page.click("#pause");
    await page.shows("\ntyped while paused\n");
    await page.prompt();

    /* The guest's memory: the kernel is at its physical address. */
    assert.equal(await page.evaluate(() => {
        const { machine, layouts } = window.slate;
        const names = machine.memory.subarray(
            layouts.variables.kmem_cache_cache.address - 0xC0000000);
        const name = layouts.structs.kmem_cache.members.cache_name.offset;
        return String.fromCharCode(...names.subarray(name, name + 10));
    }), "kmem_cache");

    await page.click("#serial");
    await page.keyboard.press("F6");
    assert.equal(await focused(page), "tab-serial");
    await page.keyboard.press("ArrowRight");
    assert.equal(await focused(page), "tab-screen");
    await page.keyboard.press("Tab");
    assert.equal(await focused(page), "screen");
    await page.keyboard.type("echo by the keyboard\n");
    await page.shows("\nby the keyboard\n");
    await page.waitForFunction(() => document.getElementById("screen")
        .innerText.replaceAll("\u00a0", " ").includes("\nby the keyboard"));
    await page.keyboard.press("F6");
    assert.equal(await focused(page), "tab-screen");
    await page.keyboard.type("nothing of this is typed");
    await page.keyboard.press("ArrowLeft");
    await page.click("#serial");
    await page.keyboard.type("echo end\n");
    await page.shows("slate> echo end\nend\n");

    /* A restart in a scene begins the scene again; a link without a scene
     * closes it. */
    await page.click("#paper");
    await page.locator("#tour .act").waitFor();
    await page.click("#restart");
    await page.prompt();
    await page.locator("#tour .act").waitFor();
    assert.ok(await page.evaluate(
        () => window.slate.tour.machine === window.slate.machine));
    await page.evaluate(() => { location.hash = ""; });
    await page.waitForSelector("#tour", { state: "hidden" });

    /* The browser asks whether its copy of a file is still right. */
    const asked = page.waitForRequest("**/kernel.elf");
    await page.reload();
    assert.equal((await (await asked).allHeaders())["cache-control"],
                 "max-age=0");

    await page.route("**/layouts.json",
                     route => route.fulfill({ json: { hash: "00000000" } }));
    await page.reload();
    await page.waitForSelector("#notice:not([hidden])");
    assert.match(await page.textContent("#notice p"), /of another kernel/);
}
