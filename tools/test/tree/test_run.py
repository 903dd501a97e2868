"""`make run` and `make debug-server` on a terminal, and the runner's messages
when the machine crashes."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pexpect
import pytest

from conftest import BUILD, BUILD_NAME, ROOT, execute
from tools.run import debug, qemu, watchdog

LEAVE = "\x01x"  # Ctrl-A X
BUILT = [f"{BUILD_NAME}/{name}" for name in (
    "slate.elf", "initrd.tar", "slate-workshop.elf", "initrd-workshop.tar")]


@pytest.fixture
def make(kernel):
    """make("run", "MEM=16") on a terminal of its own, with the existing kernel
    and programs: -o keeps make from building them."""
    children = []

    def start(*arguments):
        child = pexpect.spawn(
            "make", ["--no-print-directory", f"BUILD={BUILD_NAME}",
                     *sum((["-o", p] for p in BUILT), []), *arguments],
            cwd=str(ROOT), encoding="latin-1", timeout=watchdog.SECONDS,
            env={k: v for k, v in os.environ.items()
                 if k not in ("DISPLAY", "WAYLAND_DISPLAY")})
        children.append(child)
        return child

    yield start
    for child in children:
        hang_up(child)


def hang_up(child):
    """Closes the terminal, ends what ran there as a shell does that loses its
    terminal, and waits for it; pexpect's own close() waits for 0.1 s only."""
    child.ptyproc.fileobj.close()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGHUP)
    watchdog.poll(lambda: not child.isalive())


def test_first_line_says_how_to_leave_and_it_does(make):
    child = make("run")
    assert "Ctrl-A X" in child.readline()
    child.expect_exact("slate> ")
    child.send("echo $((typed))\r")
    child.expect_exact("\n$((typed))\r")
    child.send(LEAVE)
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0


def test_only_where_a_person_types_the_line_is_a_terminal(make):
    child = make("run")
    child.expect_exact("slate> ")
    child.send("pages\r")
    child.expect_exact("\x1b[0;35mK\x1b[0;0m")
    child = make("run", "CMD=pages; poweroff")
    child.expect(pexpect.EOF)
    assert "KKK" in child.before and "\x1b[0;35m" not in child.before


def test_commands_arrive_as_they_were_typed(make):
    child = make("run", "MEM=16", "ICOUNT=1",
                 "CMD=echo $HOME `id` 'a  b' 100% c\\d; poweroff")
    child.expect(pexpect.EOF)
    assert "\n$HOME `id` a  b 100% c" in child.before
    assert re.search(r"Slate: 1\d MiB", child.before)
    child.wait()
    assert child.exitstatus == 0


def test_options_arrive(make):
    child = make("run", "APPEND=ws=inf nonsense=1", "CMD=poweroff")
    child.expect(pexpect.EOF)
    assert "nonsense=1 is not known" in child.before
    assert "option ws" not in child.before


def test_reboot_starts_again(make):
    child = make("run")
    for _ in range(2):
        child.expect_exact("slate> ")
        child.send("reboot\r")
    child.expect_exact("slate> ")
    child.send("poweroff\r")
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0, child.before


def test_run_iso(make, iso):
    child = make("-o", str(iso), "run-iso")
    child.expect_exact("slate> ")
    child.send("poweroff\r")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    for setting in "CMD=ps", "APPEND=ws=inf", "DISK=build/disk.img":
        child = make("-o", str(iso), "run-iso", setting)
        child.expect_exact("use make run for CMD, APPEND and DISK")


def test_a_folder_with_a_blank_and_commas(kernel, tmp_path):
    """QEMU separates with them what follows -initrd, file= and rrfile=."""
    folder = tmp_path / "a b, c"
    folder.mkdir()
    (folder / "tools").symlink_to(ROOT / "tools")
    shutil.copy(kernel, folder)
    shutil.copy(qemu.initrd_of(kernel), folder)
    image = folder / kernel.name

    def tool(*argv, **env):
        return watchdog.run(
            [sys.executable, "-m", *argv], cwd=folder, encoding="utf-8",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, env={**os.environ, **env}).stdout
    said = tool("tools.run.run", str(image), CMD="run ls /etc; poweroff")
    assert "motd" in said and "is not known" not in said, said
    said = tool("tools.run.replay", "record", str(image), CMD="ps")
    assert f"in {folder}/record" in said, said
    said = tool("tools.run.replay", "open", str(image), "--", "-batch")
    assert "kmain (" in said, said


def test_debug_server_waits_for_a_gdb(make):
    child = make("debug-server")
    child.expect(r"target remote (\S+)'")
    stub = child.match.group(1)
    done = execute("gdb", "-nx", "-q", "--batch",
                   "-ex", f"target remote {stub}", "-ex", "hbreak kmain",
                   "-ex", "continue", "-ex", "detach",
                   BUILD / "slate-workshop.elf")
    assert "Breakpoint 1, kmain" in done.stdout, done.stdout + done.stderr
    child.expect_exact("slate> ")
    child.send(LEAVE)
    child.expect(pexpect.EOF)


def test_a_gdb_for_many_processors_comes_first(monkeypatch, tmp_path):
    """On Debian it comes with a gdb, which on ARM does not support the i386."""
    monkeypatch.delenv("GDB", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in "gdb", "gdb-multiarch":
        (tmp_path / name).touch(0o755)
        assert debug.find_gdb() == name


def editor(name):
    """A file of the editor, for the folder that is tested, not for build/."""
    text = (ROOT / ".vscode" / name).read_text("utf-8")
    return json.loads(re.sub(
        r"(\$\{workspaceFolder\}/)?build/debug",
        lambda m: f"{BUILD if m[1] else BUILD_NAME}/debug", text))


def test_an_editor_steps_in_the_kernel(make):
    """What the C++ extension of VS Code does for F5 and F10: its task, and its
    commands to GDB, in their order."""
    launch = editor("launch.json")["configurations"][0]
    task = next(task for task in editor("tasks.json")["tasks"]
                if task["label"] == launch["preLaunchTask"])
    child = make(*task["command"].split()[1:])
    child.expect(task["problemMatcher"]["background"]["endsPattern"])
    gdb = pexpect.spawn(launch["miDebuggerPath"],
                        ["-nx", "-q", "--interpreter=mi2"], cwd="/",
                        encoding="utf-8", timeout=watchdog.SECONDS)
    here, program = (launch[key].replace("${workspaceFolder}", str(ROOT))
                     for key in ("cwd", "program"))
    for command in (
            *(c["text"].replace("${workspaceFolder}", str(ROOT))
              for c in launch["setupCommands"]),
            f'-environment-cd "{here}"', f'-file-exec-and-symbols "{program}"',
            f"-target-select remote {launch['miDebuggerServerAddress']}"):
        gdb.sendline(command)
        gdb.expect(r"\n\^(\w+)")
        assert gdb.match.group(1) in ("done", "connected"), gdb.before
    lines = []
    for command in "-exec-continue", "-exec-next":
        gdb.sendline(command)
        gdb.expect(r'\*stopped,.*func="kmain".*line="(\d+)"')
        lines.append(int(gdb.match.group(1)))
    assert lines[0] < lines[1]
    gdb.sendline("kill")
    child.expect(pexpect.EOF)
    gdb.close()


def test_an_editor_finds_a_kernel_in_another_folder(tmp_path):
    """As in the hand-out for several processors, whose kernel is in build/smp.
    The editor opens the link in the folder of the socket."""
    (tmp_path / "smp").mkdir()
    kernel = tmp_path / "smp/slate.elf"
    kernel.touch()
    debug.known_stub(str(kernel), f"{tmp_path}/debug.sock")
    assert (tmp_path / "debugged.elf").samefile(kernel)


def test_a_stub_that_is_no_socket_is_refused(make, tmp_path):
    file = tmp_path / "stub"
    file.write_text("mine", encoding="utf-8")
    child = make("debug-server", f"STUB={file}")
    child.expect_exact(f"STUB: {file} is there, and no socket")
    child.expect(pexpect.EOF)
    assert file.read_text(encoding="utf-8") == "mine"
    child = make("debug-server", f"STUB={tmp_path}/{'long' * 30}")
    child.expect("STUB: .*too long")


@pytest.mark.parametrize("target, ready", [
    ("run", "slate> "), ("debug-server", "target remote ")])
def test_a_closed_terminal_leaves_no_files(make, monkeypatch, tmp_path, target,
                                           ready):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    child = make(target)
    child.expect_exact(ready)
    assert list(tmp_path.iterdir())
    hang_up(child)
    watchdog.poll(lambda: not list(tmp_path.iterdir()))


# ---- a kernel that crashes -------------------------------------------------

@pytest.mark.parametrize("commands", ["panic", "panic; poweroff",
                                      "panic;echo poweroff"])
def test_a_panic_ends_a_run_that_nobody_watches(make, kernel, commands):
    """Nobody types at a panic's prompt if the run was to end by itself, or
    without a terminal."""
    done = execute(sys.executable, "-m", "tools.run.run", kernel, CMD=commands)
    assert done.returncode == 9, done.stderr
    assert "panic: " in done.stdout and "slate!>" not in done.stdout
    child = make("run", f"CMD={commands}")
    if commands.endswith("; poweroff"):
        child.expect(pexpect.EOF)
        child.wait()
        assert child.exitstatus != 0 and "slate!>" not in child.before
    else:
        child.expect_exact("slate!> ")
        child.send("poweroff\r")
        child.expect(pexpect.EOF)


CRASH = """
bits 32
org 0x100000
header: dd 0x1badb002, 0x10000, -(0x1badb002 + 0x10000)
        dd header, header, end, end, start
start:  lidt [nothing]
        int3
nothing: dd 0, 0
end:
"""


@pytest.fixture(scope="module")
def crasher(shared_path):
    """The smallest multiboot kernel that falls into a triple fault."""
    (shared_path / "crash.asm").write_text(CRASH, encoding="utf-8")
    subprocess.run(["nasm", "-f", "bin", "-o", "crash.elf", "crash.asm"],
                   cwd=shared_path, check=True)
    return shared_path / "crash.elf"


def test_a_good_run_ends_and_each_verify_holds():
    typed, end = {"event": "command", "name": "verify"}, {"event": "poweroff"}
    for text, events, good in (
            ("files: every invariant holds", [typed, end], True),
            ("files: every invariant holds", [typed], False),
            ("every stamp was right, every invariant holds",
             [typed, end], False)):
        result = qemu.Result([], 0, text, events)
        if good:
            assert result.good() is result
        else:
            with pytest.raises(AssertionError, match="---- serial line"):
                result.good()


def test_triple_fault_is_told_from_power_off(crasher):
    run = qemu.run(crasher)
    assert run.status == 0 and run.problem.startswith("triple fault")
    assert run.log.rstrip().endswith("Triple fault")


def test_runner_reports_a_triple_fault(crasher):
    done = execute(sys.executable, "-m", "tools.run.run", crasher)
    assert done.returncode == 1
    assert "Triple fault" in done.stderr


def test_kvm_is_used_on_request_or_refused(make):
    argv = qemu.command([], kvm=True)
    assert argv[argv.index("-accel") + 1] == "kvm"
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        pytest.skip("KVM would be used here, at any speed")
    child = make("run", "KVM=1")
    child.expect_exact("make run: KVM=1 needs read and write access to "
                       "/dev/kvm")
