/* The search of the book. The index is a script (search.js), because a page
   that was opened from a file system may load no other kind of file. */
"use strict";

const MOST = 30;

const root = document.currentScript.dataset.root;
const box = document.getElementById("search");
const list = document.getElementById("found");

function load() {
    if (document.getElementById("index"))
        return;
    const script = document.createElement("script");
    script.id = "index";
    script.src = root + "/search.js";
    script.onload = show;
    document.head.append(script);
}

/* The entries that have all words, the cheapest first: [cost, entry]. The costs
   are in the index (search.py). A word may be the beginning of one. */
function find(words) {
    let sums = null;
    for (const word of words) {
        const costs = new Map();
        for (const [known, hits] of Object.entries(INDEX.words)) {
            if (!known.startsWith(word))
                continue;
            const more = known === word ? 0 : INDEX.prefix;
            for (let i = 0; i < hits.length; i += 2) {
                const cost = hits[i + 1] + more;
                if (!(costs.get(hits[i]) <= cost))
                    costs.set(hits[i], cost);
            }
        }
        for (const [entry, cost] of costs)
            if (sums !== null && !sums.has(entry))
                costs.delete(entry);
            else
                costs.set(entry, cost + (sums ? sums.get(entry) : 0));
        sums = costs;
    }
    return [...sums].map(([entry, cost]) => [cost, entry])
        .sort((a, b) => a[0] - b[0] || a[1] - b[1]);
}

/* The piece of a text that has most of the words, which are marked in it. */
function excerpt(pieces, words) {
    const has = piece => words.filter(w => piece.toLowerCase().includes(w));
    const best = !pieces.length ? "" : pieces.reduce((a, b) =>
        has(b).length > has(a).length ? b : a, pieces[0]);
    const line = document.createElement("small");
    const pattern = new RegExp("(" + words.join("|") + ")", "i");
    const from = best === pieces[0] ? "" : "\u2026 ";
    const to = best === pieces.at(-1) ? "" : " \u2026";
    for (const part of (from + best + to).split(pattern)) {
        const hit = words.includes(part.toLowerCase());
        const node = document.createElement(hit ? "mark" : "span");
        node.textContent = part;
        line.append(node);
    }
    return line;
}

function row([title, address, pieces], words) {
    const a = document.createElement("a");
    a.href = root + "/" + address;
    a.append(title, excerpt(pieces, words));
    return a;
}

function show() {
    const words = box.value.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || [];
    list.hidden = words.length === 0 || typeof INDEX === "undefined";
    if (list.hidden)
        return;
    const hits = find(words).slice(0, MOST);
    list.replaceChildren(...hits.map(h => row(INDEX.entries[h[1]], words)));
    if (hits.length === 0) {
        const none = document.createElement("p");
        none.textContent = "Nothing in the book has these words.";
        list.append(none);
    }
}

box.addEventListener("focus", load);
box.addEventListener("input", show);
list.addEventListener("click", () => { list.hidden = true; });
document.addEventListener("keydown", event => {
    if (event.key === "/" && document.activeElement !== box) {
        event.preventDefault();
        box.focus();
    } else if (event.key === "Escape") {
        list.hidden = true;
        box.blur();
    } else if (event.key === "Enter" && document.activeElement === box) {
        const first = list.querySelector("a");
        if (first && !list.hidden)
            first.click();
    }
});
/* A chapter that has been chosen: the contents on a phone go away. */
document.getElementById("book").addEventListener("click", () => {
    document.getElementById("menu").checked = false;
});
