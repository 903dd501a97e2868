/* Nothing is cut off at three widths in both colour schemes, and every text can
 * be read: its contrast is 4.5 or more (WCAG 2.1, 1.4.3). With SHOTS=folder in
 * the environment the pages are kept there, for a person to look at. */
import assert from "node:assert/strict";

const WIDTHS = [400, 1280, 2560];

/* What is wider than the page, and texts of too little contrast. */
const problems = page => page.evaluate(() => {
    const canvas = document.createElement("canvas").getContext(
        "2d", { willReadFrequently: true });
    const rgb = colour => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const luminance = ([r, g, b]) => [r, g, b].map(c => c / 255).map(
        c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const background = e => {
        for (; e; e = e.parentElement) {
            const colour = rgb(getComputedStyle(e).backgroundColor);
            if (colour[3] === 255)
                return colour;
        }
        return [255, 255, 255];
    };
    const found = [];

    if (document.documentElement.scrollWidth > innerWidth)
        found.push(`the page is ${document.documentElement.scrollWidth} wide`);
    for (const e of document.querySelectorAll("body *")) {
        const own = [...e.childNodes].some(
            n => n.nodeType === Node.TEXT_NODE && n.data.trim());
        if (!own || !e.checkVisibility() || e.closest("#screen, .xterm") ||
            e.disabled)
            continue;
        const [a, b] = [luminance(rgb(getComputedStyle(e).color)),
                        luminance(background(e))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5)
            found.push(`${e.textContent.trim().slice(0, 30)}: contrast ${
                ((a + 0.05) / (b + 0.05)).toFixed(1)}`);
    }
    return found;
});

export default async function (page) {
    for (const colorScheme of ["light", "dark"])
        for (const width of WIDTHS) {
            await page.emulateMedia({ colorScheme });
            await page.setViewportSize({ width, height: 900 });
            await page.evaluate(() => { location.hash = ""; });
            await page.shell("kmem create box 256; kmem alloc box 200; " +
                             "kmem free box 100 random");
            await page.locator("#heap .cache-name:text-is('task')").click();
            await page.locator("#heap .inspector li").first().waitFor();
            assert.deepEqual(await problems(page), [], `${width}`);
            if (process.env.SHOTS)
                await page.screenshot({ path:
                    `${process.env.SHOTS}/live-${width}-${colorScheme}.png` });
            await page.click("#paper");
            await page.locator("#tour .step .act").waitFor();
            assert.deepEqual(await problems(page), [], `${width}, the paper`);
            if (process.env.SHOTS)
                await page.screenshot({ path:
                    `${process.env.SHOTS}/paper-${width}-${colorScheme}.png` });
            await page.locator("#tour button:text-is('Close')").click();
            await page.click("#restart");
        }
}
