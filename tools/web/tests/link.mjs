/* A link carries commands, the machine's size and a cache to show; a new one
 * restarts. */
import assert from "node:assert/strict";

export const fragment = "#run=echo+from+the+link&mem=8&view=ramfs_entry";

export default async function (page) {
    await page.shows("slate> echo from the link\nfrom the link\n");
    await page.shows("Slate: 7 MiB of memory");
    assert.equal(await page.inputValue("#memory"), "8");
    assert.equal(await page.evaluate(() => window.slate.machine.megabytes), 8);

    await page.waitForFunction(() => {
        const row = [...document.querySelectorAll("#heap .cache")].find(
            r => r.querySelector(".cache-name").textContent === "ramfs_entry");
        const top = row?.hidden === false && row.getBoundingClientRect().top;

        return top > 0 && top < innerHeight;
    });

    await page.selectOption("#memory", "64");
    await page.shows("Slate: 63 MiB of memory");
    await page.shows("from the link\n");
    assert.equal(new URL(page.url()).hash,
                 "#run=echo+from+the+link&mem=64&view=ramfs_entry");

    await page.evaluate(() => { location.hash = "#mem=33"; });
    await page.waitForSelector("#notice:not([hidden])");
    assert.match(await page.textContent("#notice p"), /^mem=33 .* not one of/);
    await page.shows("Slate: 31 MiB of memory");
    await page.prompt();
}
