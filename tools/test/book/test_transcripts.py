"""The book's transcripts of the two shells agree with Slate's output, as does
its table of caches. `make transcripts` writes the transcripts anew."""

import re

import pytest

from conftest import BUILD, ROOT, sample
from tools.book import book
from tools.run import qemu
from tools.test import shells

FOUND = [b for page in book.pages() for b in shells.blocks(page)]

plain_build = pytest.mark.skipif(BUILD != ROOT / "build",
                                 reason="the pages show the plain build")


def told(wrong):
    return "\n".join("\n".join([f"---- {where}", *had, "---- but Slate says",
                                *says]) for where, had, says in wrong)


@sample
@plain_build
def test_transcripts(kernel):
    pairs = shells.answers(kernel, FOUND)
    assert len(pairs) == len(FOUND) > 30
    wrong = shells.differences(pairs)
    assert not wrong, told(wrong)


@plain_build
def test_the_table_of_caches_is_theirs(kernel):
    """Names, sizes of objects, and those without a constructed state; and the
    sizes in all listings of `kmastat`, which shells.py does not compare."""
    text = qemu.run(kernel, "kmastat -j; poweroff").text
    caches = [row for row in qemu.json_lines(text) if "cache" in row]
    page = (ROOT / "docs/slab.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+) \| .* \| (.+) \|$", page, re.M)
    assert {(name, int(size.replace(",", "")), state != "none")
            for name, size, state in rows} == \
        {(c["cache"], c["size"], "C" in c["flags"])
         for c in caches if c["kind"] == "named"}
    sizes = {c["cache"]: [str(c["size"]), str(c["chunk"])] for c in caches}
    for path in book.pages():
        for name, *size in re.findall(
                r"^ +(\w+) +(\d+) +(\d+) .* \d+/\d+/\d+ ",
                path.read_text(encoding="utf-8"), re.M):
            assert size == sizes[name], f"{path}: {name}"


def test_transcripts_that_are_not_typed_have_a_reason():
    """There are few: `not run` is for things that only a reader has."""
    skipped = [line for page in book.pages()
               for line in page.read_text(encoding="utf-8").splitlines()
               if line.startswith("<!-- not run")]
    assert all(len(line) > len("<!-- not run:  -->") for line in skipped)
    assert len(skipped) < 6


# ---- how pages are read ------------------------------------------------------

def page(tmp_path, monkeypatch, text):
    monkeypatch.setattr(book, "ROOT", tmp_path)
    path = tmp_path / "page.md"
    path.write_text(text, encoding="utf-8")
    return path


def test_transcripts_are_recognised(tmp_path, monkeypatch):
    path = page(tmp_path, monkeypatch, """text
    slate> no, a part of the text

    slate> one      a remark
    an answer

    more of it

    slate> only typed

```
slate> two
$ three
^\\
…
```

<!-- not run: why -->

    slate> not
    this

```c
slate> code
x
```

<!-- run: other memory=16 before="a; b" -->

    $ four

text

    $ five
    an answer
    slate> six

text

    $ make run
    slate> host
    x

text

    $ build/host/tool
    x

text

    $ seven           not answered
""")
    first, second, third, fourth = shells.blocks(path)
    assert [(s.prompt, s.typed, s.lines) for s in first.steps] == \
        [("slate> ", "one", ["an answer", "", "more of it", ""]),
         ("slate> ", "only typed", [])]
    assert [s.typed for s in second.steps] == ["two", "three", "^\\"]
    assert second.name == first.name == "page.md"
    assert (third.name, third.options) == \
        ("other", {"memory": "16", "before": "a; b"})
    assert [(s.prompt, s.typed, s.lines) for s in fourth.steps] == \
        [("$ ", "five", ["an answer"]), ("slate> ", "six", [])]


def test_answers_are_compared_and_written(tmp_path, monkeypatch):
    """Numbers and widths do not count, words and lines do."""
    path = page(tmp_path, monkeypatch, """
    slate> same
    ROW   1 0xc0 buffer c04de008 deadbeef
    slate> other
    said
    slate> long
    first
    …
    last
    slate> left out
""")
    block, = shells.blocks(path)
    pairs = [(block, [["ROW 22 0xc1 buffer c7fce008 deadbeef"],
                      ["says", "more"],
                      ["first", "b", "end"], ["anything"]])]
    assert [(where, had) for where, had, _ in shells.differences(pairs)] == \
        [("page.md:4: slate> other", ["said"]),
         ("page.md:6: slate> long", ["first", "…", "last"])]
    shells.rewrite(pairs)
    assert path.read_text(encoding="utf-8") == """
    slate> same
    ROW   1 0xc0 buffer c04de008 deadbeef
    slate> other
    says
    more
    slate> long
    first
    …
    end
    slate> left out
"""
