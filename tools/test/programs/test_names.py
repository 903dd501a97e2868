"""The name server keeps each name for its owner: quotas, names that only
servers can look up, and which program may be the name server."""
# Tests: user/servers/names.c, user/tests/nametest.c

import re

import pytest

from tools.run import disk, qemu

pytestmark = pytest.mark.workshop

REFUSED = "operation not permitted"


def said(kernel, commands, **arguments):
    """What the commands print after a name server, task 4, has begun."""
    run = qemu.run(kernel, f"run -b -s names; run sleep 1; {commands}; "
                   "poweroff",
                   budget=20_000, **arguments).good()
    return qemu.plain(run.text)


def test_a_servers_name_is_neither_removed_nor_replaced(kernel):
    text = said(kernel, "run -b -s rtc; run sleep 1; run nametest steal rtc; "
                "run date")
    assert f"remove: {REFUSED}\nregister: {REFUSED}\n" in text, text
    assert re.search(r"^20\d\d-", text, re.M), text


def test_a_name_of_the_manifest_is_for_servers(kernel):
    """Before its server has started, and after that has died (task 7)."""
    text = said(kernel, "run nametest own rtc; run -b -s rtc; run sleep 1; "
                "kill 7; run nametest own rtc; run -b -p nametest own rtc; "
                "run sleep 1")
    assert re.findall(r"^own: (.*)$", text, re.M) == \
        [REFUSED, REFUSED, "done"], text


def test_a_client_goes_on_with_a_server_of_the_same_session(kernel):
    """The server of a disk, task 7, dies at work, and a program of a session
    takes its name, for a disk of the same size. It gets no sector: its disk,
    the file of a program, still runs."""
    text = said(kernel, "run cp /bin/ls /a; run -b -p ramdisk -n d /a; "
                "run sleep 1; run -b -p blocktest -n d storm 1 9999 1; "
                "run sleep .1; kill 7; run -b ramdisk -n d /bin/ls; "
                "run sleep 1; run -b -p ramdisk -n d /a; run sleep 9; "
                "run ls /home")
    assert "sectors each: all as written\nblocktest: done\n" in text, text
    assert "numbers  poem\n" in text, text


def test_a_session_has_few_names(kernel):
    """16; a server finds room, and takes a name from a session."""
    text = said(kernel, "run -b nametest fill; run sleep 1; "
                "run nametest own more; run -b -p nametest own name-3; "
                "run sleep 1; run -p nametest own name-3; "
                "run nametest steal name-4; run nametest steal name-3")
    assert "16 names, then: no space left\n" in text, text
    assert re.findall(r"^own: (.*)$", text, re.M) == \
        ["no space left", "done", "exists already"], text
    assert re.findall(r"^(?:remove|register): (.*)$", text, re.M) == \
        ["done", "done", REFUSED, "exists already"], text


def test_only_servers_find_the_disk(kernel, tmp_path):
    disk.make(tmp_path / "disk.img", 1)
    text = said(kernel, "run -b -s ata; run sleep 1; run nametest find ata; "
                "run -p nametest find ata; run -p blocktest info",
                disks=[tmp_path / "disk.img"])
    assert re.findall(r"^find: (.*)$", text, re.M) == [REFUSED, "done"], text
    assert "2048 sectors" in text, text


def test_only_its_grant_makes_a_name_server(kernel):
    """Also after the name server was killed."""
    text = said(kernel, "run nametest serve; kill 4; run nametest serve; "
                "run nametest find x; run -p nametest serve")
    assert re.findall(r"^serve: (.*)$", text, re.M) == \
        [REFUSED, REFUSED, "done"], text
    assert "find: no such file or directory\n" in text, text
