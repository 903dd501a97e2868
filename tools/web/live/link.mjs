/*
 * What a link carries after its #, so that it can be sent to a class: the
 * commands that the kernel executes at its start, and the machine's size.
 *
 *     index.html#run=kmastat;slabs&mem=64
 */

export const SIZES = [8, 16, 32, 64, 128, 256];
const DEFAULT = 32;
/* The kernel takes 512 characters of its command line. */
const LONGEST = 480;

/* { run, megabytes, problem } of a fragment; the problem is "" or what is wrong
 * with it, in one line. */
export function readLink(fragment) {
    const words = new URLSearchParams(fragment.replace(/^#/, ""));
    const run = words.get("run") ?? "", mem = words.get("mem");
    const size = mem === null ? DEFAULT : Number(mem);

    if (!SIZES.includes(size))
        return { run, megabytes: DEFAULT, problem: `mem=${mem} in the link is \
not one of ${SIZES.join(", ")} MiB. The machine has ${DEFAULT}.` };
    if (run.length > LONGEST || /[^ -~]/.test(run))
        return { run: "", megabytes: size, problem: "run= in the link is not \
executed: it must be one line of ASCII, of up to " + LONGEST + " characters." };
    return { run, megabytes: size, problem: "" };
}

export function writeLink({ run, megabytes }) {
    const words = new URLSearchParams();

    if (run)
        words.set("run", run);
    if (megabytes !== DEFAULT)
        words.set("mem", megabytes);
    return words.size ? `#${words}` : "#";
}
