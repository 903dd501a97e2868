/*
 * A PC that runs Slate in the page, by the emulator v86: what the terminal and
 * the drawing of the heap use of it. They read the guest's memory. Only
 * write() and restore() change it.
 *
 *     const machine = new Machine({ files, line: "run=kmastat" });
 *     machine.on("output", byte => …);
 *     await machine.run();
 *
 * Events:
 *     output   a byte of the serial line
 *     event    an object: a line of JSON from port 0xE9
 *     running  true or false, when that changes
 *     dead     { reason, text }. The reasons: "off", "exit" and "reset", which
 *              the guest asked for; "panic", after which the kernel's shell
 *              still answers; "fault", an exception that the emulator cannot
 *              deliver, as a fault while another is handled.
 */
import { clock, setPace } from "./clock.mjs";
import { V86 } from "v86/build/libv86.mjs";

clock.release();

const DEBUG_PORT = 0xE9;
const EXIT_PORT = 0xF4;
const LEAST = 64; // MiB that v86 gives a machine which has an archive
const ENDED = Symbol("the guest has ended the machine");

/* The record in a line from port 0xE9. A line without a record becomes an event
 * "garbled". */
function record(line) {
    try {
        const found = JSON.parse(line);

        if (typeof found?.event === "string")
            return found;
    } catch {}
    return { event: "garbled", text: line };
}

export class Machine {
    #emulator;
    #listeners = { output: [], event: [], running: [], dead: [] };
    #line = "";   // of port 0xE9, so far
    #running = false;
    #speed = 1;
    #stopping;    // done when the machine has stopped, after pause()
    #off = false; // if the exit port is written next, it is by poweroff
    #ended = false;
    #ready;

    typed = 0; // bytes
    read = -1; // of them, when the kernel's shell waited for a key last

    /* files: { kernel, initrd, bios, vga_bios, wasm }, each an Uint8Array.
     * megabytes: what the kernel uses. line: more of its command line, which
     * run= ends. screen: the element that shows the VGA
     * screen, as v86 wants it; or null. */
    constructor({ files, megabytes = 32, line = "", screen = null }) {
        const image = name => ({ buffer: files[name].slice().buffer });

        this.megabytes = megabytes;
        this.#emulator = new V86({
            wasm_fn: async imports => (await WebAssembly.instantiate(
                files.wasm, imports)).instance.exports,
            memory_size: Math.max(megabytes, LEAST) << 20,
            bios: image("bios"),
            vga_bios: image("vga_bios"),
            multiboot: image("kernel"),
            initrd: image("initrd"),
            cmdline: `mem=${megabytes} ${line}`,
            screen: { container: screen },
            vga_memory_size: 1 << 20,
            disable_speaker: true,
            disable_mouse: true,
        });
        const listen = (name, call) => this.#emulator.add_listener(name, call);
        listen("serial0-output-byte", byte => this.#tell("output", byte));
        listen("emulator-started", () => this.#change(true));
        listen("emulator-stopped", () => this.#change(false));
        this.#ready = new Promise(done => listen("emulator-ready", () => {
            this.#connect();
            done();
        }));
    }

    /* The processor and its devices, as v86 has them. */
    get cpu() {
        return this.#emulator.v86.cpu;
    }

    /* The guest's physical memory, as it is now. The kernel's virtual address
     * 0xC0000000 is byte 0. Read it anew for each look: it may move. */
    get memory() {
        return this.cpu.mem8.subarray(0, this.megabytes << 20);
    }

    get running() {
        return this.#running;
    }

    /* How fast it executes: 1 is full speed. With Infinity the time for which
     * the processor is halted is skipped. */
    get speed() {
        return this.#speed;
    }

    set speed(times) {
        this.#speed = times;
        this.#endWait();
    }

    /* Milliseconds of the machine's own clock, which stands while it is
     * paused. */
    get time() {
        return clock.now();
    }

    /* Registers of the processor, as unsigned numbers. */
    get registers() {
        const { reg32, instruction_pointer } = this.cpu;
        const [eax, ecx, edx, ebx, esp, ebp, esi, edi] = reg32;
        const all = { eax, ecx, edx, ebx, esp, ebp, esi, edi,
                      eip: instruction_pointer[0] };

        for (const name in all)
            all[name] >>>= 0;
        return all;
    }

    /* Writes bytes to physical memory; instructions, too. */
    write(at, bytes) {
        this.cpu.write_blob(Uint8Array.from(bytes), at);
    }

    /* Calls `call` when the guest writes a byte to a port. */
    onPort(port, call) {
        this.cpu.io.register_write(port, null, call);
    }

    /* The machine's state without its memory: { ms, typed, read, line, bytes };
     * `bytes` are those of processor and devices. Only for calls between two
     * slices of execution. */
    state() {
        const { cpu } = this;

        cpu.pack_memory = () => ({
            bitmap: { get_buffer: () => new ArrayBuffer(0) },
            packed_memory: new Uint8Array(0) });
        try {
            return { ms: this.time, typed: this.typed, read: this.read,
                     line: this.#line,
                     bytes: new Uint8Array(this.#emulator.v86.save_state()) };
        } finally {
            delete cpu.pack_memory;
        }
    }

    /* Makes it what it was when the state was taken. `memory.copyTo(bytes)`
     * writes the memory of that moment. */
    restore({ ms, typed, read, line, bytes }, memory) {
        const { cpu } = this;

        cpu.unpack_memory = () => memory.copyTo(cpu.mem8);
        try {
            this.#emulator.v86.restore_state(bytes.buffer);
        } finally {
            delete cpu.unpack_memory;
        }
        clock.set(ms);
        Object.assign(this, { typed, read });
        this.#ended = this.#off = false;
        this.#line = line;
    }

    on(name, call) {
        this.#listeners[name].push(call);
    }

    /* Text for the serial line; "\r" is Enter. */
    type(text) {
        const bytes = new TextEncoder().encode(text);

        this.typed += bytes.length;
        this.#emulator.serial_send_bytes(0, bytes);
    }

    /* Whether keys of the browser go to the guest's keyboard. */
    set keyboard(on) {
        this.#emulator.keyboard_set_enabled(on);
    }

    /* For the first time: its clock begins. */
    async start() {
        await this.#ready;
        clock.set(0);
        await this.run();
    }

    async run() {
        await this.#ready;
        await this.#stopping;
        if (!this.#ended && !this.running)
            await this.#emulator.run();
    }

    /* The emulator stops at its next turn. */
    async pause() {
        this.#stopping = this.#emulator.stop();
        this.#endWait();
        await this.#stopping;
    }

    async destroy() {
        this.#ended = true;
        this.#listeners = { output: [], event: [], running: [], dead: [] };
        await this.#ready;
        await this.pause();
        await this.#emulator.destroy();
    }

    /* In slow motion the emulator may wait for seconds until its next turn.
     * While it executes (it is not idle) there is no wait to end. */
    #endWait() {
        const { v86 } = this.#emulator;

        if (this.#running && v86.idle)
            v86.next_tick(0);
    }

    #change(running) {
        this.#running = running;
        this.#tell("running", running);
    }

    #tell(name, value) {
        for (const call of this.#listeners[name])
            call(value);
    }

    /* Takes the ports that QEMU has for Slate, and what ends the machine. */
    #connect() {
        const machine = this.#emulator.v86, ports = machine.cpu.io;

        setPace(machine, this);
        const tick = machine.do_tick.bind(machine);

        ports.register_read(DEBUG_PORT, null, () => DEBUG_PORT);
        ports.register_write(DEBUG_PORT, null, byte => this.#debug(byte));
        /* The guest must not go on after these: what is thrown leaves the
         * emulator's loop. */
        ports.register_write(EXIT_PORT, null, () => {
            this.#end(this.#off ? "off" : "exit", "");
            throw ENDED;
        });
        machine.cpu.reboot_internal = () => {
            this.#end("reset", "");
            throw ENDED;
        };
        machine.do_tick = () => {
            try {
                tick();
            } catch (error) {
                machine.running = false;
                machine.bus.send("emulator-stopped");
                if (error !== ENDED)
                    this.#end("fault", String(error.message ?? error));
            }
        };
        this.keyboard = false;
    }

    #debug(byte) {
        if (byte !== 0x0A) {
            this.#line += String.fromCharCode(byte);
            return;
        }
        const event = record(this.#line);

        this.#line = "";
        if (event.event === "waits" && event.reader === "shell")
            this.read = event.read;
        this.#tell("event", event);
        this.#off = event.event === "poweroff";
        if (event.event === "panic")
            this.#tell("dead", { reason: "panic", text: event.text });
    }

    /* The machine stands still for good. */
    #end(reason, text) {
        this.#ended = true;
        this.#tell("dead", { reason, text });
    }
}
