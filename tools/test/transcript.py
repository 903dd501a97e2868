"""GDB transcripts in the book: parsed, compared, updated.

An indented block of a page with lines that begin with "(gdb) " is a transcript:
commands, each followed by its output. Numbers may change with the kernel
(addresses, lines, counts), words may not: `difference` compares with all
numbers and the widths of columns taken out. A line "..." stands for any number
of lines. `rewrite` brings a page up to date; blocks with a "..." in them are
left as they are.
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


def matches(wanted, lines):
    """Whether lines match the wanted ones; "..." matches any number."""
    if not wanted:
        return not lines
    if wanted[0] == "...":
        return any(matches(wanted[1:], lines[i:])
                   for i in range(len(lines) + 1))
    return bool(lines) and words(wanted[0]) == words(lines[0]) and \
        matches(wanted[1:], lines[1:])


def difference(entry, answer):
    """The difference between GDB's answer and the page, or None."""
    lines = answer.rstrip("\n").split("\n") if answer.strip("\n") else []
    if matches(entry.output, lines):
        return None
    return (f"line {entry.first}: (gdb) {entry.command}\n---- the page has\n"
            + "\n".join(entry.output) + f"\n---- GDB says\n{answer}")


def rewrite(text, answer_of):
    """The page with the new answers of answer_of(entry), where not None."""
    lines = text.split("\n")
    for entry in reversed(entries(text)):
        answer = answer_of(entry)
        if answer is None or "..." in entry.output:
            continue
        output = answer.rstrip("\n").split("\n") if answer.strip() else []
        lines[entry.first:entry.end] = [f"    {line}".rstrip()
                                        for line in output]
    return "\n".join(lines)
