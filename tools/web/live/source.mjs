/*
 * A line of the source: a link to it in the book, if that is beside the page.
 */
export function source(file, line, text = `${file}:${line}`) {
    const beside = document.getElementById("book");
    const e = document.createElement(beside ? "a" : "span");

    e.textContent = text;
    if (beside) {
        e.href = `../src/${file}.html#L${line}`;
        e.target = "_blank";
    }
    return e;
}
