"""The layouts for the page: GDB sees the same kernel."""

import json
import re
import subprocess
import sys

import pytest

from conftest import ROOT, execute
from tools.web import page

STRUCTS = "kmem_cache", "kmem_slab", "kmem_bufctl", "page", "task", "inode"

pytestmark = pytest.mark.plain


def generate(kernel, out):
    return execute(sys.executable, "-m", "tools.web.layouts", kernel, out)


@pytest.fixture(scope="module")
def layouts(kernel, shared_path):
    done = generate(kernel, shared_path / "layouts.json")
    assert done.returncode == 0, done.stderr
    return json.loads((shared_path / "layouts.json").read_text("utf-8"))


def gdb(kernel, *expressions):
    """What GDB says of each expression."""
    argv = ["gdb", "-nx", "-batch", "-ex", "set language c"]
    for e in expressions:
        argv += ["-ex", f"output/u {e}", "-ex", r"echo \n"]
    done = subprocess.run([*argv, kernel], encoding="utf-8", check=True,
                          stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    return [int(line) for line in done.stdout.splitlines()]


def test_the_page_knows_the_commands_of_its_kernel(layouts, shared_path):
    """help.txt also has the commands of kernels for several processors."""
    commands = page.commands(shared_path / "layouts.json")
    assert {"kmastat", "slabs", "poweroff"} <= set(commands)
    assert not {"cpus", "magazines", "bench"} & set(commands)


def test_offsets_and_sizes_are_what_gdb_says(kernel, layouts):
    expected, asked = [], []
    for name in STRUCTS:
        struct = layouts["structs"][name]
        expected.append(struct["size"])
        asked.append(f"sizeof(struct {name})")
        for member, known in struct["members"].items():
            expected.append(known["offset"])
            asked.append(f"(int)&((struct {name} *)0)->{member}")
    assert len(asked) > 100
    assert expected == gdb(kernel, *asked)


def test_sizes_of_members_are_what_gdb_says(kernel, layouts):
    def size(kind):
        if kind["kind"] == "array":
            return kind["count"] * size(kind["of"])
        if kind["kind"] == "struct":
            return layouts["structs"][kind["name"]]["size"]
        return 4 if kind["kind"] == "pointer" else kind["size"]

    asked = {f"sizeof(((struct {name} *)0)->{member})": size(known["type"])
             for name in STRUCTS
             for member, known in layouts["structs"][name]["members"].items()}
    assert list(asked.values()) == gdb(kernel, *asked)


def test_variables_and_enums_are_what_gdb_says(kernel, layouts):
    twice = {name.split(":")[-1] for name in layouts["variables"]
             if ":" in name}  # of which GDB takes another one
    twice.update(f[2] for f in layouts["functions"])
    variables = {f"(unsigned)&{name}": known["address"]
                 for name, known in layouts["variables"].items()
                 if name.split(":")[-1] not in twice}
    assert len(variables) > 200
    assert list(variables.values()) == gdb(kernel, *variables)
    states = layouts["enums"]["page_state"]
    assert "PAGE_SLAB" in states
    assert list(states.values()) == gdb(kernel, *states)


def test_types_are_told_apart(layouts):
    members = layouts["structs"]["kmem_slab"]["members"]
    assert members["slab_cache"]["type"] == {
        "kind": "pointer", "to": {"kind": "struct", "name": "kmem_cache"}}
    assert members["slab_base"]["type"] == {"kind": "pointer", "to": None}
    assert members["slab_chunks"]["type"] == {
        "kind": "int", "size": 2, "signed": False, "name": "uint16_t"}
    members = layouts["structs"]["kmem_cache"]["members"]
    assert members["cache_ctor"]["type"] == {
        "kind": "pointer", "to": {"kind": "function"}}
    assert members["cache_name"]["type"]["kind"] == "array"


def test_each_structure_that_is_named_is_defined(layouts):
    """But those that the kernel only declares."""
    text = json.dumps(layouts)
    named = set(re.findall(r'"kind": "struct", "name": "([^"]*)"', text))
    assert named - layouts["structs"].keys() == set()
    assert not re.search(r'"(null|None)[".]|:None', text)


def test_functions_have_their_line(kernel, layouts):
    functions = layouts["functions"]
    assert functions == sorted(functions, key=lambda f: f[0])
    assert all(a[0] + a[1] <= b[0] for a, b in zip(functions, functions[1:]))
    found = {name: rest for *rest, name, file, line in functions}
    where = {name: (file, line) for _, _, name, file, line in functions}
    address, size = found["kmem_cache_alloc"]
    assert [address] == gdb(kernel, "(unsigned)&kmem_cache_alloc") and size > 20
    file, line = where["kmem_cache_alloc"]
    assert file == "mm/kmem_cache.c"
    assert "kmem_cache_alloc(" in (ROOT / file).read_text(
        "utf-8").splitlines()[line - 1]
    assert where["switch_stack"] == (None, 0)


def test_a_file_without_debug_information_is_refused(kernel, tmp_path):
    bare = tmp_path / "bare.elf"
    subprocess.run(["objcopy", "--strip-debug", kernel, bare], check=True)
    text = tmp_path / "text"
    text.write_text("no kernel", "utf-8")
    out = tmp_path / "out.json"
    for file, said in (bare, "has no debug information"), \
            (text, "is not an ELF file"), \
            (tmp_path / "none", "No such file"):
        done = generate(file, out)
        assert done.returncode == 1 and not out.exists()
        assert re.fullmatch(rf"layouts: .*{said}.*\n", done.stderr), done.stderr


def test_calls_are_at_the_lines_that_have_them(layouts):
    """A line of an inlined function may be nearer to a few."""
    def is_call(file, line):
        lines = (ROOT / file).read_text("utf-8").splitlines()[line - 1:line + 2]
        return re.search("alloc|free", " ".join(lines))

    calls = list(layouts["calls"].values())
    assert len(calls) > 50
    assert sum(bool(is_call(*call)) for call in calls) >= 0.9 * len(calls)
