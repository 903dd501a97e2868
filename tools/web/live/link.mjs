/*
 * What a link carries after its #, so that it can be sent to a class: the
 * commands that the kernel executes at its start, the machine's size, the
 * cache that is shown first, and the scene of the paper.
 *
 *     index.html#run=kmastat;slabs&mem=64&view=inode
 *     index.html#scene=reaping
 */

export const SIZES = [8, 16, 32, 64, 128, 256];
const DEFAULT = 32;
/* The kernel takes 512 characters of its command line. */
const LONGEST = 480;

/* { run, megabytes, view, scene, problem } of a fragment; the problem is "" or
 * what is wrong with it, in one line. */
export function readLink(fragment) {
    const words = new URLSearchParams(fragment.replace(/^#/, ""));
    const mem = words.get("mem");
    const link = { run: words.get("run") ?? "", view: words.get("view") ?? "",
                   scene: words.get("scene") ?? "", problem: "",
                   megabytes: mem === null ? DEFAULT : Number(mem) };

    if (!SIZES.includes(link.megabytes)) {
        link.megabytes = DEFAULT;
        link.problem = `mem=${mem} in the link is not one of ${SIZES.join(", ")
        } MiB. The machine has ${DEFAULT}.`;
    } else if (link.run.length > LONGEST || /[^ -~]/.test(link.run)) {
        link.run = "";
        link.problem = "run= in the link is not executed: it must be one " +
            `line of ASCII, of up to ${LONGEST} characters.`;
    }
    return link;
}

export function writeLink({ run, megabytes, view, scene }) {
    const words = new URLSearchParams();

    if (run)
        words.set("run", run);
    if (megabytes !== DEFAULT)
        words.set("mem", megabytes);
    if (view)
        words.set("view", view);
    if (scene)
        words.set("scene", scene);
    return words.size ? `#${words}` : "#";
}
