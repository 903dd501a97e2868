"""The ext2 server on a disk of a booted machine: e2fsprogs read what programs
write there, and the reverse. Not counted: disks use the host's time. The
core's own tests are in test_ext2.py."""

import re

import pytest

from conftest import long
from tools.run import disk, qemu, watchdog

BIG = bytes(i * 7 % 251 for i in range(300_000))


@pytest.fixture(scope="module")
def folder(shared_path):
    """The files that the disk has from the beginning."""
    source = shared_path / "source"
    (source / "deep" / "er").mkdir(parents=True)
    (source / "deep" / "er" / "big").write_bytes(BIG)
    (source / "hello").write_text("written by mke2fs\n", encoding="utf-8")
    return source


@pytest.fixture(scope="module")
def machine(kernel, folder, shared_path):
    """A machine with an ext2 disk, mounted on /disk, and one of zeroes."""
    images = [shared_path / name for name in "ab"]
    disk.make(images[0], 16, folder)
    disk.blank(images[1], 1)
    with qemu.Machine(kernel, disks=images) as m:
        drive(m)
        m.command("run mkdir /disk")
        serve(m)
        m.images = images
        yield m


def drive(m):
    """Starts the driver, when the machine is up."""
    m.prompt()
    m.command("run -b -s names")
    start_ata(m)


def start_ata(m):
    """The driver ends if the name server is not there yet."""
    def servers():
        m.command("run -b -s ata; run sleep 0.3")
        return m.command("servers")
    watchdog.poll(servers, lambda text: re.search(r"^ata +\d+ running", text,
                                                  re.M))


def wait_for(m, state, path="/disk"):
    """Waits until `mounts` shows the state."""
    m.until("mounts", rf"^{path} +ext2 .* {state}\s*$")


def serve(m, path="/disk"):
    """Starts the server."""
    m.command(f"run -b -p ext2 -v ata 0 {path}")
    wait_for(m, "ok", path)


def sh(m, commands):
    return m.command(f'run sh -c "{commands}"')


def test_files_of_mke2fs_are_read(machine):
    assert "written by mke2fs" in sh(machine, "cat /disk/hello")
    assert f" {len(BIG)} bytes" in sh(machine, "stat /disk/deep/er/big")
    assert "/disk/deep/er/big" in sh(machine, "find /disk")


def test_files_that_programs_write_are_on_the_disk(machine):
    sh(machine, "mkdir /disk/new; echo hello > /disk/new/a; "
                "cat /disk/deep/er/big > /disk/new/copy")
    sh(machine, "ln /disk/new/a /disk/b; mv /disk/new /disk/newer; "
                "rm /disk/hello; sync")
    image = machine.images[0]
    assert disk.read(image, "/newer/a") == b"hello\n"
    assert disk.read(image, "/b") == b"hello\n"
    assert disk.read(image, "/newer/copy") == BIG
    disk.check(image)


def test_a_program_runs_from_the_disk(machine):
    sh(machine, "cat /bin/echo > /disk/echo")
    assert "from a disk" in sh(machine, "/disk/echo from a disk")


def test_errors_reach_the_program(machine):
    said = sh(machine, "mkdir /disk/newer; cat /disk/nothing; "
                       "echo x > /disk/newer")
    for text in ("exists", "no such file", "is a directory"):
        assert text in said, said


def test_wrong_arguments_are_refused(machine):
    words = ("", "ata 1 /disk", "ata 0 /nowhere", "ata 2 /disk")
    said = "".join(machine.command(f"run -p ext2 {w}") for w in words)
    assert "usage: ext2 [-v] SERVER DISK PATH" in said
    assert "ext2: ata, disk 1: not an ext2 file system" in said
    assert "ext2: /nowhere: no such file or directory" in said
    assert "ext2: ata, disk 0: operation not permitted" in \
        sh(machine, "ext2 ata 0 /disk")


def test_a_successor_goes_on(machine):
    """The server dies with changes unwritten; the next one has the synced
    data, and repairs the rest."""
    sh(machine, "echo kept > /disk/kept; sync; echo more > /disk/more")
    pid = re.search(r"ext2\((\d+)\)", machine.command("mounts")).group(1)
    machine.command(f"kill -9 {pid}")
    wait_for(machine, "dead")
    serve(machine)
    assert "kept" in sh(machine, "cat /disk/kept")
    assert "every invariant holds" in machine.command("verify")


def test_unmounted_it_is_clean(machine):
    said = sh(machine, "rm /disk/kept; cat /disk/b > /disk/last")
    said += machine.command("run -p umount /disk")
    if "errors" not in said:
        said += machine.until("run true", "errors")
    assert "errors 0" in said, said
    disk.check(machine.images[0])
    assert disk.read(machine.images[0], "/last") == b"hello\n"
    assert disk.read(machine.images[0], "/deep/er/big") == BIG


# ---- disks that are full or bad ---------------------------------------------

def bad_disk(boot, path):
    """A machine with 120 files in the folder /disk/d, which has two blocks, and
    a script of two; the second blocks of both are bad."""
    source = path / "source"
    (source / "d").mkdir(parents=True)
    for i in range(120):
        (source / "d" / f"file-{i:03}").write_text(f"{i}\n", "utf-8")
    (source / "script").write_text("echo begun\n#".ljust(1020) +
                                   "\necho whole\n", "utf-8")
    disk.make(path / "disk.img", 2, source, block=1024)
    bad = [disk.debugfs(path / "disk.img", f"bmap {name} 1").split()[-1]
           for name in ("/d", "/script")]
    m = boot(wait=False, disks=[qemu.failing_disk(path / "disk.img", *(
        {"event": "read_aio", "sector": int(block) * 2 + half, "errno": 5}
        for block in bad for half in (0, 1)))])
    drive(m)
    m.command("run mkdir /disk")
    serve(m)
    return m


def test_what_cannot_be_read_is_no_end(boot, tmp_path):
    """Programs that read a directory or a file whose second half is bad do what
    they can, say so once, and fail. The shell runs no command on some of the
    matches, and no half of a line; its Tab does not take a name that it knows
    for the only one."""
    m = bad_disk(boot, tmp_path)
    error = "input/output error\n"
    said = m.command("run ls /disk/d")
    known = sorted(re.findall(r"file-\d+", said))
    assert len(known) == 62, said  # all that the first block holds
    assert f"ls: /disk/d: {error}" in said and "exit code 1" in said
    said = m.command("run find /disk/d")
    assert said.count("/file-") == len(known) and \
        f"find: /disk/d: {error}" in said and "exit code 1" in said, said
    said = m.command("run walk /disk/d")
    assert f"walk: /disk/d: {error}" in said and " 1 failures" in said, said
    assert "exit code 1" in said
    assert sh(m, "cp /disk/d/* /tmp && echo ON") == \
        f"sh: /disk/d/*: {error}sh: exit code 1\n"
    assert sh(m, "ls /tmp; echo /disk/x*") == "/disk/x*\n"
    assert sh(m, "PATH=/disk/d; absent") == \
        f"sh: absent: {error}sh: exit code 126\n"
    assert sh(m, "sh /disk/script && echo ON") == \
        f"begun\nsh: /disk/script: {error}sh: exit code 128\n"
    m.program("sh")
    said = qemu.plain(m.program(f"echo /disk/d/{known[0]}\tX"))
    assert f"\n/disk/d/{known[0]}X" in said
    m.command("exit")
    assert m.command("run rm -r /disk/d") == \
        f"rm: /disk/d: {error}rm: exit code 1\n"
    assert "file-" not in m.command("run ls /disk/d")


@pytest.fixture(scope="module")
def full(kernel, shared_path):
    """A machine with a disk that has no free block."""
    disk.make(shared_path / "full.img", 1)
    with qemu.Machine(kernel, disks=[shared_path / "full.img"]) as m:
        drive(m)
        m.command("run mkdir /disk")
        serve(m)
        assert "cat: standard output: no space left" in \
            sh(m, "cat /dev/zero > /disk/full")
        yield m


@pytest.mark.parametrize("line", [
    "cat /etc/motd", "df", "echo one", "file /", "find /bin",
    "grep Slate /etc/motd", "grep -c Slate /etc/motd", "head -1 /etc/motd",
    "kmastat", "ls /", "ls -l /", "mount", "sort /etc/motd", "stat /", "uptime",
    "walk /bin", "wc /etc/motd", "export", "help", "pwd", "pwd | cat",
    "pwd || true;sort /etc/servers"])
def test_output_that_a_full_disk_refuses(full, line):
    """Each program says it, and fails, so that `&&` runs nothing; and so do the
    commands of the shell itself."""
    program = line.split(";")[-1].split("|")[-1].split()[0]
    who = f"sh: {program}" if program in ("export", "help", "pwd") else program
    said = sh(full, f"{line} > /disk/out && echo ON")
    assert said.splitlines()[-2] == f"{who}: standard output: no space left"
    assert said.splitlines()[-1] == \
        f"sh: exit code {2 if program == 'grep' else 1}"
    assert "ON" not in said
    assert sh(full, "wc -c < /disk/out") == "       0\n"


def test_the_shell_forgets_an_error_of_its_output(full):
    assert sh(full, "pwd > /disk/out; pwd && echo 1 | cat") == \
        "sh: pwd: standard output: no space left\n/\n1\n"
    assert sh(full, "find / | head -1 && ls / | true && echo 2") == "/\n2\n"


@long
def test_system_calls_do_on_a_disk_what_they_do_in_memory(boot, workshop,
                                                          tmp_path):
    """The tests of files work in /tmp."""
    disk.make(tmp_path / "disk.img", 16)
    machine = boot(wait=False, image=workshop,
                   disks=[tmp_path / "disk.img"])
    drive(machine)
    serve(machine, "/tmp")
    said = machine.command("run usertests file tree")
    assert re.search(r"# \d\d passed, 0 failed", said), said
    machine.command("run -p umount /tmp")
    disk.check(tmp_path / "disk.img")
