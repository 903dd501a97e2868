"""`help 3.4`: its text agrees with the book's table, and its names exist."""
# Tests: kernel/shell/paper.txt, kernel/shell/cmd_help.c

import re

import pytest

from conftest import ROOT
from tools.test.shells import every_command

TEXT = (ROOT / "kernel/shell/paper.txt").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^= (.+)\n((?:(?!=).*\n)+)", TEXT, re.M))
BOOK = {number: (title, places) for number, title, places in re.findall(
    r"^\| (\d[\d.]*) \| (.+?) \| .* \| (.+?) \|$",
    (ROOT / "docs/paper.md").read_text(encoding="utf-8"), re.M)}


def values(body, key):
    """The words after `key` in a section, those of its next lines included."""
    found = re.search(rf"^  {key} +(.*\n(?:   .*\n)*)", body, re.M)
    return " ".join(found.group(1).split()) if found else ""


def test_the_sections_are_those_of_the_book():
    assert list(SECTIONS) == list(BOOK) and len(BOOK) > 30
    for number, body in SECTIONS.items():
        title, places = BOOK[number]
        assert body.split("\n")[0] == title
        assert re.findall(r"[\w/.]+\w", values(body, "source")) == \
            [name for name in re.findall(r"`([^`]+)`", places)], number


@pytest.mark.parametrize("number", SECTIONS)
def test_what_a_section_names_exists(number, cases):
    commands, body = every_command(), SECTIONS[number]
    for line in filter(None, values(body, "commands").split(", ")):
        assert line.split()[0] in commands, line
        if line.startswith("run "):
            assert (ROOT / f"user/bin/{line.split()[1]}.c").exists(), line
    for test in filter(None, values(body, "test").split(", ")):
        assert test in cases, test
    assert all(len(line) < 80 for line in body.split("\n"))


def test_the_command(shell):
    for number, body in SECTIONS.items():
        assert shell.command(f"help {number}") == f"{number} {body}"
    listed = [line.split(None, 1) for line in
              shell.command("help paper").splitlines()]
    assert [tuple(row) for row in listed] == \
        [(number, title) for number, (title, _) in BOOK.items()]
    assert shell.command("help 3.5") == \
        "help: no section 3.5; `help paper` lists them\n"
    assert "no command" in shell.command('help ""')
