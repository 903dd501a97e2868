/* The search of the book: all words of the query, best page first. The index is
   a script (search.js), because a page that was opened from a file system may
   load no other kind of file. */
"use strict";

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

/* How well a section fits: words in its heading count most. */
function score([, title, head, , text], words) {
    const low = text.toLowerCase(), top = (head + " " + title).toLowerCase();
    let sum = 0;
    for (const word of words) {
        const times = low.split(word).length - 1;
        if (times === 0 && !top.includes(word))
            return 0;
        sum += Math.min(times, 5) + (top.includes(word) ? 20 : 0);
    }
    return sum;
}

function excerpt(text, words) {
    const at = Math.max(0, ...words.map(w => text.toLowerCase().indexOf(w)));
    const from = Math.max(0, at - 50);
    const line = document.createElement("small");
    const pattern = new RegExp("(" + words.map(
        w => w.replace(/[^\w]/g, "\\$&")).join("|") + ")", "i");
    for (const piece of text.slice(from, from + 170).split(pattern)) {
        const hit = words.includes(piece.toLowerCase());
        const node = document.createElement(hit ? "mark" : "span");
        node.textContent = piece;
        line.append(node);
    }
    return line;
}

function row([page, title, head, anchor, text], words) {
    const a = document.createElement("a");
    a.href = root + "/" + page + (anchor ? "#" + anchor : "");
    a.append(head && head !== title ? title + ": " + head : title,
             excerpt(text, words));
    return a;
}

function show() {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    list.hidden = words.length === 0 || typeof PAGES === "undefined";
    if (list.hidden)
        return;
    const hits = PAGES.map(p => [score(p, words), p]).filter(h => h[0] > 0)
        .sort((a, b) => b[0] - a[0]).slice(0, 20);
    list.replaceChildren(...hits.map(h => row(h[1], words)));
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
