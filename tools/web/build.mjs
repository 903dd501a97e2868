/*
 * Makes the page: `make web`. Bundles the modules of live/ and their style,
 * copies the files that the page loads, and makes one file of all.
 *
 *     node build.mjs ENV OUT TERMS COMMANDS PROGRAMS NAME=FILE...
 *
 * ENV has node_modules; OUT is the book, and in it live/ and slate.html are
 * made. TERMS is the licence of the firmware. COMMANDS and PROGRAMS, which the
 * page's machine has, are lists in JSON. NAME=FILE: a file for live/.
 */
import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";
import { createRequire } from "node:module";

const [env, out, terms, commands, programs, ...named] = process.argv.slice(2);
const source = path.join(import.meta.dirname, "live");
const modules = path.resolve(env, "node_modules");
const esbuild = createRequire(path.join(modules, "_"))("esbuild");
const live = path.join(out, "live");
const read = file => fs.readFileSync(file);
const packed = bytes => zlib.gzipSync(bytes, { level: 9 });
const size = bytes => `${(bytes / 1e6).toFixed(2)} MB`;

/* v86 asks for Node's modules only if it runs there. */
const { outputFiles } = await esbuild.build({
    entryPoints: { live: path.join(source, "main.mjs"),
                   style: path.join(source, "style.css"),
                   book: path.join(source, "book.mjs"),
                   beside: path.join(source, "book.css") },
    nodePaths: [modules], external: ["node:*", "crypto", "fs", "perf_hooks"],
    bundle: true, minify: true, define: { COMMANDS: commands,
                                          PROGRAMS: programs },
    format: "iife", target: "es2022", legalComments: "none", write: false,
    outdir: out, logLevel: "warning",
});
const bundle = name => outputFiles.find(
    f => path.basename(f.path) === name).text;

const licences = [
    ["v86, the emulator", read(path.join(modules, "v86/LICENSE"))],
    ["xterm.js, the terminal",
     read(path.join(modules, "@xterm/xterm/LICENSE"))],
    ["SeaBIOS, the firmware", read(terms)],
].map(([name, text]) => `${name}\n${"=".repeat(name.length)}\n\n${text}\n`)
    .join("\n");

const files = named.map(n => {
    const [name, file] = n.split("=");
    return [name, read(file)];
});
files.push(["v86.wasm", read(path.join(modules, "v86/build/v86.wasm"))]);

const html = read(path.join(source, "index.html")).toString();
const whole = [["index.html", html], ["live.js", bundle("live.js")],
               ["live.css", bundle("style.css")], ["licences.txt", licences],
               ...files];

fs.rmSync(live, { recursive: true, force: true });
fs.mkdirSync(live, { recursive: true });
for (const [name, contents] of whole)
    fs.writeFileSync(path.join(live, name), contents);

/* The scenes of the paper have an address of their own. */
fs.mkdirSync(path.join(live, "paper"));
fs.writeFileSync(path.join(live, "paper/index.html"), `<!DOCTYPE html>
<meta charset="utf-8"><title>The slab paper, live</title>
<meta http-equiv="refresh" content="0; url=../index.html#scene=object-caching">
<a href="../index.html#scene=object-caching">The slab paper, live</a>
`);

/* Buttons at the transcripts of the book. */
fs.writeFileSync(path.join(live, "book.js"), bundle("book.js"));
fs.writeFileSync(path.join(live, "book.css"), bundle("beside.css"));
for (const name of fs.readdirSync(out, { recursive: true })) {
    if (!name.endsWith(".html") || name.startsWith("live"))
        continue;
    const file = path.join(out, name);
    const to = path.relative(path.dirname(file), live).replaceAll("\\", "/");
    fs.writeFileSync(file, read(file).toString().replace("</head>", () =>
        `<link rel="stylesheet" href="${to}/book.css">
<script defer src="${to}/book.js"></script>
</head>`));
}

/* The same as one file. Its script must not end at a string in it. */
const insides = files.map(([name, contents]) => `<script type="text/plain" \
id="file-${name}">${packed(contents).toString("base64")}</script>`).join("\n");
const script = bundle("live.js").replaceAll("</script", "<\\/script");
const one = html
    .replace('<link rel="stylesheet" href="live.css">',
             () => `<style>${bundle("style.css")}</style>`)
    .replace('<script defer src="live.js"></script>',
             () => `${insides}\n<script>${script}</script>`)
    .replace('<a id="book" href="../index.html">The book</a>', "")
    .replace('<a href="licences.txt">Licences</a>',
             () => `<details><summary>Licences</summary><pre>${licences
                 .replaceAll("&", "&amp;").replaceAll("<", "&lt;")}\
</pre></details>`);
fs.writeFileSync(path.join(out, "slate.html"), one);

const first = whole.reduce((sum, [, c]) => sum + packed(c).length, 0);
console.log(`${live}/index.html  ${size(first)} compressed`);
console.log(`${path.join(out, "slate.html")}  ${size(one.length)}, \
one file that opens from disk`);
