/* Keys for slides: to the next and the last one, and the speaker's notes. */
"use strict";

const slides = [...document.querySelectorAll("section")];

function shown() {
    const middle = innerHeight / 2;
    return slides.findIndex(s => s.getBoundingClientRect().bottom > middle);
}

const STEPS = {
    ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, Enter: 1,
    ArrowLeft: -1, ArrowUp: -1, PageUp: -1,
};

addEventListener("keydown", event => {
    if (event.ctrlKey || event.altKey || event.metaKey)
        return;
    if (event.key === "n") {
        const here = slides[shown()];
        document.body.classList.toggle("notes");
        here?.scrollIntoView();
    } else if (event.key in STEPS) {
        slides[shown() + STEPS[event.key]]?.scrollIntoView();
        event.preventDefault();
    }
});
