/* On a telephone: commands, objects and keys by touch. */
import assert from "node:assert/strict";
import { place } from "./report.mjs";

export const context = { hasTouch: true, isMobile: true,
                         viewport: { width: 400, height: 800 } };

export default async function (page) {
    await page.prompt();
    await page.tap("#commands button:text-is('kmastat')");
    await page.shows("CACHE             SIZE CHUNK INUSE");
    await page.prompt();

    const at = await place(page, "task", 0);
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
