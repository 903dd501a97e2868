"""Slate on this terminal, with commands that watch its heap: `make watch`.

    python3 -m tools.watch.watch build/slate.elf

A line that you type goes to the kernel's shell, but for these commands, which
run here and ask the kernel for its statistics as JSON lines (`kmastat -j`):

    mark     remembers the counts of all caches
    diff     changes since a mark
    frag     fragmentation of the slabs' memory
    why      the objects that keep nearly free slabs allocated
    slabtop  the traffic of the slab caches, live

`help COMMAND` describes one. So the kernel needs no code for them, and they
work on the product, and after a panic. CMD (the first commands), MEM, APPEND,
DISK, ICOUNT and CPUS in the environment are those of `make run`. ^C goes to the
machine; a second one before it has responded, Ctrl-D, and the command poweroff
end it.
"""

import argparse
import os
import signal
import sys

from tools.measure import statistics
from tools.measure.picture import commands_of
from tools.run import qemu, run
from tools.watch import heap, reports, slabtop

WAIT = 0.01    # seconds for output, before the machine's state is looked at
TRIES = 5      # to read statistics that a program's output has not cut
LABEL_MAX = 12


class WatchError(Exception):
    """An error in one line."""


class Ended(Exception):
    """The machine has ended; the text says why, if not in order."""


class Parser(argparse.ArgumentParser):
    """Of a command's words. An error is a WatchError."""

    def __init__(self, command, arguments):
        name = command.__name__
        summary, *text = command.__doc__.split("\n")
        super().__init__(name, description=summary,
                         epilog="\n".join(line.removeprefix("        ")
                                          for line in text), add_help=False,
                         formatter_class=argparse.RawTextHelpFormatter)
        for words, options in arguments:
            self.add_argument(*words, **options)

    def error(self, message):
        raise WatchError(f"{message}; `help {self.prog}`")


def word(*names, **options):
    """An argument of a command, for Parser."""
    return names, options


def delay(text):
    value = float(text)
    if not 0.01 <= value <= 3600:
        raise ValueError
    return value


def number(text):
    if int(text) < 1:
        raise ValueError
    return int(text)


def show(text):
    print(text, end="", flush=True)


class Watch:
    """A machine, and the commands that watch it. `show` gets its output."""

    def __init__(self, machine, show=show):
        self.machine, self.show = machine, show
        self.marks = {}           # Moments by label, the oldest first
        self.reader = self.prompt = ""    # who waits for a key, and its prompt
        self.interrupted = False  # by ^C, in the last command

    # -- the machine

    def settle(self, quiet=False, echo=False):
        """Waits until the kernel's shell or a program waits for a key. Returns
        the output without the last line, the prompt, and without the first one
        if it is an echo; shows it as it comes, unless quiet."""
        machine, output, waits, ended = self.machine, "", None, False
        while not waits and not ended:
            try:
                waits = machine.waiting()
                ended = not waits and machine.ended(WAIT)
                *lines, machine.buffer = machine.buffer.split("\n")
                if echo and lines:
                    echo, lines = False, lines[1:]
                text = qemu.plain("".join(f"{line}\n" for line in lines))
                output += text
                if not quiet:
                    self.show(text)
            except KeyboardInterrupt:
                if self.interrupted:
                    raise Ended("it did not respond to ^C") from None
                self.interrupted = True
                self._send("\x03")
        if ended:
            raise Ended(self._why_ended())
        machine.waits.used()
        self.reader, self.prompt = waits["reader"], qemu.plain(machine.buffer)
        machine.buffer = ""
        return output

    def _why_ended(self):
        named = {e["event"]: e for e in self.machine.events()}
        if "panic" in named:
            return f"panic: {named['panic'].get('text')}"
        if {"poweroff", "exit", "reset"} & set(named):
            return ""
        return self.machine.errors() or "a triple fault, or QEMU was killed"

    def _send(self, keys):
        try:
            self.machine.send(keys)
        except (AssertionError, OSError) as e:
            raise Ended(self._why_ended()) from e

    def type(self, line, quiet=False):
        """Types a line; returns the output, without its echo."""
        self._send(line + "\r")
        return self.settle(quiet, echo=True)

    def ask(self, command):
        """The JSON lines that a command of the kernel prints."""
        if self.reader != "shell":
            raise WatchError("a program reads the keys; end it first")
        said = self.type(command, quiet=True)
        if self.interrupted:
            raise KeyboardInterrupt
        lines = [line for line in said.splitlines() if line.startswith("{")]
        if not lines and said.strip():
            raise WatchError(said.strip())
        return lines

    def moment(self, label="now", further=""):
        """The statistics now. A program may print amid the lines: then asks
        again."""
        for left in reversed(range(TRIES)):
            lines = self.ask("kmastat -j" + further)
            try:
                return heap.Moment.read(lines, label, self.began("kmastat"))
            except statistics.StatisticsError:
                if not left:
                    raise
        return None

    def began(self, name):
        """When this command of the kernel began last, by its clock."""
        return [e["ms"] for e in self.machine.events("command")
                if e["name"] == name][-1]

    def records(self, command):
        return [record for _, record in
                statistics.records(self.ask(command), command)]

    def marked(self, label):
        if label == "now":
            return self.moment()
        if label not in self.marks:
            raise WatchError(f"there is no mark '{label}'; `mark` lists them")
        return self.marks[label]

    # -- commands: each returns lines

    def mark(self, words):
        """records the counts of all caches
        `diff LABEL` prints the changes since; `frag` shows how fragmented
        memory was. Without a label lists the marks.
        Example: mark before; run ls; diff before"""
        label = words.label
        if not label:
            return reports.marks(self.marks.values(), self.moment().ms)
        if label == "now" or len(label) > LABEL_MAX:
            raise WatchError(f"wants a label of at most {LABEL_MAX} characters,"
                             " and not 'now'; `mark before`")
        self.marks.pop(label, None)
        found = self.marks[label] = self.moment(label)
        kib = heap.fragmentation(found).consumed // 1024
        return [f"mark {label}: {len(found.caches)} caches, {kib} KiB; "
                f"`diff {label}` compares"]

    def diff(self, words):
        """changes since a mark
        A row per cache that differs between the two marks, or between the mark
        and now; the most memory gained first. Then, of caches in mode U, the
        callers all of whose live objects are younger than the first mark.
        Example: mark before; run ls; diff before"""
        a, b = self.marked(words.mark), self.marked(words.later)
        order = [*self.marks, "now"]
        if order.index(words.mark) >= order.index(words.later):
            raise WatchError("the older mark comes first; `mark` lists them")
        yield from reports.diff(a, b)
        if words.later == "now":
            groups = self.records("cache -u -j")
            yield from reports.new_callers(groups,
                                           self.began("cache") - a.ms)

    def frag(self, _):
        """fragmentation of slab memory
        Total fragmentation as the paper's section 5.2 defines it: a row for
        each `mark` and one for now; in per cent of CONSUMED
          FRAG%      the part that is not REQUESTED, of which
          INTERNAL%  rounding, colours and rests of slabs
          FREE-BUF%  free buffers
          META%      headers, hash tables, the allocator's own caches
        Then by cache, the one that loses most first, in bytes:
          MEM       its slabs and the pages of its hash table
          USED      objects in use, at the requested size
          FREE      free buffers: external fragmentation
          OVERHEAD  rounding, rests of slabs, headers, hash tables; all of the
                    allocator's own caches
          LOST%     of MEM
          POINTS    its part of the total's FRAG%
        Pages of oversize requests are in no slab and not counted.
        Example: mark boot; run spike; frag"""
        now = self.moment()
        return [*reports.frag_steps([*self.marks.values(), now]), "",
                *reports.frag_caches(now), heap.PAPER]

    def why(self, words):
        """the objects that keep nearly free slabs allocated
        Of a cache: the partial slabs with the fewest objects in use, and these
        objects: once they are freed, the slabs can be reaped. Of a slab, by
        any address in it or by SLAB: all its objects in use. AGE and CALLER
        are known of caches in mode U (`debug`).
        Example: why inode"""
        name = words.name
        caches = self.moment(further="; slabs -j").caches
        if name in caches:
            return reports.why_cache(caches[name],
                                     self.records(f"cache -o alloc -j {name}"))
        found = heap.slab_at(caches, name)
        if not found:
            raise WatchError(f"'{name}' is no cache and no slab's address; "
                             "`slabs` lists them")
        cache, slab = found
        objects = self.records(f"cache -o alloc -j {cache.name}")
        return reports.why([slab], objects, slab.objects)

    def slabtop(self, words):
        """the traffic of the slab caches, live
        A screen that is renewed every two seconds, the first with averages
        since boot. Rates are those of the time between two screens.
          ALLOC/s FREE/s  objects allocated and freed, per second
          GROW/s          slabs created, per second
          MEM/K           KiB of its slabs and of its hash table's pages
          HIT%            allocations that needed no new slab; -: none
        The bar is the cache's share of the column that orders the rows.
        Keys: m a f g h n change the order to memory, allocs, frees, grows,
        hits (the worst first) or name; up and down move through the rows;
        space renews the screen at once; q and ^C end slabtop.
        Example: run -b kenbus -i 1000; slabtop -d 1 -s alloc"""
        slabtop.run(lambda: self.moment(further="; buddyinfo -j"), words.s,
                    words.d, words.n, words.b)
        return ()

    # -- lines

    def run(self, command):
        """Runs a command: one of those above, or the kernel's. False after an
        error of the former, which is shown."""
        name, *words = command.split() or [""]
        if name == "help" and words and words[0] in COMMANDS:
            self.show(COMMANDS[words[0]].format_help())
            return True
        if name not in COMMANDS or self.reader != "shell":
            self.type(command)
            return True
        try:
            words = COMMANDS[name].parse_args(words)
            for line in getattr(self, name)(words):
                self.show(f"{line}\n")
        except (WatchError, statistics.StatisticsError) as e:
            self.show(f"{name}: {e}\n")
            return False
        except KeyboardInterrupt:
            self.interrupted = True
            self.show("^C\n")
        return True

    def line(self, text):
        """Runs the commands of a line; a program's line is one. False after an
        error."""
        good, self.interrupted = True, False
        alone = self.reader != "shell" or not commands_of(text)
        for command in [text] if alone else commands_of(text):
            good = self.run(command) and good
            if self.interrupted:
                break
        return good


COMMANDS = {command.__name__: Parser(command, words) for command, words in (
    (Watch.mark, [word("label", nargs="?")]),
    (Watch.diff, [word("mark"),
                  word("later", metavar="mark", nargs="?", default="now")]),
    (Watch.frag, []),
    (Watch.why, [word("name", metavar="cache|slab")]),
    (Watch.slabtop, [
        word("-d", type=delay, default=2, metavar="S",
             help="seconds between two screens: 0.01 to 3600"),
        word("-n", type=number, default=0, metavar="N",
             help="ends after so many screens"),
        word("-s", choices=slabtop.ORDERS, default="mem",
             help="the order, as the keys change it"),
        word("-b", action="store_true",
             help="plain text, one screen below the other, all caches;\n"
             "so without a terminal")]))}


# ---- the terminal ------------------------------------------------------------

def prompt(watch):
    return watch.prompt.replace("slate", "watch", 1) \
        if watch.reader == "shell" else watch.prompt


def typed(watch, commands, attended):
    """The commands, then the lines of the standard input up to its end."""
    for line in commands:
        show(f"{prompt(watch)}{line}\n")
        yield line
    while True:
        try:
            if attended:
                yield input(prompt(watch))
                continue
            line = sys.stdin.readline()
            if not line:
                return
            show(prompt(watch) + line.rstrip("\n") + "\n")
            yield line.rstrip("\n")
        except KeyboardInterrupt:
            show("^C\n")
        except EOFError:
            show("\n")
            return


def attend(watch, commands, attended):
    """Returns whether no line had an error, up to the machine's own end."""
    good = True
    try:
        watch.settle()
        for line in typed(watch, commands, attended):
            good = watch.line(line) and good
    except Ended as e:
        if str(e):
            raise
    return good


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kernel", help="a multiboot kernel")
    kernel = parser.parse_args().kernel
    qemu.leave_in_order()
    # What starts in the background of a script inherits that ^C is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    commands = commands_of(os.environ.get("CMD", ""))
    wishes = run.Wishes("make watch")
    attended = sys.stdin.isatty() and sys.stdout.isatty()
    if attended:
        import readline    # input() then edits lines  # noqa: F401
    if not attended or commands[-1:] == ["poweroff"]:
        wishes.append = qemu.panic_ends(wishes.append)
    print("mark, diff, frag, why and slabtop watch the heap; "
          "Ctrl-D leaves.")
    with qemu.Machine(kernel, wishes.append, wishes.memory, wishes.counted,
                      disks=wishes.disks, extra=qemu.processors(),
                      own_session=True) as machine:
        good = attend(Watch(machine), commands, attended)
    sys.exit(0 if good or attended else 1)


if __name__ == "__main__":
    try:
        main()
    except Ended as e:
        if str(e):
            sys.exit(f"\nmake watch: the machine ended: {e}")
    except (qemu.QemuError, OSError) as e:
        sys.exit(f"make watch: {e}")
    except KeyboardInterrupt:
        sys.exit("\nmake watch: interrupted")
