"""The comments, functions, includes, objects and assembly that `make lint`
reports, and those it accepts; the sizes that it shows."""

import re
import subprocess

import pytest

from tools.test import lint

pytestmark = pytest.mark.plain

CODE = ["x = 1;", "f(a, b);", "p->x++;", "(void)x;", "struct list *l = f();",
        "return x;", "if (x)", "for (;;) {", "}", "} else {", "#if 0", "int x;",
        "a->b[2] |= 3;", "break;", "(void)f(x);"]
PROSE = ["of the cache; see (x);", "Prints it (x);", "return the number: 0",
         "second one;", "if it is full; and", "the list (by list_lock);"]


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """tree({name: text}): writes files of the tree that lint reads; returns the
    list of its findings, still empty."""
    monkeypatch.setattr(lint, "ROOT", tmp_path)
    monkeypatch.setattr(lint, "BUILD", "made")

    def write(files):
        monkeypatch.setattr(lint, "findings", [])
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(
                text if isinstance(text, bytes) else text.encode())
        return lint.findings
    return write


def found(tree, text, name="mm/x.c"):
    """The lines and texts of lint's findings."""
    findings = tree({name: text})
    lint.check_cuts()
    return [(int(f.split(":")[1]), f.split(": ", 1)[1]) for f in findings]


@pytest.mark.parametrize("code", CODE)
def test_commented_out_code(tree, code):
    for text, line in ((f"    /* {code} */\n", 1), (f"    // {code}\n", 1),
                       (f"/*\n * {code}\n */\n", 2),
                       (f"int y;\n\n    /* So:\n     *     {code} */\n", 4)):
        assert found(tree, text) == [
            (line, f"commented-out code: {code}")], text


@pytest.mark.parametrize("text", PROSE)
def test_prose(tree, text):
    assert not found(tree, f"    /* {text}\n     * b */\n")


def test_examples_and_strings(tree):
    assert not found(tree, "/*\n * For example:\n *\n *     x = f(1);\n */\n"
                     'char *s = "/* x = 1; */";\n')


def test_assembly(tree):
    assert found(tree, "; in a page\n    ret\n; mov eax, 1\n",
                 "boot/x.asm") == [(3, "commented-out code: ; mov eax, 1")]


def test_marks_of_labs(tree):
    for text in ("/* LAB 2.1 BEGIN: x */\n", "int LAB_MISSING;\n"):
        assert [line for line, why in found(tree, text)
                if "mark of a lab" in why] == [1]


# ---- sizes -----------------------------------------------------------------

def function(name, lines):
    return f"int {name}(int n)\n{{\n" + lines + "}\n"


def test_long_functions(tree):
    """A function of 61 lines is one too long, but not if it is a switch."""
    switch = "".join(f"    case {n}:\n        return {n};\n"
                     for n in range(29))
    findings = tree({"x.c": function("fits", "    n++;\n" * 60)
                     + function("does_not", "    n++;\n" * 61)
                     + function("table", f"    switch (n) {{\n{switch}    }}\n"
                                "\n    return 0;\n")})
    assert lint.check_functions() == [60, 61, 62]
    assert findings == ["x.c:64: does_not has 61 lines, more than 60"]


@pytest.mark.parametrize("other, twice", [
    ("mm/b.c", True), ("drivers/b.c", True), ("mm/tests/b.c", False),
    ("drivers/servers/b.c", False), ("user/bin/b.c", False)])
def test_a_name_is_one_function(tree, other, twice):
    findings = tree(dict.fromkeys(
        ("kernel/a.c", other),
        "static PRINTF_LIKE(1, 2) void\ntake(int a)\n{\n}\n\n"
        "void *kmem_cache_alloc(void)\n{\n}\n"))
    lint.check_functions()
    assert [re.sub(r":\d+:", ":", f) for f in findings] == (
        [f"{max('kernel/a.c', other)}: take is in "
         f"{min('kernel/a.c', other)}, too"] if twice else [])


def test_sizes_are_shown_and_not_limited(tree, capsys):
    sources = {"mm/a.c": 50000, "mm/inspect/kmem_verify.c": 2000,
               "mm/debug/a.h": 300, "mm/others/a.c": 400,
               "kernel/shell/a.c": 40000, "kernel/tests/a.c": 9,
               "drivers/servers/a.c": 9}
    findings = tree({
        **{name: "int x[]; /* a */\n/* b */\n\n" * lines
           for name, lines in sources.items()},
        "kernel/a.asm": "    ret ; a\n; b\n\n" * 7,
        "tools/gdb/x.py": "# a\n\n" * 4000,
        "tools/replay/x.py": "# a\n\n" * 4000})
    lint.show_sizes([1, 2, 2, 3, 59])
    shown = re.findall(r"^(\S.*?) +([\d,]+)$", capsys.readouterr().out, re.M)
    assert {name: int(lines.replace(",", "")) for name, lines in shown} == {
        "mm/ core": 50000, "mm/inspect, mm/debug": 2300,
        "mm/others": 400, "shell": 40000, "rest of ring 0": 7,
        "ring 0 without shell": 52307, "GDB's Python, all lines": 16000,
        "whole tree, all lines": 294175,
        "median": 2, "90th percentile": 59, "longest": 59}
    assert findings == []


# ---- arrows ----------------------------------------------------------------

@pytest.mark.parametrize("name, text, found", [
    ("kernel/fs/a.c", '#include "kernel/lib/b.h"\n', None),
    ("kernel/fs/a.c", "#include <sys/wait.h>\n", None),
    ("kernel/lib/a.h", '#include "kernel/fs/b.h"\n',
     "kernel/lib/ may not include kernel/fs/b.h"),
    ("kernel/fs/a.c", '#include "b.h"\n', '"b.h" is not a path from the root'),
    ("kernel/new/a.c", '#include "kernel/lib/b.h"\n', "is on no floor"),
    ("user/bin/a.c", '#include "kernel/fs/b.h"\n',
     "user/bin/ may not include kernel/fs/b.h"),
    ("kernel/fs/a.c", '# include "tools/workshop/b.h"\n', "the product may"),
    ("kernel/fs/a.c", "#include <tools/workshop/b.h>\n", "the product may"),
    ("kernel/fs/a.c", '#include "kernel/fs/tests/b.h"\n', "the product may"),
    ("boot/a.asm", '%include "tools/workshop/b.h"\n', "the product may"),
    ("boot/a.asm", '  incbin "docs/labs/b.h"\n', "the product may"),
    ("boot/a.ld", "/* a */ *(.text) *kernel/fs/*.o(.data)\n", None),
    ("boot/a.ld", "*mm/*.o(.text)\n*tools/workshop/b.o(.text)\n",
     "the product may not name tools/workshop/b.o"),
    ("boot/a.ld", "INCLUDE tools/workshop/b.ld\n", "the product may"),
    ("kernel/fs/a.c", "#ifdef CONFIG_SANITIZE\n",
     "the product may not name CONFIG_SANITIZE"),
    ("kernel/lib/b.h", "void kasan_open(void);\n", "the product may not name"),
    ("boot/a.asm", "%ifdef SANITIZE\n", "the product may not name SANITIZE"),
    ("boot/a.ld", "/* the sanitizers' */\n", "the product may not name"),
    ("kernel/fs/tests/b.h", "#ifdef CONFIG_SANITIZE\n", None),
    ("kernel/shell/a.c", '#include "mm/b_impl.h"\n',
     "mm/b_impl.h is private to mm/"),
    ("mm/debug/a.c", '#include "mm/b_impl.h"\n', None),
    ("user/lib/a.c", '#include "mm/b_impl.h"\n', None),
    ("kernel/x86/cpu.h", "#ifdef CONFIG_SMP\n", None),
    ("kernel/x86/trap.asm", "%ifdef CONFIG_SMP\n", None),
    ("kernel/fs/a.c", "#ifdef CONFIG_SMP\n", "CONFIG_SMP is for the files"),
    ("kernel/fs/tests/b.h", "#ifdef CONFIG_SMP\n", "CONFIG_SMP is for"),
])
def test_arrows_of_the_product(tree, name, text, found):
    headers = dict.fromkeys(("kernel/lib/b.h", "kernel/fs/b.h",
                             "kernel/fs/tests/b.h", "tools/workshop/b.h",
                             "docs/labs/b.h", "mm/b_impl.h"), "")
    said = tree({**headers, name: text})
    lint.check_arrows()
    assert [found in line for line in said] == ([True] if found else [])


def test_circles_of_folders(tree):
    said = tree({
        "tools/a/a.h": '#include "tools/b/b.h"\n',
        "tools/b/b.h": '#include "tools/c/c.h"\n#include "tools/b/d.h"\n',
        "tools/b/d.h": "",
        "tools/c/c.h": '#include "tools/a/a.h"\n'})
    lint.check_arrows()
    assert [line.split(": ", 1)[1] for line in said] == [
        "includes in a circle: tools/a -> tools/b -> tools/c -> tools/a"]


# ---- texts -----------------------------------------------------------------

def texts(tree, name, data):
    findings = tree({name: data})
    lint.check_texts()
    return findings


@pytest.mark.parametrize("data, found", [
    ("= help\n§\n", []),
    (b"= help\n= ps\r\n", ["x.txt:2: has a carriage return"]),
    (b"\xef\xbb\xbf= help\n", ["x.txt:1: begins with a byte-order mark"]),
    (b"= help\n\xb1\xe2\n", ["x.txt:2: is not UTF-8"])])
def test_texts(tree, data, found):
    assert texts(tree, "x.txt", data) == found


@pytest.mark.parametrize("call", [
    'open("a")', 'open("a", "w")', 'open("a", mode="r", newline="")',
    "io.open(path)", 'path.open("a")', "path.open()", "os.fdopen(1)",
    'tempfile.NamedTemporaryFile("w")', "path.read_text()",
    'path.read_text(errors="replace")', 'path.write_text("a")',
    "subprocess.run(argv, text=True)",
    "subprocess.Popen(argv, universal_newlines=True)"])
def test_the_encoding_of_a_locale(tree, call):
    assert texts(tree, "x.py", f"\n{call}\n") == [
        "x.py:2: opens a text without an encoding"]


@pytest.mark.parametrize("call", [
    'open("a", "rb")', 'open("a", encoding="utf-8")', 'path.open("r+b")',
    "os.open(path, os.O_RDONLY)", "tarfile.open(path)", 'os.fdopen(1, "wb")',
    "tempfile.TemporaryFile()", 'path.read_text("utf-8")',
    'path.write_text("a", "utf-8")', 'parse(text="a")',
    'subprocess.run(argv, encoding="utf-8")', "subprocess.run(argv)"])
def test_named_encodings_and_bytes(tree, call):
    assert not texts(tree, "x.py", f"{call}\n")


# ---- the product's objects and assembly ------------------------------------

@pytest.mark.parametrize("name, apart", [
    ("kernel/fs/pipe", True), ("symbols/slate/table", True),
    ("mm/tests/kmem_test", False), ("kernel/fs/tests/test_pipe", False),
    ("tools/workshop/bugs/cmd_bug", False),
    ("docs/labs/07-bug-hunt/services/workday", False)])
def test_objects_in_the_link_map(tree, name, apart):
    findings = tree({"made/slate.map": "LOAD made/boot/entry.asm.o\n"
                     f"LOAD made/{name}.o\n"})
    lint.check_map()
    assert findings == ([] if apart else [
        f"made/slate.map:0: {name}.o is apparatus"])


@pytest.mark.parametrize("debug, wrong", [
    ("debug", []), ("inspect", ["mm/a.c:0: needs look of mm/inspect/b.c"])])
def test_the_core_links_without_observers(tree, tmp_path, debug, wrong):
    """mm/old.o, left of a source that has moved, is not in the link map."""
    findings = tree({})
    for name, text in (("mm/a", "void look(void); void f(void) { look(); }"),
                       (f"mm/{debug}/b", "void look(void) {}"),
                       ("mm/inspect/c", "void f(void); void g(void) { f(); }"),
                       ("mm/old", "void g(void); void h(void) { g(); }")):
        out = tmp_path / "made" / f"{name}.o"
        out.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["gcc", "-x", "c", "-c", "-", "-o", str(out)],
                       input=text, encoding="utf-8", check=True)
    lint.check_core(["mm/a", f"mm/{debug}/b", "mm/inspect/c"])
    assert findings == wrong
    lint.check_core([])
    assert findings[len(wrong):] == [
        "made/slate.map:0: has no allocators, or nothing that looks at them"]


@pytest.mark.parametrize("name, wrong", [
    ("boot/a.c", True), ("mm/a.h", True), ("kernel/a.c", True),
    ("kernel/x86/a.h", False), ("drivers/servers/a.c", False),
    ("user/lib/a.h", False), ("kernel/ipc/tests/a.c", False)])
def test_inline_assembly(tree, name, wrong):
    findings = tree({name: '/* asm */\n    __asm__ volatile("hlt");\n'
                     'char s[] = "asm";\n'})
    lint.check_assembly()
    assert findings == ([f"{name}:2: inline assembly is in kernel/x86/ "
                              "alone"] if wrong else [])
