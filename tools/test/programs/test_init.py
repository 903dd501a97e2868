"""init keeps servers running: order, deaths, names, errors in the manifest.
Counted runs: a server dies at the same instruction each time.
"""
# Tests: user/servers/init/*.c, user/servers/names.c, user/lib/names.c

import re

import pytest

from conftest import archive
from tools.run import qemu


def session(kernel, script, start="", **options):
    """A session of init whose program is `sh -c script`."""
    return qemu.run(
        kernel, f"run -p init sh -c '{script}'; verify; poweroff",
        append=f"start={start}" if start else "", **options).good()


def servers(text):
    """The rows of /proc/servers: {name: pid of its program, or 0}."""
    rows = re.findall(r"^(\w+) +(\d+|-) (running|taken|free|-) ", text, re.M)
    return {name: 0 if pid == "-" else int(pid) for name, pid, _ in rows}


def deaths(result, name):
    return [e for e in result.named.get("server-ended", [])
            if e["name"] == name]


def test_names_runs_and_what_start_asks_for(kernel):
    running = servers(session(kernel, "cat /proc/servers", "uart,rtc",
                              extra=["-serial", "null"]).text)
    assert running["names"] and running["rtc"] and running["uart"]
    assert not running["ata"]
    # In the order of the manifest, each when those it needs are ready.
    assert running["names"] < running["rtc"] < running["uart"]


def test_nothing_is_left_of_a_session(kernel):
    counts = "kmastat -j task; kmastat -j port; kmastat -j file"
    result = qemu.run(
        kernel, f"run -p init true; echo -; {counts}; echo -; run -p init sh "
        f"-c 'sleep 100 &'; echo -; {counts}; poweroff",
        append="start=rtc").good()
    _, before, _, after = re.split(r"(?m)^-\r?$", result.text)
    inuse = [re.findall(r'"cache":.*?"inuse":(\d+)', part)
             for part in (before, after)]
    assert inuse[0] == inuse[1] and len(inuse[0]) == 3, result.explain()


def ended_by_hand(kernel, pid):
    """The kernel's shell kills a server of a session that runs."""
    return qemu.run(
        kernel, "run -b -p init sh -c 'sleep 2; date'; run sleep 1; "
        f"kill -9 {pid}; run sleep 2; poweroff", append="start=rtc").good()


def test_a_server_that_is_killed_is_started_again(kernel):
    result = ended_by_hand(kernel, 7)
    assert "init: rtc was killed (9); restarted" in result.text
    assert "2020-01-01 00:00:02" in result.text, result.explain()
    assert [d["starts"] for d in deaths(result, "rtc")] == [1]


def test_the_name_server_too_and_names_are_published_anew(kernel):
    result = ended_by_hand(kernel, 6)
    assert len(deaths(result, "names")) == 1, result.explain()
    assert len(deaths(result, "rtc")) == 1, result.explain()
    assert "2020-01-01 00:00:02" in result.text, result.explain()


def test_one_that_cannot_be_forked_is_not_waited_for(workshop):
    """init tries again to start this server while the session runs."""
    result = qemu.run(
        workshop, "fail slab 2 -c task; run -p init sh -c 'sleep 1; "
        "cat /proc/servers'; verify; poweroff", append="start=rtc").good()
    running = servers(result.text)
    assert running["names"] and running["rtc"], result.explain()
    assert "not ready" not in result.text


def test_one_that_cannot_work_is_tried_less_and_less_and_given_up(workshop):
    # There is no /disk.img for it.
    result = session(workshop, "sleep 60; date", "ramdisk,rtc", budget=100_000)
    times = deaths(result, "ramdisk")
    assert len(times) == 25, result.explain()
    assert "init: ramdisk ended with status 1; not restarted, because it " \
        "dies too often" in result.text
    assert "2020-01-01 00:0" in result.text  # the others work on


def test_a_driver_without_its_device_is_not_tried_again(kernel):
    result = session(kernel, "sleep 1; cat /proc/servers", "uart")
    assert len(deaths(result, "uart")) == 1, result.explain()
    assert "init: uart ended with status 69; not restarted" in \
        result.text


def test_servers_that_run_before_the_session_are_used(kernel):
    """Nothing dies, and servers that need them start."""
    result = qemu.run(
        kernel, "run -b -s names; run sleep 0; run -b -s rtc; run -p init "
        "sh -c 'date; serial status; sleep 1'; verify; poweroff",
        append="start=rtc,uart", extra=["-serial", "null"]).good()
    assert "server-ended" not in result.named, result.explain()
    for name in ("names", "rtc"):
        assert f"init: {name} was started before this session" in result.text
    assert re.search(r"^20\d\d-", result.text, re.M), result.explain()
    assert "serial: " not in result.text, result.explain()


@pytest.mark.parametrize("start, says", [
    ("nothing", "init: there is no server nothing"),
    ("rtc,,names", None),
    ("ext2,nothing", "init: there is no server nothing"),
])
def test_wrong_start(kernel, start, says):
    text = session(kernel, "echo it-runs", start).text
    assert "\nit-runs" in text
    assert says is None or says in text


def test_without_privilege_there_are_no_drivers(kernel):
    result = qemu.run(kernel, "run init cat /proc/servers; poweroff",
                      append="start=rtc").good()
    assert not servers(result.text)["rtc"], result.explain()
    assert not servers(result.text)["names"], result.explain()
    assert "names" in {e["name"] for e in result.named["server-ended"]}


def test_a_stanza_with_too_many_words_is_not_used(kernel, tmp_path):
    manifest = (b"server names\n program /sbin/names\n"
                b"server long\n program /bin/echo 1 2 3 4 5 6 7 8\n")
    text = session(kernel, "sleep 1", "long", initrd=archive(
        kernel, tmp_path, {"etc/servers": manifest})).text
    assert "line 3: server long: too many arguments" in text, text
    assert "\n1 2 3" not in text.replace("\r", ""), text
