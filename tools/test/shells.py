"""Transcripts of the two shells in the book: typed again and compared.

A listing, indented or fenced, that begins with a prompt and has answers is a
transcript. All transcripts of a page are typed into one machine, in order,
unless a comment above a listing says otherwise:

    <!-- run: NAME append="start=rtc" memory=16 disk=1 before="kmastat" -->
    <!-- not run: why not -->

NAME is one machine for all listings of that name, on any page. The rest
describes the machine (kernel=sanitize is that of test_sanitize.py, line=2 a
second serial line, disk the number of files on one, 0 for those of `make
disk`); `before` is commands that are typed and not shown. Lines with the prompt
`$ ` are typed into sh, which is entered and left where needed. A listing with
that prompt is not a transcript if its first command is the host's (make, QEMU,
a path in the tree), or in a hand-out, whose listings show the reader's tree.
A line "^\\" is that key. A remark after three blanks is not typed.

If the page shows no answer to a command, none is compared. A line of dots
matches any number of lines. Numbers, and the widths of columns, may change with
the kernel, words may not (transcript.words).

A machine in which a command or a program of the workshop is typed has the
workshop kernel; all others have the product.

    python3 -m tools.test.shells [-w] build/slate.elf PAGE...

types all of them and prints the differences; -w writes the answers anew, except
where there is more than one line of dots.
"""

import argparse
import re
import shlex
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.book import book
from tools.make import commands
from tools.run import disk, qemu
from tools.test import transcript

DOTS = ("...", "…")
PROMPT = re.compile(r"^(slate> |\$ )(.*)$")
ON_HOST = re.compile(r"make\b|qemu-|\w+/")
TRIES = 40  # to see that all programs wait
HAND_OUTS = Path("docs/labs")
KEY = "^\\"
COMMENT = re.compile(r"^ *<!-- (run|not run): ?(.*?) ?-->$")

# Time is counted in instructions, so a busy host does not change the order of
# events; while the whole machine waits, it is the host's time.
CLOCK = ["-icount", "shift=3,sleep=on"]


class Step:
    """A typed line, and its answer on the page: the lines from `first` on."""

    def __init__(self, prompt, typed, first):
        self.prompt, self.typed = prompt, re.sub(r" {3,}\S.*", "", typed)
        self.first, self.lines = first, []

    def agrees(self, answer):
        wanted = ["..." if line.strip() in DOTS else line
                  for line in self.lines]
        while wanted and not wanted[-1]:
            wanted.pop()
        return not wanted or transcript.matches(wanted, answer)

    def renewed(self, answer):
        """The answer, shortened as on the page; None if that is ambiguous."""
        dots = [i for i, line in enumerate(self.lines)
                if line.strip() in DOTS]
        blank = [""] if self.lines and not self.lines[-1] else []
        if not dots:
            return answer + blank
        head, tail = dots[0], len(self.lines) - dots[0] - 1
        if len(dots) > 1 or len(answer) < head + tail:
            return None
        return answer[:head] + [self.lines[head]] + answer[len(answer) - tail:]


class Block:
    """A listing of a page."""

    def __init__(self, page, above, indent, first, lines):
        self.page, self.first, self.indent = page, first, indent
        self.steps = []
        for number, line in enumerate(lines, first):
            found = PROMPT.match(line)
            if found or line == KEY:
                self.steps.append(Step(*(found.groups() if found
                                         else ("", KEY)), number + 1))
            elif self.steps:
                self.steps[-1].lines.append(line)
        comment = COMMENT.match(above)
        self.said = comment and comment[1]
        words = shlex.split(comment[2]) if self.said == "run" else []
        self.name = words.pop(0) if words and "=" not in words[0] else str(page)
        self.options = dict(word.split("=", 1) for word in words)

    @property
    def is_transcript(self):
        """Whether it is typed: it has answers, or a comment says so."""
        if self.said:
            return self.said == "run"
        first = self.steps[0]
        elsewhere = first.prompt == "$ " and (
            ON_HOST.match(first.typed) or HAND_OUTS in self.page.parents)
        return any(any(step.lines) for step in self.steps) and not elsewhere


def listings(lines):
    """(line above, indent, first line, lines) of each listing; numbers count
    from 0."""
    at = 0
    while at < len(lines):
        above = next((line for line in reversed(lines[:at]) if line), "")
        fence = re.match(r"^( *)```(?:text|slate)?$", lines[at])
        shift = re.match(r"^(?: {4}| {8})(?=\S)", lines[at])
        if fence:
            end = next((i for i in range(at + 1, len(lines))
                        if lines[i].strip() == "```"), len(lines))
            yield above, fence[1], at + 1, lines[at + 1:end]
            at = end
        elif lines[at].startswith("```"):
            at = next((i for i in range(at + 1, len(lines))
                       if lines[i].strip() == "```"), len(lines))
        elif shift and (at == 0 or not lines[at - 1].strip()):
            end = at
            while end < len(lines) and (not lines[end].strip() or
                                        lines[end].startswith(shift[0])):
                end += 1
            while not lines[end - 1].strip():
                end -= 1
            yield above, shift[0], at, [line[len(shift[0]):]
                                        for line in lines[at:end]]
            at = end - 1
        at += 1


def blocks(page, kernel=None):
    """The transcripts of a page that are typed; a comment may name another
    kernel."""
    lines = page.read_text(encoding="utf-8").split("\n")
    name = page.relative_to(book.ROOT)
    found = [Block(name, *listing) for listing in listings(lines)]
    return [b for b in found if b.steps and b.is_transcript and
            b.options.get("kernel") == kernel]


# ---- typing ------------------------------------------------------------------

class Typist:
    """Types the blocks of one machine and keeps the answers."""

    def __init__(self, machine):
        self.machine, self.prompt = machine, "slate> "
        machine.prompt()

    def line(self, typed):
        """Types a line, or presses the key; the answer's lines, before the next
        prompt or before a program reads a key."""
        said = self.type("\x1c" if typed == KEY else typed + "\r")
        if typed == "continue" and not said[-1].strip():
            self.type("\r")  # an empty line, for another prompt of sh
        if re.search(r"&$|\brun -b\b", typed) or typed == KEY:
            self.calm_down()
        return [line.rstrip() for line in said[1:-1]]

    def type(self, keys):
        self.machine.send(keys)
        said = qemu.plain(self.machine.settle(unless=None)).split("\n")
        self.prompt = said[-1]
        return said

    def calm_down(self):
        """Waits until all programs wait for something, if they do."""
        before = None
        for _ in range(TRIES):
            rows = [line.split() for line in self.type("ps\r")[2:-1]]
            rows = [(row[0], row[4]) for row in rows
                    if row[-1] not in ("idle", "ps")]
            if rows == before and not any(state == "ready"
                                          for _, state in rows):
                return
            before = rows
            time.sleep(0.1)

    def go_to(self, prompt):
        """Enters or leaves sh."""
        if prompt and prompt != self.prompt:
            self.line("sh" if prompt == "$ " else "exit")

    def block(self, block):
        """The answers to the steps of a block."""
        for command in filter(None, block.options.get("before", "").split(";")):
            self.go_to("slate> ")
            self.line(command.strip())
        answers = []
        for step in block.steps:
            self.go_to(step.prompt)
            answers.append(self.line(step.typed))
        return answers


def make_disk(files, folder):
    """The image of `make disk`, or one with so many small files, in folders of
    50."""
    image, inside = Path(folder) / "disk.img", book.ROOT / "user/disk"
    if int(files):
        inside = Path(folder) / "files"
    for i in range(int(files)):
        file = inside / f"d{i // 50}" / f"f{i % 50}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"file {i}\n", encoding="utf-8")
    disk.make(image, 32, inside, inodes=int(files) * 5 // 4 + 100)
    return image


def run(kernel, members, initrd=None):
    """[(block, answers)] of the blocks of one machine."""
    options = {}
    for block in members:
        options.update(block.options)
    with tempfile.TemporaryDirectory() as folder:
        disks = [make_disk(options["disk"], folder)] if "disk" in options \
            else []
        with qemu.Machine(kernel, append=options.get("append", ""),
                          memory=options.get("memory", "128"), initrd=initrd,
                          disks=disks, extra=CLOCK + (
                              ["-serial", "null"] if "line" in options
                              else [])) as machine:
            typist = Typist(machine)
            return [(block, typist.block(block)) for block in members]


def every_command():
    """The names of the kernel shell's commands, the workshop's included."""
    return set(commands.names(
        path for folder in ("kernel", "mm", "drivers", "tools", "docs")
        for path in (book.ROOT / folder).rglob("*.c")))


def drawings(text):
    """Pictures, and listings in which something is drawn, of a page."""
    listings = re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.M) + \
        re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S)
    return re.findall(r"!\[[^]]+\]\([^)]+\)", text) + \
        [part for part in listings
         if len(re.findall(r"[─│┌┐└┘├┤┬┴┼═║]|-->|──", part)) >= 3]


def only_workshop():
    """The names of commands and programs that the product does not have."""
    programs = [p for folder in ("user/tests", "docs/labs/*/bin",
                                 "docs/labs/*/servers")
                for p in book.ROOT.glob(f"{folder}/*")]
    sources = [*book.ROOT.glob("tools/workshop/*/*.c"),
               *book.ROOT.glob("docs/labs/*/services/*.c"),
               *book.ROOT.glob("docs/labs/*/tests/*.c")]
    return {p.stem for p in programs} | set(commands.names(sources))


def kernel_for(kernel, members):
    """The kernel of a machine: the product, or the workshop kernel beside
    it."""
    typed = " ".join(step.typed for b in members for step in b.steps) + \
        " ".join(b.options.get("before", "") for b in members)
    words = set(re.findall(r"[\w-]+", typed))
    if kernel.name == "slate.elf" and words & only_workshop():
        return kernel.with_name("slate-workshop.elf")
    return kernel


def answers(kernel, found, initrd=None):
    """[(block, answers)] of all blocks: a machine for each name, two at a
    time."""
    machines = {}
    for block in found:
        machines.setdefault(block.name, []).append(block)
    with ThreadPoolExecutor(2) as pool:
        done = pool.map(lambda members: run(kernel_for(kernel, members),
                                            members, initrd),
                        machines.values())
        return [pair for pairs in done for pair in pairs]


def differences(pairs):
    """["page:line: command", answer on the page, answer of Slate]"""
    return [(f"{block.page}:{step.first}: {step.prompt}{step.typed}",
             step.lines, answer)
            for block, said in pairs
            for step, answer in zip(block.steps, said)
            if not step.agrees(answer)]


# ---- writing -----------------------------------------------------------------

def rewrite(pairs):
    """Puts the answers into their pages."""
    changes = {}
    for block, said in pairs:
        for step, answer in zip(block.steps, said):
            new = step.renewed(answer)
            if new is not None and not step.agrees(answer):
                changes.setdefault(block.page, []).append(
                    (step, [f"{block.indent}{line}".rstrip() for line in new]))
    for page, steps in changes.items():
        path = book.ROOT / page
        lines = path.read_text(encoding="utf-8").split("\n")
        for step, new in sorted(steps, key=lambda c: -c[0].first):
            lines[step.first:step.first + len(step.lines)] = new
        path.write_text("\n".join(lines), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-w", action="store_true", help="write them anew")
    parser.add_argument("kernel", type=Path)
    parser.add_argument("page", nargs="*", type=Path)
    args = parser.parse_args()
    pages = [p.resolve() for p in args.page] or book.pages()
    pairs = answers(args.kernel, [b for p in pages for b in blocks(p)])
    wrong = differences(pairs)
    for where, had, says in wrong:
        print(f"---- {where}", *had, "---- says", *says, sep="\n")
    if args.w:
        rewrite(pairs)
    return 1 if wrong and not args.w else 0


if __name__ == "__main__":
    sys.exit(main())
