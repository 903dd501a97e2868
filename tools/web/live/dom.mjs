/* Elements of the page. */

export function element(name, text = "", classes = "") {
    const e = document.createElement(name);

    e.textContent = text;
    if (classes)
        e.className = classes;
    return e;
}

/* `label` says what a button does whose text is a sign. */
export function button(text, action, { classes = "", label = "" } = {}) {
    const b = element("button", text, classes);

    b.type = "button";
    b.addEventListener("click", action);
    if (label) {
        b.setAttribute("aria-label", label);
        b.title = label;
    }
    return b;
}
