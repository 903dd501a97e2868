"""File systems that programs serve, from the kernel's shell: its output, the
cost of inodes, and servers that hang or die.

While a machine waits for its next command its time goes on, as far as the host
lets it. So what has to happen within a time is one line of commands."""
# Tests: user/servers/memfs.c, user/servers/hellofs.c
# Tests: user/lib/fs_server.c, user/lib/tree.c, user/lib/mounts.c
# Tests: kernel/fs/userfs.c
# Tests: kernel/fs/userfs_ops.c, kernel/syscall/mount.c

import re

import pytest

from conftest import archive
from tools.run import qemu
from tools.run.qemu import json_lines


# ---- without a prompt ------------------------------------------------------

def test_tests_of_files_pass_on_a_file_server(workshop):
    """The tests of files, in a file system that a program serves. (A first run
    of one test makes the server allocate its memory, which that run takes for
    a leak.)"""
    result = qemu.run(workshop, "run -b memfs /tmp outer;run sleep 0.1;"
                      "run -p init usertests file.exhaustion;"
                      "run -p init usertests file tree exec;"
                      "run kenbus -u 2 -i 1;"
                      "run umount /tmp;verify;poweroff", memory="64",
                      budget=100_000).good()
    done = result.named["user-tests"][-1]
    assert done["passed"] > 40 and done["failed"] == 0, result.explain()
    assert "umount:" not in result.text, result.explain()


def test_reap_all_asks_for_unused_inodes_first(kernel):
    """`reap -a inode` drops them, as memory pressure does; a plain reap, or one
    of another cache, does not."""
    result = qemu.run(kernel, "run walk /bin; reap; reap -a file; inodes; "
                      "reap -a inode; inodes; verify; poweroff").good()
    unused = [int(n) for n in re.findall(r"(\d+) of them unused", result.text)]
    assert unused[0] > 20 and unused[1] == 0, result.explain()
    assert f"\nunused inodes freed first: {unused[0]}" in result.text


# ---- at the prompt ---------------------------------------------------------

# Counted, so that waiting costs no time.

def mounts(machine):
    return {r["path"]: r for r in json_lines(machine.command("mounts -j"))}


def inodes(machine):
    return next(r for r in json_lines(machine.command("kmastat -j inode"))
                if r.get("cache") == "inode")


def serve(machine, command):
    """Starts a server in the background and waits until it is mounted."""
    machine.command(f"run -b {command}")
    for _ in range(50):
        machine.command("run sleep 0.01")
        if command.split()[-1] in mounts(machine):
            return
    raise AssertionError(machine.command("mounts"))


@pytest.mark.parametrize("name, shown", [
    ("m m", r"m\040m"), ("m\nm", r"m\012m"), ("m\x1b[2J\xe9", r"m\033[2J\351"),
    (r"m\040m", r"m\134040m"), ("m?", "m?")])
def test_the_name_of_a_mount_is_one_column(boot, kernel, tmp_path, name, shown):
    """Whatever is in it. df and `umount -f` find the mount by what they
    read."""
    (tmp_path / "empty").mkdir()
    machine = boot(counted=True, initrd=archive(
        kernel, tmp_path, {f"tmp/{name}": tmp_path / "empty"}))
    machine.command("run -b -p sh -c 'memfs /tmp/m*'")
    machine.command("run sleep 0.1")
    assert set(mounts(machine)) == {"/", "/proc", f"/tmp/{name}"}
    head, *rows = re.sub(r"(?m)^(/\S+)\n ", r"\1 ",  # a long path
                         machine.command("mounts")).splitlines()
    assert [row.split()[0] for row in rows] == ["/", "/proc", f"/tmp/{shown}"]
    assert {len(row.split()) for row in rows} == {len(head.split())}
    assert machine.command("run mount").splitlines()[-1] == \
        f"mem      /tmp/{shown}"
    rows = machine.command("run df").splitlines()
    assert rows[-1].startswith("mem "), rows
    assert rows[-1].endswith(" /tmp/" + re.sub("[^ -~]", "?", name)), rows
    assert machine.command(f"umount -f /tmp/{shown}") == ""
    assert set(mounts(machine)) == {"/", "/proc"}
    assert "every invariant holds" in machine.command("verify")


def test_a_silent_server(boot, workshop):
    """Neither the shell nor `sync` waits for it."""
    machine = boot(image=workshop, counted=True)
    machine.command("run mkdir /tmp/s")
    serve(machine, "mounttest -s /tmp/s")
    said = machine.command("run -b cat /tmp/s/f; run sleep 0.01; "
                           "run cat /proc/uptime; mounts; run -p sync; "
                           "run /tmp/s/program; run cat /proc/uptime")
    assert re.search(r"(?m)^/tmp/s .* ok$", said), said
    assert "is on a file server" in said
    first, *_, last = re.findall(r"(?m)^\d+\.\d\d$", said)
    assert float(last) - float(first) < 1
    machine.command(f"run kill -9 {mounts(machine)['/tmp/s']['server']}")
    machine.command("run sleep 6")  # the reader gives up by itself
    assert machine.command("run umount /tmp/s") == ""
    assert "every invariant holds" in machine.command("verify")


def test_a_server_on_bin_does_not_stop_the_shell(boot, workshop):
    """It replies to everything but FS_LOOKUP, for which a program waits with
    /bin locked. The shell waits for neither, in `run` or for Tab."""
    machine = boot(image=workshop, counted=True)
    machine.command("run cp /bin/sleep /tmp/sleep")
    machine.command("run -b sh -c 'sleep 0.2; ls'; "
                    "run -b -p mounttest -l /bin; run /tmp/sleep 0.5")
    assert mounts(machine)["/bin"]["state"] == "ok"
    assert "/bin/ls is on a file server" in machine.command("run ls")
    machine.send("run /bin/l\t\x15\r")
    machine.prompt()
    machine.send("run l\t\x15\r")
    machine.prompt()
    for path in ("/b", "/proc", "/"):
        assert "no server's files" in machine.command(f"umount -f {path}")
    assert machine.command("umount -f /bin") == ""
    assert "/bin" not in mounts(machine)
    assert "cat" in machine.command("run ls /bin")
    assert "every invariant holds" in machine.command("verify")


def test_silent_servers_share_one_deadline(boot, workshop):
    """df waits five seconds, however many of them do not reply."""
    machine = boot(image=workshop, counted=True)
    for name in "abc":
        machine.command(f"run mkdir /tmp/{name}")
        serve(machine, f"mounttest -s /tmp/{name}")
        machine.command(f"run -b cat /tmp/{name}/f")
    machine.command("run sleep 0.1")
    now = "run cat /proc/uptime"
    said = machine.command(f"{now}; run df; {now}").splitlines()
    assert re.match(r"(?m)^ram .* /$", said[2]), said
    for name in "abc":
        assert f"df: /tmp/{name}: its server does not reply" in said
    assert 5 <= float(said[-1]) - float(said[0]) < 6
    assert " df\n" not in machine.command("ps")
    assert "every invariant holds" in machine.command("verify")


def test_a_forced_unmount(boot, workshop):
    """One program waits for the silent server, one has its directory open. The
    directory is free at once; what the mount needed is freed with its last
    user."""
    machine = boot(image=workshop, counted=True)
    machine.command("run mkdir /tmp/s")
    machine.command("run sh -c 'echo below > /tmp/s/own'")
    serve(machine, "-p mounttest -s /tmp/s")
    server = mounts(machine)["/tmp/s"]["server"]
    said = machine.command(
        "run -b sh -c 'cd /tmp/s; sleep 1; ls; ls .. > /tmp/up'; "
        "run -b cat /tmp/s/f; run sleep 0.1; run -p umount /tmp/s; "
        "echo; umount -f /tmp/s; run cat /tmp/s/own; echo; run sleep 2")
    refused, after, later = said.split("\n\n")
    assert "in use" in refused
    assert after == "below"
    assert "input/output error" in later
    assert "every invariant holds" in machine.command("verify")
    serve(machine, "-p memfs /tmp/s")
    machine.command(f"run -p kill -9 {server}")
    machine.command("run sleep 0.1")
    assert "umount:" not in machine.command("run -p umount /tmp/s")
    left = json_lines(machine.command("kmastat -j userfs"))[0]
    assert left["inuse"] == 0
    assert "every invariant holds" in machine.command("verify")


# ---- one machine for several tests -------------------------------------------

# The machine uses a whole processor while it waits for input, so its tests come
# last.

@pytest.fixture(scope="module")
def machine(kernel):
    with qemu.Machine(kernel, counted=True) as machine:
        machine.prompt()
        machine.command("run mkdir /tmp/m")
        yield machine


def test_mounts_lists_servers(machine):
    serve(machine, "memfs /tmp/m")
    machine.command("run sh -c 'echo hello > /tmp/m/f'")
    shown = mounts(machine)
    assert set(shown) == {"/", "/proc", "/tmp/m"}
    mine = shown["/tmp/m"]
    assert (mine["kind"], mine["state"]) == ("mem", "ok")
    row = machine.command("run df /tmp/m").splitlines()[-1].split()
    assert int(row[2]) - int(row[3]) == 6
    assert mine["servers"] == 1 and mine["requests"] > 5
    assert "server" not in shown["/"]
    row = machine.command("mounts").splitlines()[-1].split()
    assert row[0] == "/tmp/m" and row[-1] == "ok"
    assert row[-2] == f"memfs({mine['server']})"


def test_the_inode_cache_grows_and_shrinks(machine):
    for folder in "abc":
        files = "".join(f"echo>{n};" for n in range(24))
        machine.command(f"run mkdir /tmp/m/{folder}")
        machine.command(f"run sh -c 'cd /tmp/m/{folder};{files}'")
    machine.command("reap -a inode")
    before = inodes(machine)
    assert "77" in machine.command("run sh -c 'find /tmp/m | wc -l'")
    machine.command("run ls -l /tmp/m /tmp/m/a /tmp/m/b /tmp/m/c")
    grown = inodes(machine)
    assert grown["inuse"] >= before["inuse"] + 72
    assert grown["mem"] > before["mem"]
    assert mounts(machine)["/tmp/m"]["inodes"] >= 73
    machine.command("reap -a inode")
    after = inodes(machine)
    assert after["inuse"] <= before["inuse"] + 2
    assert after["mem"] < grown["mem"]
    assert mounts(machine)["/tmp/m"]["inodes"] == 1


def test_a_dead_server(machine):
    machine.kill(f"-KILL {mounts(machine)['/tmp/m']['server']}")
    assert mounts(machine)["/tmp/m"]["state"] == "dead"
    said = machine.command("run cat /tmp/m/f")
    assert "input/output error" in said
    assert machine.command("run umount /tmp/m") == ""
    assert "/tmp/m" not in mounts(machine)


def test_a_mount_belongs_to_its_session(machine):
    """Programs of the shell's session cannot remove what a task outside has
    mounted, nor succeed its server."""
    serve(machine, "-p memfs /tmp/m")
    refused = "umount: /tmp/m: another session mounted it; at slate>: " \
        "run -p umount /tmp/m"
    assert "mount: no server is registered as nosuch\n" in \
        machine.command("run mount nosuch /tmp/m")
    assert refused in machine.command("run umount /tmp/m")
    machine.kill(f"-KILL {mounts(machine)['/tmp/m']['server']}")
    assert mounts(machine)["/tmp/m"]["state"] == "dead"
    assert "not permitted" in machine.command("run memfs /tmp/m")
    assert mounts(machine)["/tmp/m"]["state"] == "dead"
    assert refused in machine.command("run umount /tmp/m")
    machine.command("run -b -p memfs /tmp/m")
    machine.command("run sleep 0.1")
    assert mounts(machine)["/tmp/m"]["servers"] == 2
    assert "umount:" not in machine.command("run -p umount /tmp/m")
    assert "/tmp/m" not in mounts(machine)
