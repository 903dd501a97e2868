/*
 * The kernel's shell, for the page: a command, and when it has ended. The
 * kernel says when its shell waits for a key, and how many bytes it has read
 * from the serial line until then (drivers/console.c).
 */
const TEXT_MOST = 1 << 20; // a background program may print for ever

export class Shell {
    constructor(machine) {
        this.machine = machine;
        this.text = "";    // printed since the last command was typed
        this.death = null; // the text of a panic
        this.waiting = [];
        machine.on("output", byte => {
            if (this.text.length < TEXT_MOST)
                this.text += String.fromCharCode(byte);
        });
        machine.on("event", () => this.wake());
        machine.on("dead", ({ reason, text }) => {
            this.death = text || reason;
            this.wake();
        });
    }

    wake() {
        for (const look of this.waiting.slice())
            look();
    }

    /* Waits until `done()` is true. */
    until(done) {
        return new Promise(resolve => {
            const look = () => {
                if (!done())
                    return;
                this.waiting.splice(this.waiting.indexOf(look), 1);
                resolve();
            };
            this.waiting.push(look);
            look();
        });
    }

    /* Waits until the shell waits for a command, and has read all that was
     * typed. */
    prompt() {
        return this.until(() => this.machine.read === this.machine.typed);
    }

    /* Types a line and waits for the prompt after it. */
    run(line) {
        this.text = "";
        this.machine.type(`${line}\r`);
        return this.prompt();
    }

    /* Types a line that ends in a panic. */
    dies(line) {
        this.death = null;
        this.machine.type(`${line}\r`);
        return this.until(() => this.death !== null);
    }
}
