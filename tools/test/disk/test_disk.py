"""Disks: images made by e2fsprogs, QEMU's IDE disks, the ATA driver in ring 3
and programs that use it. Runs with a disk are not counted (docs/testing.md)."""
# Tests: drivers/servers/ata/main.c, user/lib/block.c

import re
import struct
import sys

import pytest

from conftest import BUILD, ROOT, execute
from tools.run import disk, qemu, watchdog

pytestmark = pytest.mark.workshop

WORDS = 128  # of 32 bits in a sector


def contents(first, sectors, seed):
    """The bytes that `blocktest fill` writes."""
    return b"".join(
        struct.pack("<I", (s * 2654435761 + j * 40503 + seed) % 2**32)
        for s in range(first, first + sectors) for j in range(WORDS))


def sectors(path, first, count):
    with open(path, "rb") as f:
        f.seek(first * 512)
        return f.read(count * 512)


def exits(machine):
    """How the blocktests of a machine ended up to now, in order."""
    return [(e["exit"], e["signal"]) for e in machine.events("run")
            if e["name"] == "blocktest"]


def ended(machine):
    """The same, a moment later."""
    machine.command("run sleep 0.1")
    return exits(machine)


def start(machine, options=""):
    """Starts the driver; returns its pid."""
    text = machine.command(f"run -b -s ata {options}")
    assert "ata: pid " in text, text
    return text.split("pid ")[1].split()[0]


def driver(machine):
    """The driver's pid."""
    before, _ = machine.command("run ps").split(" ata")
    return before.splitlines()[-1].split()[0]


@pytest.fixture
def image(tmp_path):
    disk.blank(tmp_path / "disk.img", 8)
    return tmp_path / "disk.img"


@pytest.fixture
def driven(boot):
    """driven(disk, …): a machine with these disks and the driver."""
    def begin(*disks, options=""):
        machine = boot(disks=disks)
        machine.command("run -b -s names")
        start(machine, options)
        return machine
    return begin


def blocktest(machine, words, status=0):
    """Runs blocktest; returns its output."""
    text = machine.command(f"run -p blocktest {words}")
    assert exits(machine)[-1] == (status, 0), \
        f"{text}\n{machine.events()}"
    return text


# ---- the driver ------------------------------------------------------------

def test_written_sectors_are_read_back(driven, image, tmp_path):
    slave = tmp_path / "slave.img"
    disk.blank(slave, 1)
    machine = driven(image, slave)
    assert "disk 0: 16384 sectors" in blocktest(machine, "info")
    assert blocktest(machine, "edges").count("good: ") == 12
    blocktest(machine, "storm 4 60 1")
    blocktest(machine, "fill 777 200 5")
    blocktest(machine, "check 777 200 5")
    blocktest(machine, "check 777 200 6", 1)
    assert "read 4000 sectors: " in blocktest(machine, "read 0 4000")
    assert "disk 1: 2048 sectors" in blocktest(machine, "-d 1 info")
    blocktest(machine, "-d 1 fill 2000 48 6")
    assert "disk 2: no such device" in blocktest(machine, "-d 2 info", 1)
    assert "errors 0, time-outs 0, out of step 0, lost" in \
        blocktest(machine, "counts")
    machine.cut_power()
    assert sectors(image, 777, 200) == contents(777, 200, 5)
    assert sectors(slave, 2000, 48) == contents(2000, 48, 6)


@pytest.mark.parametrize("disks", [1, 0])
def test_drives_that_are_not_there(driven, image, disks):
    machine = driven(*[image][:disks])
    blocktest(machine, "info", int(disks == 0))
    for number in range(disks, 2):
        assert "no such device" in blocktest(machine, f"-d {number} info", 1)


def test_a_server_is_waited_for_but_not_for_ever(kernel):
    """Without a disk, so this run is counted, and waiting costs no time."""
    now = "run cat /proc/uptime"
    done = qemu.run(kernel, f"run -b -s names; run -p blocktest info; {now}; "
                    f"run -b -s ata; run -p blocktest info; {now}; poweroff",
                    budget=40_000).good()
    assert [e["exit"] for e in done.named["run"]] == [1, 0, 1, 0]
    assert "ata, disk 0: no such file or directory" in done.text
    assert "ata, disk 0: no such device" in done.text
    first, second = (float(t) for t in
                     re.findall(r"(?m)^(\d+\.\d+)\r?$", done.text))
    assert 10 <= first < 11 and second < first + 1


def test_bad_sectors(driven, image):
    """Three tries in the driver, three by the client; then an error, and the
    next request is served. An error that occurs once has no effect."""
    machine = driven(qemu.failing_disk(
        image, {"event": "read_aio", "sector": 100, "errno": 5},
        {"event": "read_aio", "sector": 300, "errno": 5, "once": "on"},
        {"event": "write_aio", "sector": 400, "errno": 5}))
    blocktest(machine, "read 0 100")
    assert "read of 1 sectors from 100: input/output error" in \
        blocktest(machine, "read 100 1", 1)
    assert " errors 9," in blocktest(machine, "counts")
    blocktest(machine, "read 101 100")
    blocktest(machine, "read 290 20")
    assert " errors 10," in blocktest(machine, "counts")
    assert "write of 10 sectors from 400: input/output error" in \
        blocktest(machine, "fill 400 10 3", 1)
    blocktest(machine, "fill 500 10 3")
    assert "time-outs 0, out of step 0," in blocktest(machine, "counts")
    machine.cut_power()
    assert sectors(image, 500, 10) == contents(500, 10, 3)


def test_a_flush_that_fails_is_not_repeated(driven, image):
    """The next flush would succeed without the sectors that the drive has
    dropped."""
    machine = driven(qemu.failing_disk(
        image, {"event": "flush_to_disk", "errno": 5, "once": "on"}))
    assert "flush: input/output error" in blocktest(machine, "fill 9 1 3", 1)
    assert " errors 1," in blocktest(machine, "counts")


def test_a_request_for_which_there_is_no_memory_is_repeated(driven, image):
    """The driver keeps the bytes of its first write in a new buffer."""
    machine = driven(image)
    blocktest(machine, "info")
    machine.command(f"fail page -r 1 -t {driver(machine)}")
    machine.command("run -b -p blocktest fill 9 1 3")
    watchdog.poll(lambda: ended(machine)[1:] or
                  re.search(r"\d\d failed", machine.command("fail")))
    machine.command("fail off")
    assert watchdog.poll(lambda: ended(machine)[1:]) == [(0, 0)]


def test_a_drive_that_hangs_and_recovers(driven, image):
    """The drive does one access a second; the driver waits 100 ms for one."""
    machine = driven({"file": image, "format": "raw",
                      "throttling.iops-total": 1}, options="-t 100 -n slow")
    assert "input/output error" in \
        blocktest(machine, "-n slow read 0 2000", 1)
    assert "time-outs 0," not in blocktest(machine, "-n slow counts")
    machine.qmp.execute("block_set_io_throttle", device="ide0-hd0", bps=0,
                        bps_rd=0, bps_wr=0, iops=0, iops_rd=0, iops_wr=0)
    blocktest(machine, "-n slow read 0 2000 8")


def test_clients_do_not_notice_that_the_driver_dies(driven, image):
    machine = driven(image)
    pid = driver(machine)
    machine.command("run -b -p blocktest storm 3 150 7")
    for kills in range(5):
        machine.command("run sleep 0.03")
        if exits(machine):
            break
        machine.command(f"kill {pid}")
        while f" {pid} running" in machine.command("servers"):
            machine.command("run sleep 0.01")  # a killed task ends when it runs
        pid = start(machine)
    assert kills >= 1
    assert watchdog.poll(lambda: ended(machine)) == [(0, 0)], \
        machine.transcript[-3000:]
    assert "every invariant holds" in machine.command("verify")


def test_flushed_data_survives_a_power_cut(driven, image):
    machine = driven(image)
    blocktest(machine, "fill 5 2000 9")
    machine.send("run -p blocktest storm 1 100000 1\r")
    machine.expect("storm 1 100000 1")
    machine.cut_power()
    assert sectors(image, 1024, 981) == contents(1024, 981, 9)


# ---- images ----------------------------------------------------------------

def test_images_are_made_checked_and_repaired(tmp_path):
    path = tmp_path / "disk.img"
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub/a").write_bytes(b"hello" * 3000)
    disk.make(path, 4, folder, block=1024, inode_size=128, inodes=64)
    disk.check(path)
    assert disk.has_journal(path)
    assert disk.read(path, "/sub/a") == b"hello" * 3000
    disk.write(path, "/b", b"\0\1\2")
    assert disk.read(path, "/b") == b"\0\1\2"
    assert "Inode count:              64" in disk.debugfs(path, "stats")
    with pytest.raises(disk.DiskError, match="/nowhere"):
        disk.read(path, "/nowhere")
    disk.debugfs(path, "clri /b", write=True)
    with pytest.raises(disk.DiskError, match="status 4"):
        disk.check(path)
    disk.repair(path)
    disk.check(path)


def test_an_image_that_cannot_be_made_leaves_nothing(tmp_path):
    with pytest.raises(disk.DiskError, match="mke2fs: "):
        disk.make(tmp_path / "disk.img", 1, options=["-b", "17"])
    with pytest.raises(disk.DiskError, match="is not a folder"):
        disk.make(tmp_path / "disk.img", 1, tmp_path / "none")
    assert not list(tmp_path.iterdir())
    with pytest.raises(disk.DiskError, match="is not a file"):
        disk.check(tmp_path / "disk.img")


def test_a_run_with_a_disk_is_not_counted(kernel, image):
    with pytest.raises(qemu.QemuError, match="cannot be counted"):
        qemu.run(kernel, "poweroff", counted=True, disks=[image])
    with pytest.raises(qemu.DiskMissing, match="make disk"):
        qemu.run(kernel, "poweroff", disks=[image.with_name("none")])


def make(*arguments):
    return execute("make", "--no-print-directory", "-o", BUILD / "slate.elf",
                   "-o", BUILD / "initrd.tar", *arguments)


def test_make_disk_and_make_run(kernel, tmp_path):
    done = make("disk", f"BUILD={tmp_path}", "DISK_MB=3")
    assert done.returncode == 0, done.stderr
    image = tmp_path / "disk.img"
    assert "too small for a journal" in done.stdout
    assert image.stat().st_size == 3 << 20
    assert disk.read(image, "/README") == \
        (ROOT / "user/disk/README").read_bytes()
    done = make("disk", f"BUILD={tmp_path}", "DISK_MB=x")
    assert done.returncode != 0 and "DISK_MB=x is not" in done.stderr
    command = ("run -b -s names; run -b -s ata; run -p blocktest info; "
               "poweroff")
    for settings, said in [({"DISK": str(image)}, "6144 sectors"),
                           ({"DISK": "none"}, "DISK: none is not a file"),
                           ({"DISK": str(image), "ICOUNT": "1"},
                            "cannot be counted")]:
        done = execute(sys.executable, "-m", "tools.run.run", kernel,
                       CMD=command, **settings)
        assert said in done.stdout + done.stderr
        assert (done.returncode == 0) == (said == "6144 sectors")
