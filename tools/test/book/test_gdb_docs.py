"""The book's transcripts of GDB sessions agree with GDB's output."""

import re

import pytest

from conftest import ROOT
from tools.test import sessions

pytestmark = pytest.mark.plain  # the compiler inlines otherwise in others

PAGES = [p for p in sorted((ROOT / "docs").glob("*.md"))
         if sessions.blocks(p.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_transcripts(kernel, page):
    """To update the transcripts, run tools/test/sessions.py."""
    wrong = sessions.differences(kernel, page.read_text(encoding="utf-8"))
    for command, said, says in wrong:
        print(f"---- {page.name}: {command}", *said, "---- but GDB says",
              *says, sep="\n")
    assert not wrong, f"{len(wrong)} answers in {page.name} are other ones"


def test_a_wrong_answer_is_seen(kernel):
    """Wrong by a number, by an extra line, by a missing one."""
    page = (ROOT / "docs/gdb.md").read_text(encoding="utf-8")
    stop = next(b for b in sessions.blocks(page) if b.name == "stop")
    text = page[page.rindex("```gdb", 0, stop.start):stop.end] + "```\n"
    assert not sessions.differences(kernel, text)
    worse = text.replace("object 3 of cache", "object 4 of cache")
    worse = re.sub(r"^#0 .*\n", "", worse, flags=re.M)
    assert worse != text
    assert [c for c, *_ in sessions.differences(kernel, worse)] == \
        ["bt 1", "slate whatis $box->cache_freelist->slab_head"]


def test_every_command_has_its_row():
    """The chapter's table of all commands is complete."""
    page = (ROOT / "docs/gdb.md").read_text("utf-8").split("## All commands")[1]
    told = set(re.findall(r"`slate (\w+)`", page))
    have = set()
    for folder in "tools/gdb", "tools/replay":
        for path in (ROOT / folder).glob("*.py"):
            have |= set(re.findall(r'^    """slate (\w+)',
                                   path.read_text("utf-8"), re.M))
    assert len(have) == 5 and have <= told, have ^ told
