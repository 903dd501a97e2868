"""Checks that a compiler does not make: `make lint`.

    layout      clang-format agrees with every C file
    width       no line of a source file is longer than 80 columns
    arrows      includes point down the floors (the table FLOORS below), never
                from the product to the apparatus, never in a circle, and
                never in ring 0 to a header X_impl.h of another room; C,
                assembly and linker scripts; nor does the product name the
                sanitizers, nor does more than a few files ask whether the
                kernel is for several processors
    map         the product's link map (slate.map in BUILD) has no object of the
                apparatus
    core        mm/ links without mm/inspect/
    functions   none is longer than 60 lines but tables and dispatch (a switch
                that is most of it); in the product's ring 0 no two have one
                name, so that a breakpoint is one place
    assembly    inline assembly in the kernel is in kernel/x86/ alone
    cuts        every cut and every wrong solution of every lab fits
                (docs/labs.md); the sources have no mark of a lab and no
                commented-out code
    tests       each source has a test file: X/tests/test_y.c for X/y.c, or
                one whose first lines name it (Tests: X/y.c)
    texts       every file is UTF-8, with LF at the end of lines and without a
                byte-order mark; Python that opens a text names its encoding,
                so that it reads the same in every locale
    cppcheck    no warning

Prints how large the rooms of the tree are, which nothing limits, and how long
its functions, then every finding as FILE:LINE: text. Exit status 1 if there is
one.
"""

import argparse
import ast
import codecs
import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from elftools.elf.elffile import ELFFile

from tools.grading import labs

ROOT = Path(__file__).resolve().parents[2]
BUILD = os.environ.get("SLATE_BUILD", "build")
WIDTH = 80
LONGEST = 60
TREE = (".c", ".h", ".asm", ".ld", ".py", ".mjs", ".js", ".css", ".mk",
        "Makefile", "setup")

# The folders of the product's ring 0, except drivers/servers/.
PRODUCT = ("boot", "kernel", "mm", "drivers")

# The floors of ring 0's product, from the ground up: a folder may include its
# own files and those of the floors below it, written here above it. Below LESS
# are floors that may include less than that.
FLOORS = ("kernel/lib", "kernel/abi", "kernel/x86", "mm", "mm/inspect",
          "mm/debug", "mm/others", "mm/others/inspect", "drivers",
          "kernel/task", "kernel/object", "kernel/vm", "kernel/ipc",
          "kernel/fs", "kernel/syscall", "kernel/shell", "kernel", "boot")
LESS = {
    "mm": ("kernel/lib",),
    "mm/inspect": ("kernel/lib", "mm"),
    "mm/debug": ("kernel/lib", "mm", "mm/inspect"),
    "mm/others": ("kernel/lib", "mm", "mm/inspect", "mm/debug"),
    "mm/others/inspect": ("kernel/lib", "mm", "mm/others"),
}
# Programs: what the folders of a kind may include besides their own.
PROGRAMS = {
    "user/lib": ("kernel/abi", "kernel/lib", "mm", "mm/inspect", "mm/debug"),
    "user": ("user/lib", "kernel/abi", "kernel/lib"),
    "drivers/servers": ("user/lib", "kernel/abi", "kernel/lib"),
}
# What looks at the allocators, and what debugs them (paper, section 6).
OBSERVERS = ("mm/inspect/", "mm/debug/")

findings = []


def finding(path, line, text):
    findings.append(f"{path}:{line}: {text}")


def sources(*suffixes):
    """All source files of the tree, as paths relative to its root."""
    skip = {".git", ".venv", "build", BUILD, "__pycache__", ".pytest_cache"}
    for folder, names, files in os.walk(ROOT):
        names[:] = sorted(n for n in names if n not in skip)
        for name in sorted(files):
            if name.endswith(suffixes) or not suffixes:
                yield (Path(folder) / name).relative_to(ROOT)


def text_of(path):
    return (ROOT / path).read_text("utf-8")


def is_test(path):
    return "tests" in path.parts


# Comments, strings and characters in C.
TOKENS = r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"


def without_comments(text):
    """C text with comments and the insides of strings blanked, line by line."""
    def blank(match):
        token = match.group()
        if token.startswith("/"):
            return re.sub(r"[^\n]", " ", token)
        return token[0] + "_" * (len(token) - 2) + token[-1]
    return re.sub(TOKENS, blank, text, flags=re.S)


def code_lines(path):
    """Lines that hold code: neither blank nor only comment."""
    text = text_of(path)
    if path.suffix == ".asm":
        lines = (line.split(";")[0] for line in text.splitlines())
    else:
        lines = without_comments(text).splitlines()
    return sum(1 for line in lines if line.strip())


def functions(path):
    """(name, first line, length, body) of each function defined in a file. A
    function ends at the first closing brace in column 0, where clang-format
    puts it. Its length is that of its body, without the braces' lines."""
    lines = without_comments(text_of(path)).splitlines()
    for i, line in enumerate(lines):
        if line != "{" or i == 0:
            continue
        head = i - 1
        while head > 0 and lines[head - 1].strip() and \
                not re.match(r"[#}]|.*[;:]$", lines[head - 1]):
            head -= 1
        name = re.search(r"\b(?!__attribute__|PRINTF_LIKE)(\w+)\s*\(",
                         " ".join(lines[head:i]))
        end = next((j for j in range(i, len(lines)) if lines[j] == "}"), i)
        if name:
            yield name.group(1), head + 1, end - i - 1, lines[i:end]


def is_dispatch(body):
    """True if most of a body is one switch: a table in the form of code."""
    cases = sum(1 for line in body
                if re.match(r"\s*(case\b|default:)", line))
    return cases * 4 >= len(body)


# Those of the slab layer; where there are magazines they have another name.
FRONT_ENDS = ("kmem_cache_alloc", "kmem_cache_free")
# These are linked in the place of the files that define the same functions.
INSTEAD = (Path("mm/others/serve.c"), Path("kernel/shell/cmd_others.c"))


def check_functions():
    """Returns the lengths of all functions outside tests, in order."""
    lengths = []
    first = {}
    for path in sources(".c"):
        if is_test(path):
            continue
        for name, line, length, body in functions(path):
            lengths.append(length)
            if in_ring_0(path) and name not in FRONT_ENDS and \
                    path not in INSTEAD:
                if first.setdefault(name, path) != path:
                    finding(path, line, f"{name} is in {first[name]}, too")
            if length > LONGEST and not is_dispatch(body):
                finding(path, line, f"{name} has {length} lines, "
                        f"more than {LONGEST}")
    print(f"functions   {len(lengths)}")
    return sorted(lengths)


def check_width():
    count = 0
    files = list(sources(*TREE))
    for path in files:
        for number, line in enumerate(text_of(path).splitlines()):
            count += 1
            if len(line.expandtabs(8)) > WIDTH:
                finding(path, number + 1, f"{len(line.expandtabs(8))} columns")
    print(f"width       {count} lines in {len(files)} files")


def in_ring_0(path):
    """Whether a source is the product's and runs in ring 0."""
    return path.parts[0] in PRODUCT and not is_test(path) and \
        path.parts[:2] != ("drivers", "servers")


def is_apparatus(path):
    """Whether a file tests, breaks or measures the product."""
    parts = Path(path).parts
    return is_test(Path(path)) or parts[0] in ("tools", "docs")


def allowed(folder):
    """The folders that a folder of the product may include, or None if it is
    on no floor."""
    if folder in FLOORS:
        below = LESS.get(folder, FLOORS[:FLOORS.index(folder)])
        return (folder, *below)
    for kind in sorted(PROGRAMS, key=len, reverse=True):
        if folder == kind or folder.startswith(kind + "/"):
            return (folder, *PROGRAMS[kind])
    return None


# How a file names another one. Only the folders that hold the implementations
# of mm_platform.h are found by -I, so a name in <> that has a / is one of the
# tree, too. The object files of a linker script begin with any folder of BUILD.
NAMING = {
    ".c": r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<(\w+/[^>]+)>)',
    ".asm": r'^[ \t]*(?:%include|incbin)[ \t]+"([^"]+/[^"]+)"',
    ".ld": r"\bINCLUDE[ \t]+(\S+)|(?<![\w/])((?:\w[\w.-]*/)+[\w.*-]*)",
}
NAMING[".h"] = NAMING[".c"]
# The files of one source for both kernels: for one processor and for several.
SMP_FILES = ("kernel/x86/spinlock.h", "kernel/x86/cpu.h", "kernel/x86/trap.asm",
             "kernel/x86/gdt.c", "kernel/x86/ipi.h", "kernel/mm_platform.h")
# The sanitizers, in any line of the product.
MARK = re.compile(r"\w*sanitize\w*|\b(?:kasan|ubsan|__asan)\w*", re.I)


def includes():
    """(path, line, target) of each file that another one names."""
    for path in sources(*NAMING):
        text = text_of(path)
        if path.suffix == ".ld":
            text = re.sub(r"(?<!\S)/\*.*?\*/",
                          lambda m: re.sub(r"[^\n]", " ", m.group()), text,
                          flags=re.S)
        for match in re.finditer(NAMING[path.suffix], text, re.M):
            target = next(filter(None, match.groups()))
            # <sys/wait.h>, <sanitizer/asan_interface.h>
            if not target.startswith(("sys/", "sanitizer/")):
                yield path, text.count("\n", 0, match.start(match.lastindex)) \
                    + 1, target


def check_arrows():
    count = 0
    arrows = {}
    for path, line, target in includes():
        count += 1
        home, there = str(path.parent), str(Path(target).parent)
        if path.suffix == ".ld":
            if is_apparatus(target):
                finding(path, line, f"the product may not name {target}")
            continue
        if not (ROOT / target).is_file():
            finding(path, line, f'"{target}" is not a path from the root')
            continue
        if home != there:
            arrows.setdefault(home, {}).setdefault(there, (path, line))
        if is_apparatus(path):
            continue
        if is_apparatus(target):
            finding(path, line, f"the product may not include {target}")
        elif allowed(home) is None:
            finding(path, line, f"{home}/ is on no floor: tools/test/lint.py")
        elif there not in allowed(home):
            finding(path, line, f"{home}/ may not include {target}")
        elif target.endswith("_impl.h") and home in FLOORS and \
                not f"{home}/".startswith(f"{there}/"):
            finding(path, line, f"{target} is private to {there}/")
    for path in sources(*NAMING):
        for number, line in enumerate(text_of(path).splitlines(),
                                      1):
            mark = None if is_apparatus(path) else MARK.search(line)
            if mark:
                finding(path, number, f"the product may not name {mark[0]}")
            if "CONFIG_SMP" in line and str(path) not in SMP_FILES:
                finding(path, number, "CONFIG_SMP is for the files of "
                        "SMP_FILES in tools/test/lint.py")
    for circle in circles(arrows):
        path, line = arrows[circle[0]][circle[1]]
        finding(path, line, "includes in a circle: " + " -> ".join(circle))
    print(f"arrows      {count} includes, {len(arrows)} folders")


def circles(arrows):
    """Each circle of includes between folders, once."""
    found = []
    for start in sorted(arrows):
        ways = [(start,)]
        seen = set()
        while ways:
            way = ways.pop(0)
            for there in sorted(arrows.get(way[-1], ())):
                if there == start:
                    if not any(set(way) <= set(c) for c in found):
                        found.append((*way, start))
                    ways = []
                    break
                if there not in seen:
                    seen.add(there)
                    ways.append((*way, there))
    return found


def check_map():
    """Returns the objects that the product is linked from, without `.o`."""
    file = f"{BUILD}/slate.map"
    if not (ROOT / file).exists():
        finding(file, 0, "does not exist: make kernel")
        return []
    objects = re.findall(rf"^LOAD {re.escape(BUILD)}/(\S+)\.o$",
                         text_of(file), re.M)
    if not objects:
        finding(file, 0, "names no objects")
    for name in objects:
        if is_apparatus(name):
            finding(file, 0, f"{name}.o is apparatus")
    print(f"map         {len(objects)} objects in {BUILD}/slate.elf")
    return objects


def symbols(name):
    """Two sets of an object's symbols: defined there, and elsewhere."""
    with open(ROOT / BUILD / f"{name}.o", "rb") as f:
        table = ELFFile(f).get_section_by_name(".symtab")
        names = {s.name: s["st_shndx"] for s in table.iter_symbols()
                 if s["st_info"]["bind"] != "STB_LOCAL"}
    return ({n for n, where in names.items() if where != "SHN_UNDEF"},
            {n for n, where in names.items() if where == "SHN_UNDEF"})


def check_core(objects):
    """The allocators must link without the code that inspects them. `objects`
    are those of the link map: BUILD may have objects of removed sources."""
    core = [o for o in objects if re.fullmatch(r"mm/\w+", o)]
    observers = {name: o for o in objects if o.startswith("mm/inspect/")
                 for name in symbols(o)[0]}
    if not core or not observers:
        finding(f"{BUILD}/slate.map", 0, "has no allocators, or nothing that "
                "looks at them")
    for o in core:
        for name in sorted(symbols(o)[1] & observers.keys()):
            finding(f"{o}.c", 0, f"needs {name} of {observers[name]}.c")
    print(f"core        {len(core)} objects of mm/")


def check_assembly():
    """Inline assembly of the product's ring 0 outside kernel/x86/."""
    for path in sources(".c", ".h"):
        if not in_ring_0(path) or path.parts[:2] == ("kernel", "x86"):
            continue
        text = without_comments(text_of(path))
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(r"\b(__asm__|__asm|asm)\b", line):
                finding(path, number, "inline assembly is in kernel/x86/ alone")


def all_lines(paths):
    return sum(len(text_of(path).splitlines()) for path in paths)


def rooms():
    """{room: its lines}, for ring 0 those that hold code."""
    core, observers, others, shell, rest = \
        "mm/ core", "mm/inspect, mm/debug", "mm/others", "shell", \
        "rest of ring 0"
    code = dict.fromkeys((core, observers, others, shell, rest), 0)
    for path in sources(".c", ".h", ".asm"):
        if not in_ring_0(path):
            continue
        name = str(path)
        room = (observers if name.startswith(OBSERVERS) else
                others if name.startswith("mm/others/") else
                core if name.startswith("mm/") else
                shell if name.startswith("kernel/shell/") else rest)
        code[room] += code_lines(path)
    return {**code,
            "ring 0 without shell":
                sum(code.values()) - code[shell] - code[others],
            "GDB's Python, all lines": all_lines(
                p for p in sources(".py")
                if str(p.parent) in ("tools/gdb", "tools/replay")),
            "whole tree, all lines": all_lines(sources(*TREE))}


def show_table(title, unit, rows):
    print(f"\n{title:<24}{unit:>14}")
    for name, lines in rows.items():
        print(f"{name:<24}{lines:>14,}")


def show_sizes(lengths):
    """Prints the lines of the rooms, and of functions of these lengths."""
    show_table("room", "lines of code", rooms())
    show_table("length of functions", "lines",
               {"median": int(statistics.median(lengths)),
                "90th percentile": lengths[int(len(lengths) * 0.9)],
                "longest": lengths[-1]})
    print()


# A line of a comment that is a statement, a directive or a brace.
STATEMENT = re.compile(
    r"(\(void\))?[\w.>\[\]*-]+(\(.*\)|\+\+|--| [-+*/|&^]?= .*);|\(void\)\w+;|"
    r"(struct )?\w+ \**\w+ = .*;|(struct \w+|int|char|bool|\w+_t) \**\w+;|"
    r"(return|goto)\b[^;]*;|(break|continue);|"
    r"(if|for|while|switch) \(.*[{;)]|\} else.*|[{}]|"
    r"#\s*(if|ifdef|ifndef|else|endif|include|define)\b.*")
INSTRUCTION = re.compile(
    r"\s*;\s*((mov|add|sub|and|or|xor|cmp|test|lea|in|out) \S+, |"
    r"(push|pop|jmp|call|int) [\w.]+$|ret$|cli$|sti$|hlt$)")


def commented_out(path):
    """(line, text) of the code in comments of a file. An example in a comment
    at the left edge is indented, and no such code."""
    text = text_of(path)
    if path.suffix == ".asm":
        for number, line in enumerate(text.splitlines(), 1):
            if INSTRUCTION.match(line):
                yield number, line.strip()
        return
    for match in re.finditer(TOKENS, text, re.S):
        first = text.count("\n", 0, match.start()) + 1
        margin = match.start() == text.rfind("\n", 0, match.start()) + 1
        if match.group().startswith("/"):
            for number, line in enumerate(match.group().split("\n"), first):
                bare = re.sub(r"^\s*(/\*+|//|\*)? ?|\s*\*/$", "", line)
                example = margin and bare.startswith("    ")
                if not example and STATEMENT.fullmatch(bare.strip()):
                    yield number, bare.strip()


def check_cuts():
    count, problems = labs.check_cuts(ROOT)
    patches, bad = labs.check_patches(ROOT)
    findings.extend(problems + bad)
    for path in sources(".c", ".h", ".asm"):
        for number, line in commented_out(path):
            finding(path, number, f"commented-out code: {line}")
        for number, line in enumerate(text_of(path).splitlines(),
                                      1):
            if re.search(r"\bLAB\s+\d+\.\d|\bLAB_MISSING\b", line):
                finding(path, number, "the mark of a lab: cuts are in "
                        "docs/labs/*/cuts")
    print(f"cuts        {count} cuts of labs, {patches} wrong solutions")


TESTED = re.compile(r"^(?: \*|#) Tests: (.+)$", re.M)


def check_tests():
    """The test of X/y.c is X/tests/test_y.c, or a test file says in its first
    lines: "Tests: X/y.c, X/z*.c"."""
    product = {str(p) for p in sources(".c") if p.parts[0] in
               ("boot", "kernel", "mm", "drivers", "user") and not is_test(p)}
    tested = {p for p in product
              if (ROOT / p).parent.joinpath(f"tests/test_{Path(p).name}")
              .exists()}
    for path in sources(".c", ".py"):
        if not path.name.startswith("test_"):
            continue
        says = TESTED.findall(text_of(path)[:2000])
        for pattern in ", ".join(says).split(", ") if says else ():
            found = {str(p.relative_to(ROOT)) for p in ROOT.glob(pattern)}
            tested |= found
            if not found:
                finding(path, 1, f"Tests: there is no {pattern}")
        if not says and path.parts[0] in ("kernel", "mm", "drivers", "user") \
                and str(path.parent.parent / path.name[5:]) not in product:
            finding(path, 1, "does not say what it tests (Tests: PATH, ...)")
    for path in sorted(product - tested):
        finding(path, 1, "no test file says that it tests this")
    print(f"tests       for {len(product & tested)} of {len(product)} sources")


def opens_by_locale(call):
    """Whether a call opens a text in the encoding of the locale."""
    words = {word.arg: word.value for word in call.keywords}
    if "encoding" in words:
        return False
    if any(getattr(words.get(word), "value", False) is True
           for word in ("text", "universal_newlines")):
        return True
    name = ast.unparse(call.func)
    method = name.rsplit(".", 1)[-1]
    if method in ("read_text", "write_text"):  # encoding: the last argument
        return len(call.args) < (1 if method == "read_text" else 2)
    if name in ("os.open", "tarfile.open") or method not in (
            "open", "fdopen", "NamedTemporaryFile", "TemporaryFile"):
        return False
    place = 1 if name in ("open", "io.open", "os.fdopen") else 0
    mode = words.get("mode", (*call.args, None, None)[place])
    if mode is None:
        return not method.endswith("TemporaryFile")
    return "b" not in ast.unparse(mode)


def check_texts():
    names = labs.tracked(ROOT)
    for name in names:
        data = (ROOT / name).read_bytes()
        if data.startswith(codecs.BOM_UTF8):
            finding(name, 1, "begins with a byte-order mark")
        if b"\r" in data:
            finding(name, data.count(b"\n", 0, data.index(b"\r")) + 1,
                    "has a carriage return")
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as e:
            finding(name, data.count(b"\n", 0, e.start) + 1, "is not UTF-8")
    for path in sources(".py"):
        for node in ast.walk(ast.parse(text_of(path))):
            if isinstance(node, ast.Call) and opens_by_locale(node):
                finding(path, node.lineno, "opens a text without an encoding")
    print(f"texts       {len(names)} files")


def tool(name):
    """False, and a finding, if a program is missing."""
    if shutil.which(name):
        return True
    finding("tree", 0, f"{name} not found: run tools/setup")
    return False


def check_layout():
    program = ROOT / ".venv/bin/clang-format"
    if not tool(program):
        return
    files = [str(p) for p in sources(".c", ".h")]
    done = subprocess.run([program, "--dry-run", "--Werror", *files],
                          cwd=ROOT, capture_output=True,
                          encoding="utf-8", check=False)
    print(f"layout      clang-format on {len(files)} files")
    places = re.findall(r"^(\S+?):(\d+):\d+: error:", done.stderr, re.M)
    for path in dict.fromkeys(p for p, _ in places):
        lines = sorted({int(line) for p, line in places if p == path})
        finding(path, lines[0], f"clang-format differs here and in "
                f"{len(lines) - 1} more lines; make format")


def check_cppcheck():
    if not tool("cppcheck"):
        return
    files = [str(p) for p in sources(".c")
             if p.parts[:3] != ("mm", "tests", "host")
             # these use the C library wrongly on purpose
             and p.parts[:2] != ("user", "tests")]
    done = subprocess.run(
        ["cppcheck", "-q", "-j2", "--platform=unix32", "--std=c11",
         "--enable=warning,performance,portability", "--inline-suppr",
         "--suppress=missingIncludeSystem", "-D__GNUC__=12",
         # the arrays that the linker gathers end at another symbol
         "--suppress=comparePointers", "-D__i386__=1",
         "-I.", "-Ikernel", "--template={file}:{line}: {id}: {message}",
         *files],
        cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    print(f"cppcheck    {len(files)} files")
    findings.extend(line for line in done.stderr.splitlines()
                    if re.match(r"\S+:\d+: ", line))


def main():
    argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter).parse_args()
    check_layout()
    check_width()
    check_arrows()
    check_core(check_map())
    check_assembly()
    lengths = check_functions()
    check_cuts()
    check_tests()
    check_texts()
    check_cppcheck()
    show_sizes(lengths)
    for text in findings:
        print(text)
    print(f"lint: {len(findings) or 'no'} finding"
          f"{'' if len(findings) == 1 else 's'}")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
