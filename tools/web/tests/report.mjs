/*
 * A report of the kernel's own shell, in a paused machine: what GDB's `slate`
 * command does (kernel/shell/report.h). Afterwards the machine is as before.
 *
 * The line is stored in the kernel's `report`, and the processor gets a few
 * instructions in memory that Slate does not use, which call report_run. Its
 * text is read when report_full is called, and at the end.
 */
export const report = (page, line) => page.evaluate(line => {
    const { machine, heap } = window.slate, { cpu } = machine, { guest } = heap;
    const CODE = 0x4000, STACK = 0xC0006000, HIGH = 0xC0000000;
    const ENDED = 0xEB, FULL = 0xEC, INTERRUPTS = 0x200;
    const { report_line, report_length, report_text } =
        guest.struct("report").at;
    const there = guest.variable("report");
    const function_ = name => guest.functions.find(f => f[2] === name)[0];
    const word = n => [n & 255, n >>> 8 & 255, n >>> 16 & 255, n >>> 24];
    const before = machine.state(), memory = machine.memory.slice();
    let text = "";

    function take() {
        guest.look(machine.memory);
        text += guest.text(there + report_text,
                           guest.u32(there + report_length));
    }

    return new Promise(resolve => {
        machine.onPort(FULL, take);
        machine.onPort(ENDED, async () => {
            take();
            await machine.pause();
            machine.restore(before, { copyTo: b => b.set(memory) });
            guest.look(machine.memory);
            resolve(text);
        });
        machine.write(there - HIGH + report_line,
                      [...new TextEncoder().encode(line), 0]);
        machine.write(CODE, [0xE8, ...word(function_("report_run") -
                                           (HIGH + CODE + 5)),
                             0xE6, ENDED, 0xEB, 0xFE]);
        machine.write(function_("report_full") - HIGH, [0xE6, FULL, 0xC3]);
        cpu.reg32[4] = STACK;
        cpu.flags[0] &= ~INTERRUPTS;
        cpu.in_hlt[0] = 0;
        cpu.instruction_pointer[0] = HIGH + CODE;
        machine.run();
    });
}, line);

/* Pauses the machine at some moment at which it executes the kernel: after
 * `frames` frames of the screen, or the first later one. */
export const pauseInKernel = (page, frames) => page.evaluate(
    frames => new Promise(resolve => {
        const { machine } = window.slate;
        const look = async () => {
            if (frames-- > 0 || machine.cpu.cpl[0] !== 0) {
                requestAnimationFrame(look);
                return;
            }
            await machine.pause();
            if (machine.cpu.cpl[0] === 0) {
                resolve();
                return;
            }
            await machine.run();
            requestAnimationFrame(look);
        };
        machine.run();
        requestAnimationFrame(look);
    }), frames);

/* Where object `index` of a cache's first slab is on the screen. */
export const place = (page, name, index) => page.evaluate(([name, index]) => {
    const { heap } = window.slate;
    const cache = heap.heap.caches.find(c => c.name === name);
    const row = heap.rows.get(cache.number), p = row.slabs.places[0];

    row.canvas.scrollIntoView({ block: "center" });
    const box = row.canvas.getBoundingClientRect();
    return { x: box.x + p.x + (p.slab.colour + (index + 0.5) * cache.chunk) *
                 p.scale,
             y: box.y + p.y + p.height / 2,
             address: heap.heap.address(cache, p.slab, index) };
}, [name, index]);
