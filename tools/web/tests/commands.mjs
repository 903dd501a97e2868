/* Commands that are typed, and those of buttons. */
import assert from "node:assert/strict";

export default async function (page) {
    await page.prompt();
    await page.click("#serial");
    await page.keyboard.type("echo one two; kmastat\n");
    await page.shows("\none two\n");
    await page.shows("= supplier");
    await page.prompt();
    assert.equal(await page.textContent("#status"), "Running");

    for (const line of ["kmem create box 200", "kmem alloc box 60"]) {
        await page.click(`#commands button:text-is("${line}")`);
        await page.shows(`slate> ${line}\n`);
        await page.prompt();
    }
    await page.shows("60 of 60 in use");

    /* Every other one is a command of the product. */
    for (const button of await page.$$("#commands button"))
        if (!(await button.textContent()).startsWith("kmem create"))
            await button.click();
    await page.keyboard.type("echo all typed\n");
    await page.shows("\nall typed\n");
    const text = await page.evaluate(() => window.slate.console.text());
    assert.ok(!text.includes("no command"), text);
    assert.ok(text.includes("every invariant holds"), text);
}
