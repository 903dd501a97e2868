"""Transcripts of GDB sessions in the book: run again and compared.

A transcript is a fenced block. Its first line names its run of the machine; the
first block of a run also has the commands:

    ```gdb heap run="kmem create box 200; kmem alloc box 30; poweroff"
    (gdb) break power_off
    (gdb) continue
    ...
    70          leave("poweroff");
    ```

Blocks of one name are one session of GDB, in the order of the page, from the
kernel's first function on. `append="..."` gives kernel options,
`kernel=workshop` boots the workshop kernel, which is beside KERNEL. A line of
three dots in an answer replaces lines that the page leaves out, or that are not
the point, such as the place where GDB stops. Addresses, places in the code,
frame numbers and ages are not compared: they change with every change of the
kernel.

    python3 -m tools.test.sessions KERNEL PAGE...

writes the answers anew, leaving out as many lines as before. Run it in the root
of the tree, as the tests: GDB looks for the sources from there.
"""

import os
import re
import shlex
import sys
from pathlib import Path

from tools.run import gdb

ROOT = Path(__file__).resolve().parents[2]

DOTS = "..."
PROMPT = "(gdb) "
FENCE = re.compile(r"^```gdb (\w+)(.*)\n((?:(?!```).*\n)*)```$", re.M)

# Parts that any change of the kernel, or another compiler, changes.
NOISE = ((r"(?i)^(temporary )?breakpoint \d+ at .*", "Breakpoint"),
         (r"\b\w+\+0x[0-9a-f]+", "caller"),
         (r"\b0x[0-9a-f]+\b", "0x"), (r"\b[0-9a-f]{8}\b", "hex"),
         (r"\b(frame) \d+", r"\1 N"), (r"\.([ch]):\d+", r".\1:N"),
         (r"^\d+\t", "N\t"), (r" *\b[\d.]+m?s\b", " AGE"),
         (r" *\b\d+\.\d{6}\b", " AGE"),
         (r"\b\d+ (others|caches|references?)\b", r"N \1"),
         (r"caches, \d+ KiB", "caches, N KiB"))


class Step:
    """A command and its answer on the page."""

    def __init__(self, command):
        self.command, self.lines = command, []

    def trimmed(self, lines):
        """An answer, shortened as on the page."""
        if DOTS not in self.lines:
            return lines
        head = self.lines.index(DOTS)
        tail = len(self.lines) - head - 1
        if len(lines) < head + tail:
            return lines
        return [*lines[:head], DOTS, *lines[len(lines) - tail:]]


class Block:
    """One transcript: the place of its text in the page, session, steps."""

    def __init__(self, match):
        self.start, self.end = match.span(3)
        self.name = match[1]
        self.options = dict(word.split("=", 1)
                            for word in shlex.split(match[2]))
        self.steps = []
        for line in match[3].splitlines():
            if line.startswith(PROMPT):
                self.steps.append(Step(line[len(PROMPT):]))
            else:
                self.steps[-1].lines.append(line)


def blocks(text):
    return [Block(m) for m in FENCE.finditer(text)]


def sessions(page_blocks):
    """{name: (options, steps)}"""
    found = {}
    for block in page_blocks:
        options, steps = found.setdefault(block.name, ({}, []))
        options.update(block.options)
        steps.extend(block.steps)
    return found


def run(kernel, options, steps):
    """The answers to the steps of one session: a list of lists of lines."""
    asked = [f"{step.command} # {i}" for i, step in enumerate(steps)]
    if "kernel" in options:
        kernel = Path(kernel).with_name(f"slate-{options['kernel']}.elf")
    said = gdb.Session(kernel, options["run"], [(None, asked)],
                       append=options.get("append", "")).said[0]
    return [[line.rstrip() for line in said[line_].splitlines()]
            for line_ in asked]


def plain(lines):
    """Lines without the parts that may change. Where a chain of callers is
    broken into lines depends on the widths of their offsets."""
    result = []
    for line in re.sub(r"\n +< ", " < ", "\n".join(lines)).split("\n"):
        for pattern, text in NOISE:
            line = re.sub(pattern, text, line)
        # The columns after an age move with its width.
        result.append(" ".join(line.split()) if " AGE" in line
                      else line.rstrip())
    return result


def differences(kernel, text):
    """[(command, answer on the page, GDB's answer)] of a page's text. The page
    always names the usual build folder."""
    found = []
    folder = os.path.relpath(Path(kernel).parent, ROOT)
    for options, steps in sessions(blocks(text)).values():
        for step, answer in zip(steps, run(kernel, options, steps)):
            answer = [line.replace(f"{folder}/user/", "build/user/")
                      for line in step.trimmed(answer)]
            if plain(answer) != plain(step.lines):
                found.append((step.command, step.lines, answer))
    return found


def rewrite(kernel, path):
    """Writes the current answers into a page."""
    text = path.read_text(encoding="utf-8")
    page = blocks(text)
    for options, steps in sessions(page).values():
        for step, answer in zip(steps, run(kernel, options, steps)):
            step.lines = step.trimmed(answer)
    for block in reversed(page):
        body = "".join(f"{PROMPT}{step.command}\n" +
                       "".join(f"{line}\n" for line in step.lines)
                       for step in block.steps)
        text = text[:block.start] + body + text[block.end:]
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[2:]:
        rewrite(sys.argv[1], Path(name))
