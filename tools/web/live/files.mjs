/*
 * The files that the page needs besides its script: beside the page, or inside
 * it, where slate.html has each as an element with the file's bytes, compressed
 * by gzip, in base64.
 */

async function gunzip(bytes) {
    const stream = new Blob([bytes]).stream();

    return new Uint8Array(await new Response(
        stream.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
}

export async function load(name) {
    const inside = document.getElementById(`file-${name}`);

    if (inside) {
        const letters = atob(inside.textContent.trim());
        return gunzip(Uint8Array.from(letters, c => c.charCodeAt(0)));
    }
    if (location.protocol === "file:")
        throw new Error("A browser loads no files from a disk: open " +
                        "slate.html, or serve the folder.");
    /* The files are of one build only if the browser has no older one. */
    const response = await fetch(name, { cache: "no-cache" });

    if (!response.ok)
        throw new Error(`${name}: ${response.status} ${response.statusText}`);
    return new Uint8Array(await response.arrayBuffer());
}
