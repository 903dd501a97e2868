/*
 * Boots a kernel in v86 and ends with the machine: tools/run/v86.py. The
 * argument is a JSON object.
 */
import fs from "node:fs";

const { library, bios, vga_bios, kernel, initrd, line, serial,
        events } = JSON.parse(process.argv[2]);

/*
 * The machine's clock in milliseconds, instead of the host's: the instructions
 * executed, and the time for which the processor was halted. The emulator's
 * count of instructions has 32 bits.
 */
const INSTRUCTIONS_PER_MS = 100000;
let emulator, now = 0, counted = 0;

performance.now = () => {
    const count = emulator?.get_instruction_counter() ?? 0;

    now += ((count - counted) >>> 0) / INSTRUCTIONS_PER_MS;
    counted = count;
    return now;
};
Date.now = () => Date.UTC(2020) + performance.now();

function contents(path) {
    const data = fs.readFileSync(path);
    return { buffer: data.buffer.slice(data.byteOffset,
                                       data.byteOffset + data.length) };
}

function appender(path) {
    const file = fs.openSync(path, "w");
    return byte => fs.writeSync(file, Uint8Array.of(byte));
}

const { V86 } = await import(`${library}/libv86.mjs`);
emulator = new V86({
    wasm_path: `${library}/v86.wasm`,
    bios: contents(bios),
    vga_bios: contents(vga_bios),
    multiboot: contents(kernel),
    initrd: contents(initrd),
    cmdline: line,
    disable_speaker: true,
});
emulator.add_listener("serial0-output-byte", appender(serial));
emulator.add_listener("emulator-ready", () => {
    const machine = emulator.v86, ports = machine.cpu.io;

    machine.yield = (ms, tick) => {
        now += Math.max(ms, 0.001); // a timer is due after its time
        setImmediate(() => machine.yield_callback(tick));
    };
    ports.register_read(0xE9, null, () => 0xE9);
    ports.register_write(0xE9, null, appender(events));
    ports.register_write(0xF4, null, () => process.exit(0));
    emulator.run();
});
