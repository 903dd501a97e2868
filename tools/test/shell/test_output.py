"""What every command of the kernel's shell prints on a screen of 80 columns: a
line never wraps, is ASCII and has no blanks at its end, numbers stand below
their heads, and wrong words are answered with the usage."""
# Tests: kernel/shell/help.txt, tools/workshop/help.txt

import re

import pytest

from tools.run import qemu

COLUMNS = 80

# Lines that show a command's output, for each command that `help` lists.
LINES = {
    "kmastat": ["kmastat", "kmastat -z", "kmastat -s waste kmem_*",
                "kmastat --merged"],
    "slabs": ["slabs", "slabs inode", "slabs -v", "slabs box",
              "slabs inode_cache"],
    "cache": ["cache inode", "cache kstack", "cache kmem_alloc_1024",
              "cache -u", "cache -u inode", "cache -u -m 1",
              "cache -c box", "cache -o alloc -n 20", "cache -o free box"],
    "trace": ["trace", "trace mark 3"],
    "reap": ["reap -n", "reap box", "reap", "reap -a", "reap -i 15"],
    "kmem": ["kmem list", "kmem free box 20 random", "kmem alloc box 3"],
    "debug": ["debug", "debug +FPZU pipe", "debug", "debug -T pipe"],
    "log": ["log", "log -S -n 3"],
    "leaks": ["leaks"],
    "whatis": ["whatis kmem_cache_alloc", "whatis kmain+0x4",
               "whatis 0", "whatis -r page_array"],
    "verify": ["verify", "verify inode"],
    "meminfo": ["meminfo"],
    "buddyinfo": ["buddyinfo"],
    "pages": ["pages", "pages -r", "pages kmain"],
    "run": ["run ls /bin", "run nothing", "run -b sleep 60"],
    "continue": ["continue"],
    "ps": ["ps"],
    "sessions": ["sessions", "sessions end 99"],
    "kill": ["kill -0 1", "kill 9999"],
    "files": ["files 1", "files 9999"],
    "bt": ["bt", "bt 2"],
    "inodes": ["inodes", "inodes -a"],
    "mounts": ["mounts"],
    "umount": ["umount -f /proc", "umount -f /nothing"],
    "pipes": ["pipes"],
    "ports": ["ports", "ports -w"],
    "servers": ["servers"],
    "irqs": ["irqs"],
    "help": ["help", "help options", "help paper", "help 3.4"],
    "echo": ["echo word"],
    "cpus": ["cpus"],
    "locks": ["locks"],
    "defrag": ["defrag inode", "defrag -s task"],
    "sample": ["sample off"],
    "test": ["test line.history"],
    "bench": ["bench buddy"],
    "stress": ["stress 1 200"],
    "refuse": ["refuse 1 line"],
    "fail": ["fail", "fail slab 3", "fail off", "fail slab echo"],
    "lab": ["lab"],
    "services": ["services", "services meter"],
    "riddle": ["riddle"],
    "bug": ["bug list", "bug leak"],
    "sanitize": ["sanitize"],
    # end() runs these, or they leave nothing to look at.
    "dmesg": ["dmesg"],
    "sh": [],
    "fault": [],
    "cpufault": [],
    "panic": [],
    "reboot": [],
    "poweroff": [],
}
FIRST = ["debug +U inode", "kmem create box 200", "kmem alloc box 50",
         "run ls /bin"]
ANY_WORDS = {"echo", "panic", "run"}

HEAD = re.compile(r"[!> ]*[A-Z][A-Z0-9%/-]*(?: +[A-Z][A-Z0-9%/-]*){2,}")


def commands(machine):
    """The names that `help` lists."""
    return re.findall(r"(?m)^  (\w+) {2,}\S", machine.command("help"))


def check(line, text):
    """Of what `line` printed."""
    for shown in text.splitlines():
        assert len(shown) <= COLUMNS, (line, shown)
        assert shown.isascii() and shown.isprintable(), (line, shown)
        assert shown == shown.rstrip(), (line, shown)


def check_columns(line, text):
    """Where a row has a number below a head, their ends or their starts are in
    one column."""
    heads = []
    for shown in text.splitlines():
        if HEAD.fullmatch(shown):
            heads = [m.span() for m in re.finditer(r"\S+", shown)]
            continue
        if len(shown.split()) < len(heads) or \
                re.match(r"\S+: |\S+ [a-z]", shown):
            heads = []  # a sentence below the table
        for start, end in heads[:-1]:  # the last column may be any text
            for m in re.finditer(r"(?<!\S)\d+(?!\S)", shown):
                if m.start() < end and m.end() > start:
                    assert m.end() == end or m.start() == start, (line, shown)


def show(machine, names):
    for line in FIRST:
        machine.command(line)
    for name in names:
        for line in LINES[name]:
            text = machine.command(line)
            check(line, text)
            if name == "dmesg":  # its first line may be the end of a line
                text = text.partition("\n")[2]
            check_columns(line, text)


def refuse(machine, names):
    """Words that no command takes."""
    for name in names:
        if name not in ANY_WORDS:
            text = machine.command(f"{name} zz zz zz zz zz zz zz")
            assert text.startswith(f"usage: {name}"), text
            check(name, text)


def explain(machine, names):
    for name in names:
        text = machine.command(f"help {name}")
        assert text.startswith(f"usage: {name}"), text
        check(name, text)


def end(machine):
    """The commands that end something."""
    check("sh", qemu.plain(machine.program("sh")).rstrip("$ "))
    machine.command("exit")
    machine.send("panic look\r")
    check("panic", qemu.plain(machine.expect(r"slate!> \Z"))[:-len("slate!> ")])


@pytest.mark.parametrize("image", ["kernel", "workshop"])
def test_what_every_command_prints(image, request):
    with qemu.Machine(request.getfixturevalue(image)) as machine:
        machine.prompt()
        names = commands(machine)
        assert set(names) <= set(LINES), set(names) - set(LINES)
        assert image == "kernel" or set(LINES) - set(names) <= {
            "sanitize", "cpus", "cpufault"}
        show(machine, names)
        refuse(machine, names)
        explain(machine, names)
        end(machine)
