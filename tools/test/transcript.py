"""GDB transcripts in the book: parsed, compared, updated.

An indented block of a page with lines that begin with "(gdb) " is a transcript:
commands, each followed by its output. Numbers may change with the kernel
(addresses, lines, counts), words may not: `difference` compares with all
numbers and the widths of columns taken out. A line "..." stands for any number
of lines. `rewrite` brings a page up to date; an answer with a "..." must match
for that.
"""

import re

PROMPT = "    (gdb) "


class Entry:
    """A command of a transcript, its output, and their lines on the page."""

    def __init__(self, command, at):
        self.command = command
        self.first = self.end = at + 1
        self.output = []

    def add(self, line):
        self.output.append(line)
        self.end += 1


def entries(text):
    """The commands of all transcripts of a page, in order."""
    found, inside = [], None
    for at, line in enumerate(text.split("\n")):
        if line.startswith(PROMPT):
            inside = Entry(line[len(PROMPT):], at)
            found.append(inside)
        elif inside is not None and (line.startswith("    ") or not line):
            inside.add(line[4:])
        else:
            inside = None
    for entry in found:  # the blank line after a block belongs to the page
        while entry.output and not entry.output[-1]:
            entry.output.pop()
            entry.end -= 1
    return found


def words(line):
    """A line without the parts that may change. An address has 0x before it, or
    eight digits; a pattern, as deadbeef, has letters alone."""
    line = re.sub(r"0x[0-9a-f]+|\b(?=[a-f]*\d)[0-9a-f]{8}\b", "N", line)
    line = re.sub(r"\d+(\.\d+)?", "N", line)
    return re.sub(r" +", " ", line).strip()


def lines_of(answer):
    return answer.rstrip("\n").split("\n") if answer.strip("\n") else []


def aligned(wanted, lines):
    """The lines, those that a "..." stands for left out as on the page; None if
    they do not match the wanted ones."""
    if not wanted:
        return None if lines else []
    if wanted[0] == "...":
        rests = (aligned(wanted[1:], lines[i:]) for i in range(len(lines) + 1))
    elif lines and words(wanted[0]) == words(lines[0]):
        rests = [aligned(wanted[1:], lines[1:])]
    else:
        return None
    first = "..." if wanted[0] == "..." else lines[0]
    return next(([first, *rest] for rest in rests if rest is not None), None)


def matches(wanted, lines):
    return aligned(wanted, lines) is not None


def difference(entry, answer):
    """The difference between GDB's answer and the page, or None."""
    if matches(entry.output, lines_of(answer)):
        return None
    return (f"line {entry.first}: (gdb) {entry.command}\n---- the page has\n"
            + "\n".join(entry.output) + f"\n---- GDB says\n{answer}")


def rewrite(text, answer_of):
    """The page with the new answers of answer_of(entry), where not None."""
    lines = text.split("\n")
    for entry in reversed(entries(text)):
        answer = answer_of(entry)
        output = lines_of(answer or "")
        if "..." in entry.output:
            output = aligned(entry.output, output)
        if answer is None or output is None:
            continue
        lines[entry.first:entry.end] = [f"    {line}".rstrip()
                                        for line in output]
    return "\n".join(lines)
