/*
 * The page: a machine, its two consoles, buttons that type commands, the heap
 * and its time, and the scenes of the paper. A restart makes a new machine of
 * the same files.
 */
import { Console } from "./terminal.mjs";
import { Machine } from "./machine.mjs";
import { SIZES, readLink, writeLink } from "./link.mjs";
import { button } from "./dom.mjs";
import { kernelHash } from "./kernel.mjs";
import { load } from "./files.mjs";
import { HeapView } from "./heap-view.mjs";
import { Shell } from "./shell.mjs";
import { TimeView } from "./time-view.mjs";
import { Tour } from "./tour.mjs";

/* What one wants first; a click types the line. */
const COMMANDS = [
    ["help", "The commands of the kernel's shell"],
    ["kmastat", "The slab caches: objects, slabs, memory"],
    ["kmem create box 200", "Creates a cache, box, of objects of 200 bytes"],
    ["kmem alloc box 60", "Allocates 60 objects from box"],
    ["kmem free box 30 random", "Frees 30 objects of box, at random"],
    ["slabs box", "The slabs of box, a character for each object"],
    ["run -b hackbench", "Starts a workload of messages in the background"],
    ["reap -a", "Destroys all free slabs"],
    ["buddyinfo", "Free blocks of physical memory"],
    ["leaks", "Objects that nothing points to"],
    ["verify", "Checks every invariant of the kernel"],
];

const DEATHS = {
    off: () => "The machine is switched off.",
    exit: () => "The kernel ended the machine.",
    reset: () => "The kernel has reset the machine.",
    panic: text => `The kernel panicked: ${text}. Its shell still answers, so \
look around before you restart.`,
    fault: text => `The processor could not deliver an exception, so the \
machine has stopped: a fault happened while the kernel handled another, for \
instance because its stack was full, or a program did what the emulator cannot \
do: the chapter Slate, live has a list. (The emulator says: ${text})`,
};

const FILES = ["kernel", "initrd", "bios", "vga_bios", "wasm"];
const NAMES = { kernel: "kernel.elf", initrd: "initrd.tar", bios: "bios.bin",
                vga_bios: "vgabios.bin", wasm: "v86.wasm" };

const element = id => document.getElementById(id);
const page = { machine: null, console: null, files: null, layouts: null,
               heap: null, time: null, shell: null, tour: null,
               drawing: true };

function notice(text, restart) {
    const [words, back, again] = element("notice").children;

    words.textContent = text;
    again.hidden = !restart;
    back.hidden = !restart || !page.time?.history.states.length;
    element("notice").hidden = !text;
}

function status() {
    const running = page.machine.running;

    element("status").textContent = page.dead ? "Stopped"
        : running ? "Running" : "Paused";
    element("pause").textContent = running || page.dead ? "Pause" : "Run";
    element("pause").disabled = page.dead;
}

function died({ reason, text }) {
    page.dead = reason !== "panic";
    status();
    notice(DEATHS[reason](text), true);
}

/* Puts a new machine in the place of the one that there may be. */
async function start() {
    const { run, megabytes, problem, view } = readLink(location.hash);
    const old = page.machine, machine = new Machine({
        files: page.files, megabytes, line: run && `run=${run}`,
        screen: element("screen") });

    notice(problem, false);
    page.dead = false;
    page.machine = machine;
    machine.on("running", status);
    machine.on("dead", died);
    /* Until then all rows grow. */
    machine.on("event", ({ event }) => {
        if (event === "prompt")
            page.heap.wanted = view;
    });
    page.console.attach(machine);
    page.shell = new Shell(machine);
    element("memory").value = megabytes;
    status();
    await old?.destroy();
    await machine.start();
    if (machine !== page.machine)
        return; // there was another restart
    page.heap?.end();
    page.heap = new HeapView(element("heap"), machine, page.layouts);
    page.time = new TimeView(element("time"), machine, page.heap,
                             ms => wentBack(ms));
}

/* The machine is what it was before; what the consoles show was later. */
function wentBack(ms) {
    page.dead = false;
    notice("", false);
    page.console.note(`back to second ${(ms / 1000).toFixed(1)}`);
    status();
}

/* Requests the next frame first: this one fails if the guest's memory is
 * damaged in certain ways. */
function frame(now) {
    requestAnimationFrame(frame);
    if (page.drawing) {
        page.time?.frame();
        page.heap?.frame(now);
    }
}

function select(tab) {
    for (const name of ["serial", "screen"]) {
        const chosen = name === tab;

        element(`tab-${name}`).setAttribute("aria-selected", chosen);
        element(`tab-${name}`).tabIndex = chosen ? 0 : -1;
        element(name).hidden = !chosen;
    }
}

function connectTabs() {
    const other = { serial: "screen", screen: "serial" };

    for (const name of ["serial", "screen"]) {
        element(`tab-${name}`).onclick = () => {
            select(name);
            page.console.focus();
        };
        element(`tab-${name}`).onkeydown = event => {
            if (!["ArrowLeft", "ArrowRight"].includes(event.key))
                return;
            select(other[name]);
            element(`tab-${other[name]}`).focus();
        };
    }
}

function connectControls() {
    for (const [line, about] of COMMANDS) {
        const command = button(line, event => {
            page.machine.type(`${line}\r`);
            if (event.pointerType === "mouse")
                page.console.focus(); // to type the next command
        });
        command.title = about;
        element("commands").append(command);
    }
    for (const size of SIZES)
        element("memory").add(new Option(`${size} MiB`, size));
    element("memory").onchange = event => {
        location.hash = writeLink({ ...readLink(location.hash),
                                    megabytes: Number(event.target.value) });
    };
    element("pause").onclick = () => page.machine.running
        ? page.machine.pause() : page.time.run();
    element("restart").onclick = () => open();
    element("notice").lastElementChild.onclick = () => open();
    element("back").onclick = () => page.time.goBackFor(10);
    element("paper").onclick = () => page.tour.open("");
    addEventListener("hashchange", () => open());
}

/* Boots a new machine for a scene. */
async function restart() {
    await start();
    return page;
}

/* Shows what the link names. */
async function open() {
    const { scene } = readLink(location.hash);

    if (scene) {
        await page.tour.open(scene);
        return;
    }
    if (!element("tour").hidden)
        page.tour.close();
    await start();
}

async function main() {
    connectTabs();
    connectControls();
    page.console = new Console(element("serial"), element("screen"),
        () => document.querySelector("[aria-selected=true]").focus());
    try {
        const contents = await Promise.all(
            FILES.map(name => load(NAMES[name])));

        page.files = Object.fromEntries(FILES.map((f, i) => [f, contents[i]]));
        page.layouts = JSON.parse(new TextDecoder().decode(
            await load("layouts.json")));
        if (page.layouts.hash !== kernelHash(page.files.kernel))
            throw new Error("layouts.json is of another kernel: reload the " +
                            "page, or make web.");
        page.tour = new Tour(element("tour"), restart, id => {
            document.body.classList.toggle("touring", id !== "");
            history.replaceState(null, "", writeLink(
                { ...readLink(location.hash), scene: id }));
        });
        requestAnimationFrame(frame);
        await open();
    } catch (error) {
        notice(`The machine cannot start. ${error.message}`, false);
    }
}

window.slate = page; // for tests, and for the browser's own console
main();
