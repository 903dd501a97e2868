"""The output of programs: ASCII only, which the screen can show, and no line of
a usage or of the shell's help that a screen of 80 columns must break."""
# Tests: user/bin/sh/builtin.c, user/lib/err.c

import re
import subprocess

import pytest

from conftest import BUILD, ROOT

COLUMNS = 80

# A string in a program's data: text, maybe in UTF-8, up to its NUL.
TEXT = re.compile(rb"[\t\n\x1b\x20-\x7e\x80-\xff]{4,}(?=\0)")
LITERALS = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'


def programs():
    return [p for folder in ("bin", "sbin")
            for p in sorted((BUILD / "user" / folder).glob("*"))
            if p.read_bytes()[:4] == b"\x7fELF" and p.suffix == ""]


def strings(program, folder):
    """The strings in a program's sections with data."""
    found = []
    for section in (".rodata", ".data"):
        subprocess.run(["objcopy", "-O", "binary", "-j", section, program,
                        folder / "section"], check=True)
        found += TEXT.findall((folder / "section").read_bytes())
    return found


def is_foreign(text):
    """Whether it is text with characters beyond ASCII, and no number."""
    try:
        return any(ord(c) > 126 for c in text.decode())
    except UnicodeDecodeError:
        return False


@pytest.mark.plain
def test_programs_print_ascii(workshop, tmp_path):
    assert len(programs()) > 60
    for program in programs():
        found = strings(program, tmp_path)
        assert found or program.name in ("true", "false"), program
        assert not [t.decode() for t in found if is_foreign(t)], program.name


def usages():
    """(program, the lines that usage() prints)."""
    for path in sorted(ROOT.glob("user/**/*.c")) + \
            sorted(ROOT.glob("drivers/servers/**/*.c")):
        name = path.parent.name if path.name == "main.c" else path.stem
        for literals in re.findall(rf"\busage\(\s*{LITERALS}\)",
                                   path.read_text(encoding="utf-8")):
            text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals))
            yield name, f"usage: {name} {text}".split("\\n")


def test_usages_fit():
    found = list(usages())
    assert len(found) > 30
    for name, lines in found:
        assert max(map(len, lines)) < COLUMNS, name


def test_the_help_of_sh_fits(shell):
    lines = shell.command("run sh -c help").splitlines()
    assert len(lines) > 15
    for line in lines:
        assert len(line) < COLUMNS and line.isascii(), line
