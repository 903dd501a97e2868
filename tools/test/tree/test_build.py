"""The build: a second make does nothing, a change rebuilds what it touches, a
missing tool is one line. Works on a copy of the tree and its products, so that
those stay as they are. Where all would be built anew, make only prints it (-n).
"""

import os
import re
import shutil
import subprocess

import pytest

from conftest import copy_tree, long, tiers
from tools.run import qemu

pytestmark = pytest.mark.plain


@pytest.fixture(scope="module")
def tree(shared_path):
    """A built copy of the tree."""
    copy_tree(shared_path)
    done = make(shared_path, "-j2", "kernel")
    assert done.returncode == 0, done.stdout + done.stderr
    return shared_path


def make(tree, *arguments, **env):
    clean = {k: v for k, v in os.environ.items()
             if k not in ("BUILD", "DEBUG", "SANITIZE", "SMP", "CPUS")}
    return subprocess.run(["make", "--no-print-directory", *arguments],
                          cwd=tree, encoding="utf-8", check=False,
                          capture_output=True, env={**clean, **env})


def compiled(done):
    """The sources that a run of make compiled, or would compile."""
    assert done.returncode == 0, done.stdout + done.stderr
    lines = re.findall(r"^ +(?:CC|NASM) +(\S+)$", done.stdout, re.M)
    plans = re.findall(r"'(?:CC|NASM)' '(\S+)'", done.stdout)
    return set(lines + plans)


@pytest.mark.parametrize("arguments, flags, jobs", [
    ([], "", "-j7"), (["-k"], "", "-j7"), (["-j5"], "", "-j5"),
    (["-j1"], "", "-j1"), (["-j"], "", "-j"), ([], "-j1", "-j1"),
    (["and"], "", ""), (["and", "-j5"], "", "-j5")])
def test_one_goal_is_made_by_all_processors(tree, tmp_path, arguments, flags,
                                            jobs):
    """So is what a make below it makes; it says nothing of a job server."""
    (tmp_path / "getconf").write_text("#!/bin/sh\necho 7\n", "utf-8")
    (tmp_path / "getconf").chmod(0o755)
    (tmp_path / "below.mk").write_text(
        "below and:\n\t@echo $@ $(MAKEFLAGS)\n"
        "above:\n\t@$(MAKE) -f Makefile -f $(BELOW) below\n", "utf-8")
    done = make(tree, "-f", "Makefile", "-f", str(tmp_path / "below.mk"),
                f"BELOW={tmp_path}/below.mk", "above", *arguments,
                MAKEFLAGS=flags, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode == 0 and not done.stderr, done.stderr
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert (jobs or "-j7") in said["below"].split(), done.stdout
    if "and" in arguments:
        assert re.findall(r"(?<!-)-j\d*", said["and"]) == [jobs] * bool(jobs)


def test_second_make_does_nothing(tree):
    done = make(tree, "kernel")
    assert done.stdout == "make: Nothing to be done for 'kernel'.\n"


def test_touched_source_alone_is_rebuilt(tree):
    os.utime(tree / "mm/page.c")
    assert compiled(make(tree, "kernel")) == {"mm/page.c"}


def test_touched_header_rebuilds_its_includers(tree):
    header = tree / "mm/buddy.h"
    before = header.stat()
    os.utime(header)
    names = compiled(make(tree, "-n", "kernel"))
    os.utime(header, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "mm/buddy.c" in names and "kernel/lib/string.c" not in names


@pytest.mark.parametrize("setting", ["DEBUG=1", "BUILD=elsewhere",
                                     "ASFLAGS=-f elf32", "CC=other-gcc"])
def test_other_flags_or_folder_rebuild_all(tree, setting):
    names = compiled(make(tree, "-n", "kernel", setting))
    assert {"boot/entry.asm", "mm/page.c", "kernel/main.c"} <= names


def test_the_whole_path_of_the_folder_rebuilds_nothing(tree):
    """Tests pass it; no flag that programs are compiled with has it."""
    assert not compiled(make(tree, "-n", "kernel", f"BUILD={tree}/build"))


@pytest.mark.parametrize("name", ["", "a b", *(f"a{c}b" for c in
                                              "\\,:;=%#'\"`&|*?<>()")])
def test_folders_that_cannot_be_named_are_refused(tree, name):
    done = make(tree, "kernel", f"BUILD={name}")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert f"BUILD='{name}' must be the name of a folder" in done.stderr


def test_no_page_has_the_instructors_book(tree):
    [line] = refused(make(tree, "-n", "web", "INSTRUCTOR=1"))
    assert "INSTRUCTOR: " in line and line.endswith("leave it out.  Stop.")


def test_lost_execute_bits_do_not_matter(tree):
    """As in an unpacked zip. (The copy of the tree has no .venv.)"""
    for name in "tools/grade", "tools/setup":
        (tree / name).chmod(0o644)
    done = make(tree, "grade", "LAB=2")
    assert "tools/grade: .venv lacks the Python packages" in done.stderr
    subprocess.run(["bash", "tools/setup", "--help"], cwd=tree, check=True,
                   stdout=subprocess.DEVNULL)
    assert os.access(tree / "tools/grade", os.X_OK)


def test_debug_build_is_apart(tree):
    plan = make(tree, "-n", "kernel", "DEBUG=1").stdout
    assert "-DCONFIG_DEBUG=1" in plan and "-o build/debug/mm/page.o" in plan
    assert " -o build/mm/" not in plan


def test_sanitized_build_is_apart(tree):
    plan = make(tree, "-n", "kernel", "SANITIZE=1").stdout
    assert "-fsanitize=kernel-address" in plan
    assert "-o build/sanitize/tools/workshop/sanitize/kasan.o" in plan
    assert " -o build/mm/" not in plan
    plan = make(tree, "-n", "kernel", "V=1", "CC=other-gcc").stdout
    assert "tools/workshop/sanitize/" not in plan and "-fsanitize" not in plan


@pytest.mark.parametrize("folder", ["build", "elsewhere"])
def test_all_tests_are_of_three_builds(tree, folder):
    """In any folder the tests of the plain build come last."""
    plan = make(tree, "-n", "test-all", f"BUILD={folder}").stdout
    assert re.findall(r"SLATE_BUILD=(\S+)", plan) == [
        f"{folder}/debug", f"{folder}/sanitize", folder]


def test_build_for_several_processors_is_apart(tree):
    """The kernel is another one; the programs are the same."""
    plan = make(tree, "-n", "kernel", "SMP=1", "V=1").stdout
    assert "-o build/smp/kernel/x86/spinlock.o" in plan
    assert " -o build/mm/" not in plan
    for line in plan.splitlines():
        if re.search(r" -c \S+ -o |^nasm", line):
            assert ("CONFIG_SMP" in line) == ("build/smp/user/" not in line)
    plan = make(tree, "-n", "kernel", "SMP=1", "DEBUG=1").stdout
    assert "-o build/smp-debug/mm/page.o" in plan
    plan = make(tree, "-n", "kernel", "V=1", "CC=other-gcc").stdout
    assert "kernel/x86/spinlock.o" not in plan and "CONFIG_SMP" not in plan


def test_settings_of_the_environment_arrive(tree, tmp_path):
    """The settings of `make cachesim`: the Makefile does not set such names."""
    said = tmp_path / "said.mk"
    said.write_text('said:\n\t@echo "$$SIZE $$ALIGN $$OBJECTS $$HOT $$CACHE"\n',
                    "utf-8")
    done = make(tree, "-f", "Makefile", "-f", str(said), "said", SIZE="1",
                ALIGN="2", OBJECTS="3", HOT="4", CACHE="5")
    assert done.stdout == "1 2 3 4 5\n", done.stderr


def test_several_processors_run_the_kernel_for_them(tree):
    for target in "run", "gdb":
        plan = make(tree, "-n", target, "CPUS=4").stdout
        assert "build/smp/slate.elf" in plan, plan
        plan = make(tree, "-n", target, "CPUS=1").stdout
        assert "build/smp" not in plan, plan
    plan = make(tree, "-n", "kernel", "SMP=1", "V=1").stdout
    assert "kernel/cpus.o" in plan and "boot/ap.asm" in plan
    plan = make(tree, "-n", "kernel", "V=1", "CC=other-gcc").stdout
    assert "kernel/cpus.o" not in plan and "boot/ap.asm" not in plan


@pytest.mark.parametrize("value, said", [
    ("", []), ("1", []), ("4", ["-smp", "4"]), ("0", None), ("9", None),
    ("two", None)])
def test_the_number_of_processors_is_checked(monkeypatch, value, said):
    monkeypatch.setenv("CPUS", value)
    if said is None:
        with pytest.raises(SystemExit, match="is not a number from 1 to 8"):
            qemu.processors()
    else:
        assert qemu.processors() == said


COMMAND = """#include "drivers/console.h"
#include "kernel/shell/shell.h"

static int cmd_answer(char **argv)
{
    (void)argv;
    kprintf("42\\n");
    return 0;
}

SHELL_COMMAND(answer, {"", cmd_answer, SHELL_ACTION});
"""


def refused(done):
    """The lines before make's own that say why it stopped."""
    assert done.returncode != 0, done.stdout
    return [line for line in done.stderr.splitlines()
            if not line.startswith("make: *** ")]


@pytest.mark.parametrize("folder, text, goal", [
    ("kernel/shell", "kernel/shell/help.txt", "kernel"),
    ("kernel", "kernel/shell/help.txt", "build/helped"),
    ("tools/workshop/bugs", "tools/workshop/help.txt", "build/helped")])
def test_a_command_and_its_help_need_each_other(tree, folder, text, goal):
    """Exercise 5 of docs/shell.md, in either order."""
    source, text = tree / folder / "cmd_answer.c", tree / text
    before = text.read_text("utf-8")
    source.write_text(COMMAND, "utf-8")
    line, = refused(make(tree, goal))
    assert line.startswith(f"{folder}/cmd_answer.c: the command answer has no")
    assert line.endswith(f'"= answer" in {text.relative_to(tree)}')
    text.write_text(before + "= answer\nprint the answer\n", "utf-8")
    assert make(tree, goal).returncode == 0
    source.unlink()
    line, = refused(make(tree, goal))
    assert line.startswith(f"{text.relative_to(tree)}:")
    assert "there is no command answer;" in line
    text.write_text(before, "utf-8")
    assert make(tree, goal).returncode == 0


def test_removed_source_leaves_the_kernel(tree):
    extra = tree / "kernel/extra.c"
    extra.write_text("int extra_function(void);\n"
                     "int extra_function(void)\n{\n    return 1;\n}\n",
                     encoding="utf-8")
    make(tree, "kernel")
    assert b"extra_function" in (tree / "build/slate.elf").read_bytes()
    extra.unlink()
    assert compiled(make(tree, "kernel")) == set()
    assert b"extra_function" not in (tree / "build/slate.elf").read_bytes()


@pytest.mark.parametrize("source, program", [
    ("user/bin/sh/extra.c", "build/user/bin/sh"),
    ("mm/debug/extra.c", "build/heap.o")])
def test_removed_source_leaves_the_program(tree, source, program):
    (tree / source).write_text("int extra;\n", "utf-8")
    assert compiled(make(tree, program)) >= {source}
    (tree / source).unlink()
    assert f"LINK    {program}\n" in make(tree, program).stdout


def test_removed_command_leaves_the_list(tree):
    source, made = tree / "tools/workshop/bugs/a.c", "build/workshop_commands.c"
    source.write_text("SHELL_COMMAND(answer, {});\n", "utf-8")
    assert make(tree, made).returncode == 0
    assert '"answer"' in (tree / made).read_text("utf-8")
    source.unlink()
    assert make(tree, made).returncode == 0
    assert '"answer"' not in (tree / made).read_text("utf-8")


def test_commands_for_several_processors_leave_the_list(tree):
    made = "elsewhere/workshop_commands.c"
    for smp in "10":
        make(tree, made, f"SMP={smp}", "BUILD=elsewhere")
        said = (tree / made).read_text("utf-8")
        assert ('"cpufault"' in said) == (smp == "1")


@pytest.fixture
def beforehand(tree, tmp_path):
    """The tree with objects in the place of two sources, as in a hand-out; one
    is for programs, too."""
    make(tree, "kernel")
    moved = ["mm/page.c", "mm/kmem_hash.c"]
    for name in moved:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.move(tree / name, tmp_path / name)
    for name in "mm/page.o", "mm/kmem_hash.o", "user/mm/kmem_hash.o":
        (tree / "prebuilt" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tree / "build" / name, tree / "prebuilt" / name)
    yield tree
    shutil.rmtree(tree / "prebuilt")
    for name in moved:
        shutil.move(tmp_path / name, tree / name)


@long
def test_objects_in_the_place_of_sources(beforehand):
    done = make(beforehand, "kernel")
    assert done.returncode == 0, done.stderr
    assert sorted(re.findall(r"COPY +(\S+)", done.stdout)) == [
        "prebuilt/mm/kmem_hash.o", "prebuilt/mm/page.o",
        "prebuilt/user/mm/kmem_hash.o"]
    assert compiled(done) == set()
    done = make(beforehand, "kernel")
    assert done.stdout == "make: Nothing to be done for 'kernel'.\n"


@long
@pytest.mark.parametrize("setting", ["DEBUG=1", "SANITIZE=1", "CPUS=2"])
def test_objects_are_those_of_a_plain_build(beforehand, setting):
    [line] = refused(make(beforehand, "kernel", setting))
    assert "DEBUG, SANITIZE and SMP are not for a hand-out" in line


def test_given_has_a_folder_of_its_own(tree):
    """Files that it writes there would later hide the student's files."""
    (tree / "prebuilt/mm").mkdir(parents=True)
    (tree / "prebuilt/mm/page_given.o").touch()
    [line] = refused(make(tree, "kernel", "GIVEN=1", "BUILD=elsewhere"))
    assert "GIVEN has a folder of its own: leave out BUILD" in line
    assert make(tree, "-n", "help", "GIVEN=1").returncode == 0
    shutil.rmtree(tree / "prebuilt")


@pytest.mark.parametrize("name", [
    "kernel/shell/help.txt", "tools/workshop/help.txt", "user/root/etc/motd",
    "user/tests/servers"])
def test_texts_with_other_line_ends_are_refused(tree, name):
    """They build without a warning, but the kernel would not know its help."""
    path = tree / name
    before = path.read_bytes()
    for data in before.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + before:
        path.write_bytes(data)
        done = make(tree, "kernel")
        assert done.returncode == 2
        assert re.search(rf"^make: CR LF .* {name}$", done.stderr, re.M)
    path.write_bytes(before)
    assert make(tree, "build/texts").returncode == 0


# What C once allowed, and the option that makes it an error.
MISTAKES = {
    "void f(void);\nvoid f(void)\n{\n    nowhere();\n}\n":
        "implicit-function-declaration",
    "int *f(int n);\nint *f(int n)\n{\n    return n;\n}\n": "int-conversion",
    "char *f(int *p);\nchar *f(int *p)\n{\n    return p;\n}\n":
        "incompatible-pointer-types",
    "int f(void);\nint f(void)\n{\n}\n": "return-type",
}
# A folder of objects, and one of sources, for each kind of compilation. Other
# flags make everything in a folder anew, so these have one of their own.
KINDS = [("plain", "kernel"), ("plain/user", "user/bin"), ("plain/host", "mm"),
         ("plain/threads", "mm"), ("plain/races", "mm"),
         ("plain/scale/slab", "mm"), ("plain/wakes", "kernel/task")]


def compile_one(tree, objects, folder, text):
    """A run of make that compiles the text as a source of a folder. Without
    WERROR=1, which makes an error of every warning."""
    source = tree / folder / "one.c"
    source.write_text(text, encoding="utf-8")
    try:
        return make(tree, f"{objects}/{folder}/one.o", "BUILD=plain",
                    "WERROR=0")
    finally:
        source.unlink()


@pytest.mark.parametrize("objects, folder", tiers(KINDS[:3], KINDS[3:]))
def test_mistakes_that_link_are_errors(tree, objects, folder):
    for text, option in MISTAKES.items():
        done = compile_one(tree, objects, folder, text)
        assert done.returncode == 2 and f"={option}]" in done.stderr, objects


def test_kprintf_is_declared_by_the_header_of_its_name(tree):
    done = compile_one(tree, "plain", "kernel",
                       '#include "kernel/lib/printf.h"\n\n'
                       "void prints(void);\nvoid prints(void)\n{\n"
                       '    kprintf("%d\\n", 1);\n}\n')
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_verbose_shows_commands(tree):
    os.utime(tree / "mm/page.c")
    out = make(tree, "build/mm/page.o", "V=1").stdout
    assert "-mregparm=3" in out and "-c mm/page.c" in out


def test_help_is_the_default_and_names_every_target(tree):
    out = make(tree).stdout
    for target in ("run doctor iso run-iso gdb debug-server test test-host "
                   "test-kernel test-system bench coverage mutants lint format "
                   "clean").split():
        assert f"  {target} " in out


@pytest.mark.parametrize("goal, setting, missing", [
    ("kernel", "CROSS_COMPILE=nowhere-", "nowhere-gcc"),
    ("kernel", "NASM=nonasm", "nonasm"),
    ("run", "QEMU=noqemu", "noqemu"),
    ("iso", "GRUB_MKRESCUE=", "grub-mkrescue"),
])
def test_missing_tool_is_one_line(tree, goal, setting, missing):
    done = make(tree, goal, setting, *["BUILD=none"] * (goal == "kernel"))
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines()
             if not line.startswith("make: *** ")]
    assert len(lines) == 1 and missing in lines[0], done.stderr
    assert "tools/setup" in lines[0]


@pytest.mark.parametrize("memory, said", [
    ("much", "is not a number of MiB"), ("1", "is too little")])
def test_wrong_memory_is_one_line(tree, memory, said):
    done = make(tree, "run", f"MEM={memory}")
    assert done.returncode != 0
    assert f"MEM={memory} {said}" in done.stderr


@pytest.mark.parametrize("folder", ["build", "elsewhere"])
@pytest.mark.parametrize("words, plan", [
    ("replay-trace TRACE=x/busy.ktr", r"^{0}/replay/replay x/busy\.ktr$"),
    ("trace-summary TRACE=x/busy.ktr", r"-m tools\.measure\.traces "
     r"{0}/replay/replay x/busy\.ktr +--out {0}/trace/busy\.svg$"),
    ("trace NAME=busy CMD=x", r"-m tools\.run\.trace {0}/slate-trace\.elf "
     r"{0}/replay/pack {0}/trace$"),
    ("run ALLOCATOR=sunos", r"-m tools\.run\.run {0}/slate-sunos\.elf"),
    ("replay-kernel ALLOCATOR=svr4", r"-m tools\.measure\.kernel_replay "
     r"{0}/compare/svr4\.elf +{0}/initrd-workshop\.tar {0}/replay/replay *$")])
def test_programs_that_make_starts(tree, folder, words, plan):
    """On the files of any folder."""
    done = make(tree, "-n", *words.split(), f"BUILD={folder}")
    assert re.search(plan.format(folder), done.stdout.replace("\\\n", ""),
                     re.M), done.stdout
