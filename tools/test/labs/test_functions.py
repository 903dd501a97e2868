"""Sources that are taken apart at their functions, for hand-outs
(tools/grading/functions.py), and put together again for GIVEN=1 (given.py). A
small program is built of both parts."""

import pytest

from conftest import execute, output_of
from tools.grading import functions, given

pytestmark = pytest.mark.plain

C = """\
/*
 * Numbers.
 */
#include <stdio.h>

#define MANY 3
#define SUM(a, b) \\
    ((a) + (b))

int count = MANY;

/* ---- small ones --------------------------------------------------------- */

/* Twice
 * the number. */
static inline int twice(int n)
{
    return SUM(n, n);
}

/* Only large() needs it. */
static __attribute__((noinline, cold)) int helper(int n)
{
    return twice(n);
}

/* Never static. */
int large(const int *from, int with_a_long_name, int and_one_more_argument,
          int last)
{
    return helper(*from) + with_a_long_name + and_one_more_argument + last;
}

static int
on_two_lines(void)
{
    return count;
}

int main(void)
{
    printf("%d %d\\n", large(&count, 1, 2, 3), on_two_lines());
    return twice(0);
}
"""

REST = """\
/* Twice
 * the number. */
int twice(int n);

/* Never static. */
int large(const int *from, int with_a_long_name, int and_one_more_argument,
          int last);

static int
"""

PART = """\
#include <stdio.h>
#define MANY 3
#define SUM(a, b) \\
    ((a) + (b))
int twice(int n);
int twice(int n)
{
    return SUM(n, n);
}
static __attribute__((noinline, cold)) int helper(int n)
{
    return twice(n);
}
int large(const int *from, int with_a_long_name, int and_one_more_argument,
          int last);
int large(const int *from, int with_a_long_name, int and_one_more_argument,
          int last)
{
    return helper(*from) + with_a_long_name + and_one_more_argument + last;
}
"""

NAMES = {"twice", "large"}


def test_functions_are_found_with_their_comments():
    lines = C.split("\n")
    found = functions.functions(C)
    assert [f.name for f in found] == ["twice", "helper", "large",
                                       "on_two_lines", "main"]
    assert [lines[f.start] for f in found] == [
        "/* Twice", "/* Only large() needs it. */", "/* Never static. */",
        "static int", "int main(void)"]


def test_the_rest_has_declarations_and_no_helpers():
    before, after = C.split("/* Twice")[0], C.split("static int\n")[1]
    assert functions.rest(C, NAMES) == before + REST + after


def test_the_part_has_what_it_needs():
    assert functions.part(C, NAMES) == PART


def printed(folder, part):
    """What rest.c prints with a part; both have the warnings of the kernel."""
    output_of("gcc", "-Wall", "-Wextra", "-Werror", "-o", "x", "rest.c", part,
              cwd=folder)
    return output_of(folder / "x")


@pytest.mark.parametrize("names", [
    {"twice"}, {"large"}, {"helper"}, {"twice", "large"}, {"on_two_lines"},
    {"twice", "helper", "large", "on_two_lines"}])
def test_both_together_are_the_program(tmp_path, names):
    (tmp_path / "rest.c").write_text(functions.rest(C, names), "utf-8")
    part = functions.part(C, names)
    (tmp_path / "part.c").write_text(
        part.replace("#define MANY 3", "extern int count;"), "utf-8")
    assert printed(tmp_path, "part.c") == "12 3\n"


def test_one_that_nobody_else_calls_stays_static():
    assert functions.shared(C, {"helper", "large"}) == {"large"}
    assert "\nstatic __attribute__((noinline, cold)) int helper(" in \
        functions.part(C, {"helper", "large"})


# ---- GIVEN=1 ---------------------------------------------------------------

def unwritten(*names):
    """The program as a hand-out has it, with some functions not written."""
    text = C
    for f in functions.functions(C):
        if f.name in names:
            unused = "    (void)helper;\n" if f.calls("helper") else ""
            text = text.replace(f.text, f.text[:f.text.index("\n{")] +
                                f'\n{{\n{unused}    lab_missing("1");\n}}')
    return text


OWN = {"twice", "large", "on_two_lines"}


@pytest.mark.parametrize("missing", [
    set(), {"twice"}, {"large"}, {"on_two_lines"}, OWN])
def test_what_is_not_written_is_given(tmp_path, missing):
    """And what is written is what runs: the given ones print 1000 more."""
    text, names = given.for_run(
        unwritten(*missing).replace("twice(0)", "twice(0) * 0"), OWN)
    assert set(names) == missing
    (tmp_path / "rest.c").write_text(text, "utf-8")
    (tmp_path / "given.c").write_text(functions.part(
        C.replace("(a) + (b)", "(a) + (b) + 1000").replace(
            "return count;", "return count + 1000;"), OWN, weak=True).replace(
            "#define MANY 3", "extern int count;"), "utf-8")
    first = 12 + 1000 * ("twice" in missing)
    second = 3 + 1000 * ("on_two_lines" in missing)
    assert printed(tmp_path, "given.c") == f"{first} {second}\n"
    output_of("gcc", "-c", "given.c", cwd=tmp_path)
    assert given.offered(tmp_path / "given.o") == OWN


def test_given_is_for_hand_outs():
    done = execute("make", "run", "GIVEN=1")
    assert done.returncode == 2
    assert "GIVEN is for the hand-out of a lab whose" in done.stderr
