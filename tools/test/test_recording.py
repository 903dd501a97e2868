"""The kernel that records the requests to its allocator: its command, and how
it is linked."""
# Tests: kernel/shell/cmd_trace.c

import re

import pytest

from conftest import product
from tools.run import qemu

pytestmark = pytest.mark.plain


def kernel():
    return product("slate-trace.elf", "tested")


# ---- the command ------------------------------------------------------------

def test_other_kernels_say_which_one_records():
    for name in ("slate.elf", "slate-workshop.elf"):
        run = qemu.run(product(name, "tested"), "trace on; trace mark 3; "
                       "poweroff")
        assert run.text.count("trace: this kernel does not record; `make "
                              "trace CMD=...` boots one that does") == 2, \
            run.explain()
        assert [e["status"] for e in run.named["status"]] == [1, 1]


def test_wrong_words_change_nothing():
    lines = {
        "trace mark 9999999999": "trace: '9999999999' is not a number below",
        "trace mark x": "usage: trace mark [N]",
        "trace maybe": "usage: trace [on|off]",
        "trace save a/b": "trace: 'a/b' is not a name of up to 31 ",
        "trace save " + "n" * 32: f"trace: '{'n' * 32}' is not a name of up ",
        "trace save one": None,
        "trace save one ": "trace: one is saved already; choose another name",
        "trace": None,
        "trace off": None,
        "trace off ": "trace: no trace is on; `trace on` begins one",
        "trace mark": "trace: no trace is on; `trace on` begins one"}
    run = qemu.run(kernel(), "; ".join([*lines, "poweroff"]), append="trace=4")
    assert run.problem is None, run.explain()
    for said in filter(None, lines.values()):
        assert said in run.text, run.explain()
    assert len(run.named["status"]) == sum(map(bool, lines.values()))
    assert re.findall(r"trace: o\w+; (\d+) records", run.text) == \
        2 * re.findall(r"trace: one has (\d+) records", run.text)


def test_many_traces():
    with qemu.Machine(kernel(), "trace=4") as machine:
        said = [machine.command("; ".join(f"trace save {row}-{i}"
                                          for i in range(13)))
                for row in "abcde"]
    assert re.findall(r"trace: (?!.* records).*", "".join(said)) == [
        "trace: 64 traces are saved, and no more can be"]


def test_memory_for_the_recording():
    run = qemu.run(kernel(), "trace; poweroff", append="trace=3 trace=8")
    assert "option trace=: 3 is not a value for it" in run.text
    assert "memory for 419430" in run.text
    run = qemu.run(kernel(), "trace; poweroff")
    assert re.search(r"memory for 0\n\d+ records are lost",
                     qemu.plain(run.text))


def test_the_allocator_is_that_of_the_product():
    """Its objects, linked; nothing else but the recorder is added."""
    def objects(name):
        text = product(f"{name}.map", "tested").read_text(encoding="utf-8")
        return set(re.findall(r"^LOAD \S*?build/(\S+)\.o$", text, re.M))
    own, recording = objects("slate"), objects("slate-trace")
    heap = {o for o in own if o.startswith(("mm/kmem_", "mm/inspect/kmem_",
                                            "mm/debug/"))}
    assert len(heap) > 10
    other = {o for o in recording ^ own if not o.startswith("symbols/")}
    assert other == heap | {"heap", "kernel/shell/cmd_trace",
                            "tools/workshop/trace/cmd_trace",
                            "tools/workshop/trace/recorder"}
