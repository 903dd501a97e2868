/* Copying from the terminal, and pasting into it. */
import assert from "node:assert/strict";

export const context = { permissions: ["clipboard-read", "clipboard-write"] };

const clipboard = page => page.evaluate(() => navigator.clipboard.readText());

export default async function (page) {
    await page.prompt();
    await page.shell("echo to be copied");
    await page.prompt();
    /* Three clicks choose a line: the one above the prompt. */
    const line = page.locator("#serial .xterm-rows > div",
                              { hasText: /^to be copied/ });
    const box = await line.boundingBox();
    await page.mouse.click(box.x + 20, box.y + box.height / 2,
                           { clickCount: 3 });
    await page.keyboard.press("Control+c");
    assert.equal((await clipboard(page)).trim(), "to be copied");
    /* Without a selection it is the guest's ^C. */
    await page.keyboard.type("not run");
    await page.keyboard.press("Control+c");
    await page.shows("slate> not run^C");

    await page.evaluate(() => navigator.clipboard.writeText(
        "echo pasted\necho and more\n"));
    await page.click("#serial");
    await page.keyboard.press("Control+v");
    await page.shows("\npasted\n");
    await page.shows("\nand more\n");
}
