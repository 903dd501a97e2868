/* The buttons at the transcripts of the book. */
import assert from "node:assert/strict";

export default async function (page) {
    const buttons = page.locator("button.run");
    assert.ok(await buttons.count() > 0);
    const title = await buttons.first().getAttribute("title");
    await buttons.first().click();
    const frame = page.frameLocator("#machine iframe");
    await frame.locator("#heap .cache").first().waitFor();
    const inside = page.frames().find(f => f.url().includes("/live/"));
    const [, line] = title.match(/ types: (.*)$/);
    await inside.waitForFunction(line => window.slate?.console?.text()
        .replaceAll("\n", "").includes(`slate> ${line}`), line);
    await inside.waitForFunction(() => window.slate.console.text().trimEnd()
        .endsWith("\nslate>"));
    const text = await inside.evaluate(() => window.slate.console.text());
    assert.ok(!/no command|not found|usage:/.test(text), text);
    await page.click("#machine button");
    assert.equal(await page.locator("#machine").count(), 0);

    /* No button types what cannot work: a remark, `continue`, a program that
     * only the workshop has. */
    for (const name of ["index", "demonstration", "testing"]) {
        await page.goto(new URL(`${name}.html`, page.url()).href);
        for (const button of await buttons.all())
            assert.doesNotMatch(await button.getAttribute("title"),
                                /\bcontinue\b|usertests| {3}/);
    }
}
