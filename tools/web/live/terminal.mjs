/*
 * The two consoles of the guest: a terminal on its serial line, and its VGA
 * screen. Both show the same shell. Keys go to the one that has the focus; F6
 * leaves it, as Tab is a key of the guest.
 *
 * The kernel's tables are made for 80 columns, so that is the width of the
 * terminal: what changes with the page is the size of the letters.
 */
import { Terminal } from "@xterm/xterm";

const COLUMNS = 80;
const LETTERS = { least: 9, most: 15 };
const LEAVE = "F6";

/* The colours of the page's style. */
function theme() {
    const style = getComputedStyle(document.documentElement);
    const colour = name => style.getPropertyValue(`--${name}`).trim();

    return {
        background: colour("terminal"), foreground: colour("terminal-ink"),
        cursor: colour("terminal-ink"), cursorAccent: colour("terminal"),
        selectionBackground: colour("terminal-selection"),
        red: colour("red"), green: colour("green"), yellow: colour("yellow"),
        magenta: colour("magenta"), cyan: colour("cyan"),
    };
}

export class Console {
    #xterm;
    #machine = null;
    #serial;
    #screen;

    /* serial, screen: the elements of the two consoles. leave: called when a
     * key leaves them. */
    constructor(serial, screen, leave) {
        this.#serial = serial;
        this.#screen = screen;
        this.#xterm = new Terminal({
            cols: COLUMNS, rows: 24, scrollback: 5000, theme: theme(),
            fontFamily: getComputedStyle(document.documentElement)
                .getPropertyValue("--mono"),
            screenReaderMode: false, cursorBlink: false,
        });
        this.#xterm.open(serial);
        this.#xterm.textarea.setAttribute("aria-label", "Serial line of Slate");
        this.#xterm.onData(text => this.#machine?.type(text));
        this.#xterm.attachCustomKeyEventHandler(event => {
            if (event.key === LEAVE && event.type === "keydown")
                leave();
            return event.key !== LEAVE && !this.#isClipboard(event);
        });
        screen.addEventListener("focus", () => this.#keyboard(true));
        screen.addEventListener("blur", () => this.#keyboard(false));
        screen.addEventListener("keydown", event => {
            if (event.key === LEAVE) {
                event.stopPropagation();
                leave();
            }
        });
        new ResizeObserver(() => this.#fit()).observe(serial);
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change",
            () => { this.#xterm.options.theme = theme(); });
    }

    /* Shows a machine, from its start. */
    attach(machine) {
        const output = [];

        this.#machine = machine;
        this.#xterm.reset();
        machine.on("output", byte => {
            if (output.push(byte) === 1)
                queueMicrotask(() => this.#xterm.write(
                    Uint8Array.from(output.splice(0))));
        });
    }

    /* A line of the page's own; with the shell's prompt again, if the machine
     * is at it. */
    note(text) {
        const { read, typed } = this.#machine;

        this.#xterm.write(`\r\n\x1b[7m ${text} \x1b[0m\r\n` +
                          (read === typed ? "slate> " : ""));
    }

    focus() {
        this.#xterm.focus();
    }

    /* What is on the terminal, for tests and for copying. */
    text() {
        const buffer = this.#xterm.buffer.active, lines = [];

        for (let i = 0; i < buffer.length; i++)
            lines.push(buffer.getLine(i).translateToString(true));
        return lines.join("\n").trimEnd();
    }

    #keyboard(on) {
        if (this.#machine)
            this.#machine.keyboard = on;
    }

    /* Ctrl+Shift+C copies; so does Ctrl+C if there is a selection. The
     * browser pastes. */
    #isClipboard(event) {
        const control = event.ctrlKey && event.type === "keydown";
        const key = event.key.toLowerCase();

        if (control && key === "c" && this.#xterm.hasSelection()) {
            navigator.clipboard?.writeText(this.#xterm.getSelection());
            this.#xterm.clearSelection();
            event.preventDefault();
            return true;
        }
        return control && key === "v";
    }

    /* Letters as large as 80 of them fit, rows as many as do. */
    #fit() {
        const { clientWidth: width, clientHeight: height } = this.#serial;

        if (width === 0)
            return;
        const ratio = this.#letter() || 0.6;
        const size = Math.floor((width - 18) / COLUMNS / ratio * 2) / 2;
        const letters = Math.min(LETTERS.most, Math.max(LETTERS.least, size));

        this.#xterm.options.fontSize = letters;
        const cell = this.#serial.querySelector(".xterm-rows > div");
        const line = cell?.getBoundingClientRect().height || letters * 1.2;
        this.#xterm.resize(COLUMNS, Math.max(10, Math.floor(
            (height - 8) / line)));
    }

    /* The width of a letter as a part of its size. */
    #letter() {
        const canvas = document.createElement("canvas").getContext("2d");

        canvas.font = `100px ${this.#xterm.options.fontFamily}`;
        return canvas.measureText("M").width / 100;
    }
}
