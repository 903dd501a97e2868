/* Every scene of the paper: what it claims is true. */
import assert from "node:assert/strict";

export const fragment = "#scene=object-caching";

export default async function (page) {
    const titles = [];

    for (;;) {
        await page.waitForSelector("#tour .step");
        const { id, steps } = await page.evaluate(() => ({
            id: window.slate.tour.scene.id,
            steps: window.slate.tour.scene.steps.map(s => s.ask?.right) }));
        titles.push(id);
        assert.equal(new URL(page.url()).hash, `#scene=${id}`);
        for (const [i, right] of steps.entries()) {
            const step = page.locator("#tour .step").nth(i);
            await step.waitFor();
            const act = step.locator(".act").first();
            assert.equal(await act.isDisabled(), right !== undefined);
            if (right !== undefined) {
                await step.locator("input").nth(right).check();
            }
            await act.click();
            await step.locator(".claims").waitFor();
            if (right !== undefined)
                assert.match(await step.locator(".because").textContent(),
                             /^Right\. /);
        }
        const wrong = await page.locator("#tour .fails").allTextContents();
        assert.deepEqual(wrong, [], id);
        assert.ok(await page.locator("#tour .holds").count() > 0, id);
        const places = await page.locator("#tour .code code").allTextContents();
        assert.ok(places.length > 0 && places.every(
            text => /^\w+, mm\/\S+\.c:\d+$/.test(text)), places.join());
        for (const link of await page.locator("#tour .code a").all()) {
            const { status, text } = await page.evaluate(async href => {
                const answer = await fetch(href);
                return { status: answer.status, text: await answer.text() };
            }, await link.evaluate(a => a.href));
            const line = (await link.getAttribute("href")).split("#")[1];
            assert.equal(status, 200);
            assert.ok(text.includes(`id="${line}"`), line);
        }
        const next = page.locator("#tour .step button.act").last();
        if (!(await next.textContent()).startsWith("Next: "))
            break;
        await next.click();
        await page.waitForFunction(
            id => window.slate.tour.scene.id !== id, id);
    }
    assert.equal(new Set(titles).size, await page.locator(
        "#tour select option").count());
}
