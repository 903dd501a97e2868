/* What the page says of a guest that ends, and the restart. */
import assert from "node:assert/strict";

async function dies(page, line, said) {
    await page.prompt();
    await page.click("#serial");
    await page.keyboard.type(`${line}\n`);
    await page.waitForSelector("#notice:not([hidden])");
    assert.match(await page.textContent("#notice p"), said);
}

export default async function (page) {
    await dies(page, "panic", /panicked: requested at the shell/);
    await page.keyboard.type("echo after it\n");
    await page.shows("\nafter it\n");
    assert.equal(await page.textContent("#status"), "Running");

    for (const [line, said] of [["poweroff", /switched off/],
                                ["reboot", /has reset the machine/]]) {
        await page.click("#notice button:text-is('Restart')");
        await page.waitForSelector("#notice", { state: "hidden" });
        await dies(page, line, said);
        assert.equal(await page.textContent("#status"), "Stopped");
        assert.ok(await page.isDisabled("#pause"));
    }

    /* Back to before the end, and on. */
    await page.click("#restart");
    await page.waitForSelector("#notice", { state: "hidden" });
    await page.prompt();
    await page.evaluate(() => window.slate.time.history.take());
    await dies(page, "poweroff", /switched off/);
    await page.click("#notice button:text-is('Go back ten seconds')");
    await page.waitForSelector("#notice", { state: "hidden" });
    await page.shell("echo on from there");
    await page.shows("\non from there\n");
    assert.equal(await page.textContent("#status"), "Running");

    /* An exception in the emulator, as at a double fault: the page's own. */
    await page.click("#restart");
    await page.waitForSelector("#notice", { state: "hidden" });
    await page.prompt();
    await page.evaluate(() => {
        window.slate.time.history.notice = () => {};
        window.slate.time.history.states = [];
        window.slate.machine.cpu.main_loop = () => { throw Error("trap"); };
    });
    await page.waitForSelector("#notice:not([hidden])");
    assert.match(await page.textContent("#notice p"),
                 /could not deliver an exception.*trap/);
    assert.ok(await page.isHidden("#back"), "there is no past");
    await page.click("#restart");
    await page.prompt();
}
