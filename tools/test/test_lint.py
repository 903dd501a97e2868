"""The comments that `make lint` reports, and those that it accepts."""

import pytest

import lint

pytestmark = pytest.mark.plain

CODE = ["x = 1;", "f(a, b);", "p->x++;", "(void)x;", "struct list *l = f();",
        "return x;", "if (x)", "for (;;) {", "}", "} else {", "#if 0", "int x;",
        "a->b[2] |= 3;", "break;", "(void)f(x);"]
PROSE = ["of the cache; see (x);", "Prints it (x);", "return the number: 0",
         "second one;", "if it is full; and", "the list (by list_lock);"]


def found(tmp_path, monkeypatch, text, name="mm/x.c"):
    """The lines in which lint finds fault, and the texts."""
    monkeypatch.setattr(lint, "ROOT", tmp_path)
    monkeypatch.setattr(lint, "findings", [])
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    lint.check_cuts()
    return [(int(f.split(":")[1]), f.split(": ", 1)[1]) for f in lint.findings]


@pytest.mark.parametrize("code", CODE)
def test_commented_out_code(tmp_path, monkeypatch, code):
    for text, line in ((f"    /* {code} */\n", 1), (f"    // {code}\n", 1),
                       (f"/*\n * {code}\n */\n", 2),
                       (f"int y;\n\n    /* So:\n     *     {code} */\n", 4)):
        assert found(tmp_path, monkeypatch, text) == [
            (line, f"commented-out code: {code}")], text


@pytest.mark.parametrize("text", PROSE)
def test_prose(tmp_path, monkeypatch, text):
    assert not found(tmp_path, monkeypatch, f"    /* {text}\n     * b */\n")


def test_examples_and_strings(tmp_path, monkeypatch):
    assert not found(tmp_path, monkeypatch,
                     "/*\n * For example:\n *\n *     x = f(1);\n */\n"
                     'char *s = "/* x = 1; */";\n')


def test_assembly(tmp_path, monkeypatch):
    assert found(tmp_path, monkeypatch, "; in a page\n    ret\n; mov eax, 1\n",
                 "boot/x.asm") == [(3, "commented-out code: ; mov eax, 1")]


def test_marks_of_labs(tmp_path, monkeypatch):
    for text in ("/* LAB 2.1 BEGIN: x */\n", "int LAB_MISSING;\n"):
        assert [line for line, why in found(tmp_path, monkeypatch, text)
                if "mark of a lab" in why] == [1]
