"""The book's claim about the path from kmem_cache_alloc down to buddy: five
files contain it, headers included (docs/slab.md, "The life of an object").
Follows the calls through these files, and compares the names that the path
uses from elsewhere with what the chapter says of other headers."""

import re

import pytest

from conftest import ROOT
from tools.test import lint

pytestmark = pytest.mark.plain

FIRST, LAST = "kmem_cache_alloc", {"buddy_alloc", "buddy_alloc_run"}
SHORT = 5  # lines of an inline function that its name describes
PLATFORM = "kernel/mm_platform.h"  # the kernel's half of mm/platform.h

PARTS = (ROOT / "docs/slab.md").read_text().split("## The life of an object")
CLAIM, _, OTHERS = PARTS[1].split("\n1. ")[0].partition("Nothing else")


def files(text):
    return re.findall(r"`((?:mm|kernel)/[\w/.]+)`", text)


FIVE = files(CLAIM.split("kmem_cache_alloc")[1])
HEADERS = [str(p.relative_to(ROOT)) for folder in ("mm", "kernel/lib")
           for p in sorted((ROOT / folder).glob("*.h"))] + [PLATFORM]

# What a header declares, at the left edge.
DECLARATIONS = (
    r"^#define (\w+)",
    r"^(?:struct|union|enum) (\w+) \{",
    r"^    ([A-Z]\w+)(?: = [^,\n]*)?,",      # of an enumeration
    r"^[a-z][^\n(=]*?(\w+)(?:\(|\[\w*\];|;)",  # functions and variables
)


def bare(path):
    return lint.without_comments((ROOT / path).read_text())


def functions(path):
    return {name: body[1:] for name, _, _, body in lint.functions(path)}


def variables(path):
    """The variables that a source file defines."""
    return {name for line in re.findall(r"^(?!extern)[a-z][^(\n]*[;=]",
                                        bare(path), re.M)
            for name in re.findall(r"\w+", line)}


def declared(path):
    return {match for pattern in DECLARATIONS
            for match in re.findall(pattern, bare(path), re.M)}


@pytest.fixture(scope="module")
def path():
    """{function: its body} from FIRST to LAST, as far as the files go."""
    known = {name: "\n".join(body)
             for file in FIVE for name, body in functions(file).items()}
    found, todo = {}, [FIRST]
    while todo:
        name = todo.pop()
        if name in known and name not in found:
            found[name] = known[name]
            if name not in LAST:
                todo += re.findall(r"\b(\w+)\(", known[name])
    return found


@pytest.fixture(scope="module")
def elsewhere(path):
    """{header: names that the path uses and the five do not define}."""
    here = {name for file in FIVE for name in
            (*functions(file), *variables(file), *declared(file))}
    used = {name for body in path.values()
            for name in re.findall(r"(?<![.>])\b[A-Za-z]\w+", body)} - here
    names = {header: used & declared(header)
             for header in HEADERS if header not in FIVE}
    names["mm/platform.h"] |= names.pop(PLATFORM)
    return {header: found for header, found in names.items() if found}


def test_five_files():
    assert len(set(FIVE)) == 5 == len(FIVE)
    impl = (ROOT / "mm/kmem_impl.h").read_text()
    assert len(impl.splitlines()) <= 150
    for name in "kmem_cache", "kmem_slab", "kmem_bufctl":
        assert f"\nstruct {name} {{" in impl


def test_they_contain_the_path(path):
    """Each function that the chapter names on the way down, the branches for
    large objects, and buddy's two."""
    steps = re.findall(r"\*\*`(\w+)`\*\*", PARTS[1].split("\n6. ")[0])
    assert len(steps) >= 7
    assert {*steps, *LAST, "alloc_large", "link_small", "link_large",
            "kmem_hash_enter", "slab_enter"} <= set(path)


def test_the_chapter_names_all_other_headers(elsewhere):
    assert sorted(elsewhere) == sorted(files(OTHERS)), elsewhere


def test_no_work_is_done_elsewhere(elsewhere):
    """Other headers declare no functions for the path but short ones and those
    that the chapter names; platform and modes are not part of the path."""
    apart = ("mm/platform.h", "mm/kmem_debug.h")
    for header, names in elsewhere.items():
        inline = functions(header)
        for name in names if header not in apart else ():
            body = [line for line in inline.get(name, ()) if line.strip()]
            prototype = re.search(rf"^[a-z].*\b{name}\(", bare(header), re.M)
            assert not prototype or f"`{name}`" in OTHERS or \
                (body and len(body) <= SHORT), f"{header}: {name}"
