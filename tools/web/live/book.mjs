/*
 * In the book that `make web` makes: a button at each transcript of the
 * kernel's shell. It opens the machine beside the text and types the commands.
 *
 * A transcript gets a button if the product has all its commands and programs:
 * those of the workshop's kernel do not exist in the page's machine. `continue`
 * cannot work either, since no key is typed that leaves the program before it.
 * Three blanks begin a remark.
 */
/* global COMMANDS, PROGRAMS: lists that build.mjs puts there */
import { button, element } from "./dom.mjs";

const live = new URL(".", document.currentScript.src);
/* A page that was opened from a disk may load no files. */
const MACHINE = location.protocol === "file:" ? "../slate.html" : "index.html";
const LONGEST = 480; // characters, as in link.mjs

/* The lines that are typed in a transcript, or null if there are none or some
 * that the page's machine does not have. */
function typed(text) {
    const lines = [...text.matchAll(/^slate> ?(.*)$/gm)].map(
        m => m[1].split("   ")[0].trim())
        .filter(line => line);
    const known = line => line.split(";").every(part => {
        const [command, ...words] = part.trim().split(/\s+/);
        const run = command === "run" ? words.filter(w => !w.startsWith("-")) :
            [];
        return COMMANDS.includes(command) && command !== "continue" &&
            run.slice(0, run[0] === "init" ? 2 : 1).every(
                program => PROGRAMS.includes(program));
    });

    return text.startsWith("slate>") && lines.length && lines.every(known) &&
        lines.join("; ").length <= LONGEST ? lines : null;
}

let panel = null;

function show(lines) {
    const address = new URL(
        `${MACHINE}#${new URLSearchParams({ run: lines.join("; ") })}`, live);

    if (!panel) {
        panel = element("aside");
        panel.id = "machine";
        panel.setAttribute("aria-label", "Slate");
        const bar = element("p");
        const whole = element("a", "As a page of its own");
        whole.target = "_blank";
        bar.append(whole, button("Close", () => {
            panel.remove();
            panel = null;
            document.body.classList.remove("beside");
        }));
        panel.append(bar, element("iframe"));
        panel.querySelector("iframe").title = "Slate, live";
        document.body.append(panel);
        document.body.classList.add("beside");
    }
    panel.querySelector("a").href = address;
    /* A new frame each time: the same address would not load again. */
    const frame = panel.querySelector("iframe"), next = frame.cloneNode();
    next.src = address;
    frame.replaceWith(next);
    panel.querySelector("button").focus();
}

for (const code of document.querySelectorAll("article pre")) {
    const lines = typed(code.textContent);
    if (!lines)
        continue;
    const run = button("Run", () => show(lines), { classes: "run" });
    run.title = `Boots Slate beside this page and types: ${lines.join("; ")}`;
    const place = code.closest(".hl") ?? code;
    place.style.position = "relative";
    place.append(run);
}
