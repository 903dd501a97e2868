"""The book against the tree: the things it names exist, and its table of system
calls is complete. Other tests check commands and figures."""

import re

import pytest

from conftest import ROOT
from tools.test.shells import every_command

pytestmark = pytest.mark.plain

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"),
                *(ROOT / "docs/labs").glob("*/*.md")])
FOLDERS = "boot kernel mm drivers user tools docs".split()
SOURCES = (".c", ".h", ".asm", ".ld", ".py", ".mjs", ".cfg")

each_page = pytest.mark.parametrize(
    "page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))


def named(text):
    """The words of a page in backticks."""
    return re.findall(r"`([^`\n]+)`", text)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


# ---- the table of system calls ---------------------------------------------

def rows():
    """(number, name, cells) of each row of the table of all calls."""
    page = (ROOT / "docs/syscalls.md").read_text("utf-8")
    table = page.split("| nr | call |")[1]
    for line in table.splitlines()[2:]:
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) < 2:
            return
        name = re.match(r"`(\w+)\(", cells[1])
        assert len(cells) == 4 and name, line
        yield int(cells[0]), name.group(1), cells


def test_every_system_call_has_its_row():
    header = (ROOT / "kernel/abi/syscall.h").read_text(encoding="utf-8")
    listed = re.findall(r"^ +X\((\w+)\)", header, re.M)
    assert len(listed) > 40
    assert [(n, name) for n, name, _ in rows()] == list(enumerate(listed))


def test_every_handler_is_where_the_book_says():
    handlers = "".join(p.read_text(encoding="utf-8") for p in
                       (ROOT / "kernel/syscall").glob("*.c"))
    for _, name, _ in rows():
        assert re.search(rf"^int32_t sys_{name}\(", handlers, re.M), name


def errors():
    return set(re.findall(r"^#define (E\w+) +\d+",
                          (ROOT / "kernel/abi/errno.h").read_text("utf-8"),
                          re.M))


@each_page
def test_errors_exist(page):
    assert len(errors()) > 30
    used = {word for word in named(page.read_text(encoding="utf-8"))
            if re.fullmatch(r"E[A-Z0-9]+", word)}
    assert used <= errors(), used - errors()


def test_errors_of_the_table_are_marked():
    """Errors must be in backticks, so that the check above sees them."""
    for _, name, cells in rows():
        bare = re.sub(r"`[^`]*`", "", cells[3])
        assert not set(re.findall(r"\w+", bare)) & errors(), name


# ---- what pages name -------------------------------------------------------

@each_page
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for link in re.finditer(r"\]\(([^)#\s]+)(#[^)\s]*)?\)", text):
        if re.match(r"\w+:", link.group(1)):
            continue
        assert (page.parent / link.group(1)).exists(), \
            f"{page.name}:{line_of(text, link.start())}: {link.group()}"


def is_path(word):
    """A path from the root of the tree, maybe with * or a NAME in it."""
    return re.fullmatch(rf"(?:{'|'.join(FOLDERS)})/[\w./*-]*", word)


@each_page
def test_paths_exist(page):
    for word in filter(is_path, named(page.read_text(encoding="utf-8"))):
        pattern = re.sub(r"\b[A-Z]+\b(?=/|$)", "*", word).rstrip("/")
        assert any(ROOT.glob(pattern)), f"{page.name}: {word}"


@pytest.fixture(scope="module")
def words():
    """{path: its words} of every source of the tree."""
    return {str(p.relative_to(ROOT)):
            set(re.findall(r"\w+", p.read_text("utf-8")))
            for folder in FOLDERS for p in (ROOT / folder).rglob("*")
            if p.suffix in SOURCES}


@each_page
def test_identifiers_exist(page, words):
    """Everything in backticks that can only be a name of the sources."""
    known = set().union(*words.values())
    for word in named(page.read_text(encoding="utf-8")):
        name = re.fullmatch(r"(?:struct |enum )?(\w+)(\(.*\))?", word)
        if name and ("_" in word or name.group(2) or " " in word):
            assert name.group(1) in known, f"{page.name}: {word}"


@each_page
def test_functions_are_in_the_files_given(page, words):
    """`name` (`path`), and `name` in `path`: the file knows the name."""
    text = page.read_text(encoding="utf-8")
    for m in re.finditer(r"`(\w+)(?:\(\))?`\*{0,2}\s+(?:\(|in\s+)"
                         r"`([\w/.-]+\.\w+)`", text):
        name, path = m.groups()
        assert name in words.get(path, ()), \
            f"{page.name}:{line_of(text, m.start())}: {path} has no {name}"


def test_the_table_of_spin_locks_has_their_ranks():
    header = (ROOT / "kernel/lib/lock_rank.h").read_text(encoding="utf-8")
    ranks = {name: int(n) for name, n in
             re.findall(r"(LOCK_RANK_\w+) = (\d+),", header)}
    page = (ROOT / "docs/locking.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| [^|]*\(`([^`]+\.c)`[^|]*\|", page, re.M)
    for number, file in rows:
        used = re.findall(r"LOCK_RANK_\w+",
                          (ROOT / file).read_text(encoding="utf-8"))
        assert int(number) in map(ranks.get, used), (number, file)
    assert [int(n) for n, _ in rows] == sorted(int(n) for n, _ in rows)
    assert {int(n) for n, _ in rows} | {ranks["LOCK_RANK_LAST"]} == \
        set(ranks.values())


def test_the_page_about_the_tree_answers():
    """Each row of its tables of changes names a file or folder that exists."""
    page = (ROOT / "docs/tree.md").read_text(encoding="utf-8")
    changes = page[page.index("| to change … |"):]
    rows = re.findall(r"^\| (?!to change).+? \| (.+) \|$", changes, re.M)
    assert len(rows) > 50
    for row in rows:
        paths = [p for p in re.findall(r"`([\w./]+)`", row) if "/" in p]
        assert paths and all(p == "tests/" or (ROOT / p).exists()
                             for p in paths), row


# ---- what pages type -------------------------------------------------------

@each_page
def test_commands_and_programs_exist(page):
    commands = every_command()
    programs = {p.stem for folder in (
        "user/bin", "user/servers", "user/tests", "drivers/servers",
        "docs/labs/*/bin", "docs/labs/*/servers")
                for p in ROOT.glob(folder + "/*")}
    assert len(commands) > 30 and len(programs) > 30
    lines = re.findall(r"^ *slate> (.+)$", page.read_text("utf-8"), re.M)
    for part in ";".join(re.sub(r"\"[^\"]*\"", "", line)
                         for line in lines).split(";"):
        typed = part.split()
        if not typed:
            continue
        assert typed[0] in commands, f"{page.name}: {part}"
        if typed[0] == "run":
            name = next(w for w in typed[1:] if not w.startswith("-"))
            name = re.sub("^/s?bin/", "", name)
            assert name in programs | {"hello"}, part


HELP = ("kernel/shell/help.txt", "tools/workshop/help.txt")


def test_every_shell_command_has_its_help():
    """A section each, in a group, of lines that fit the screen."""
    texts = [(ROOT / path).read_text(encoding="utf-8") for path in HELP]
    names = [name for text in texts
             for name in re.findall(r"^= (\w+)", text, re.M)]
    assert len(names) == len(set(names)) and set(names) == every_command()
    assert all(text.startswith("== ") for text in texts)
    for line in "".join(texts).splitlines():
        assert len(line) < 80 and line.isascii(), line


def test_every_shell_command_has_its_row():
    commands = every_command()
    page = (ROOT / "docs/shell.md").read_text(encoding="utf-8")
    firsts = re.findall(r"^\| (`.*?`(?:, `.*?`)*) \|", page, re.M)
    described = {name.split()[0] for cell in firsts for name in named(cell)}
    assert not commands - described, commands - described


@each_page
def test_make_targets_exist(page):
    makefile = "".join(p.read_text(encoding="utf-8") for p in
                       [ROOT / "Makefile", *ROOT.glob("tools/make/*.mk")])
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"(?:^ +|`|&& )make ([a-z][\w-]*)", text, re.M):
        assert re.search(rf"^{target}:", makefile, re.M), target
