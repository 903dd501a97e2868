/* The page of a server, opened from a disk, says what to open instead. */
import assert from "node:assert/strict";

export default async function (page) {
    await page.waitForSelector("#notice:not([hidden])");
    assert.match(await page.textContent("#notice p"), /open slate\.html/);
}
