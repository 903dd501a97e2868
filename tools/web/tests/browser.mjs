/*
 * The page in Chromium, for tools/test/book/test_web.py:
 *
 *     node browser.mjs ENV CHROMIUM URL TEST
 *
 * ENV: the folder of node_modules. TEST: a file beside this one, whose default
 * export gets the page, opened at URL with the fragment and the context
 * (options of Playwright) that the test names.
 * Exit status 1 if it fails, if the page logs an error, or if it requests
 * anything of another host. Nothing waits for a time: a test that cannot go on
 * is ended by Playwright.
 */
import { createRequire } from "node:module";
import path from "node:path";

const [env, executablePath, url, test] = process.argv.slice(2);
const { chromium } = createRequire(path.resolve(env, "node_modules/_"))(
    "playwright-core");
const { default: run, fragment = "", context = {} } =
    await import(`./${test}.mjs`);
const browser = await chromium.launch({
    executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage(context);
const wrong = [];

page.setDefaultTimeout(300000);
page.on("pageerror", error => wrong.push(error.stack));
page.on("console", message => {
    if (["error", "warning"].includes(message.type()))
        wrong.push(message.text());
});
page.on("request", request => {
    if (!["data:", "blob:"].includes(new URL(request.url()).protocol) &&
        new URL(request.url()).host !== new URL(url).host)
        wrong.push(`requests ${request.url()}`);
});

/* Waits until the terminal shows a text. */
page.shows = text => page.waitForFunction(
    text => window.slate?.console?.text().includes(text), text);
/* Waits until the kernel's shell wants a key and has read all that was typed,
 * and the terminal shows it. */
page.prompt = async () => {
    await page.waitForFunction(() => window.slate?.shell);
    await page.evaluate(() => window.slate.shell.prompt());
    await page.waitForFunction(() =>
        window.slate.console.text().trimEnd().endsWith("\nslate>"));
};
/* Runs a command of the kernel's shell. */
page.shell = async line => {
    await page.prompt();
    await page.evaluate(line => window.slate.shell.run(line), line);
};

try {
    await page.goto(url + fragment);
    await run(page);
} catch (error) {
    const text = await page.evaluate(() => window.slate?.console?.text());

    wrong.push(error.stack, `The terminal shows:\n${text}`);
}
await browser.close();
if (wrong.length) {
    console.error(wrong.join("\n"));
    process.exit(1);
}
