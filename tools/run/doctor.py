"""Looks at the tools that Slate needs: `make doctor`.

A line for each tool of tools/tools.list: its version, whether that will do,
what it is for, and where it is missing the command that installs it. Exit
status 1 if something is missing or too old.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SYSTEMS = [  # package manager, column of tools.list, how to install
    ("apt-get", "debian", "sudo apt-get install -y"),
    ("dnf", "fedora", "sudo dnf install -y"),
    ("pacman", "arch", "sudo pacman -S --needed"),
    ("brew", "macos", "brew install"),
]
COLUMNS = ["check", "least", "debian", "fedora", "arch", "macos", "use"]


def output(*argv, stdin=None):
    """The output of a command, or None if it fails or does not exist."""
    try:
        done = subprocess.run(argv, input=stdin, check=True, encoding="utf-8",
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout


def cross_compiler():
    """The kernel's compiler, in the Makefile's order."""
    prefix = os.environ.get("CROSS_COMPILE")
    names = [[prefix + "gcc"]] if prefix else [
        ["i686-elf-gcc"], ["i686-linux-gnu-gcc"], ["gcc", "-m32"]]
    for argv in names:
        if output(*argv, "-m32", "-E", "-", stdin="") is not None:
            return argv
    return None


def find(check):
    """(name, version text) of a tool that satisfies a check, or None."""
    kind, _, what = check.partition(":")
    if kind == "cross":
        argv = cross_compiler()
        return argv and (" ".join(argv), output(*argv, "--version"))
    if kind == "header":
        source = ("#include <stdarg.h>\n#include <stddef.h>\n"
                  "#include <stdint.h>\n#include <setjmp.h>\n"
                  f"#include <{what}>\n")
        ok = output("gcc", "-E", "-x", "c", "-", stdin=source) is not None
        return (what, "") if ok else None
    if kind == "python":
        ok = output("python3", "-c", f"import {what}") is not None
        return (f"python3 {what}", "") if ok else None
    if kind == "window":
        if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            return "no display", None
        kinds = (output("qemu-system-i386", "-display", "help") or "").split()
        return ("QEMU's window", "") if {"gtk", "sdl", "cocoa"} & set(kinds) \
            else None
    if kind == "linux":
        if sys.platform != "linux":
            return f"{what}: not on this system", None
        return (what, "") if shutil.which(what) else None
    if kind == "path":
        for path in what.split(","):
            if os.path.exists(path):
                return path, ""
        return None
    for name in check.split(","):
        if shutil.which(name):
            return name, output(name, "--version")
    return None


def numbers(text):
    """A version as a tuple, for comparing."""
    return tuple(int(n) for n in text.split("."))


def verdict(row, found):
    """(text to print as version, the problem or "ok")."""
    if not found:
        return "-", "missing"
    if found[1] is None:
        return "-", "ok"
    # Words in parentheses name the distributor's package, not the tool.
    text = re.sub(r"\(.*?\)", "", (found[1] or "").split("\n", 1)[0])
    match = re.search(r"\d+(\.\d+)+", text)
    version = match.group() if match else ""
    if row["least"] != "-" and version:
        if numbers(version) < numbers(row["least"]):
            return version, f"too old: {row['least']} or later"
    return version or "found", "ok"


def rows():
    """The lines of tools.list as dictionaries."""
    for line in (ROOT / "tools/tools.list").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            yield dict(zip(COLUMNS, line.split("|")))


def venv():
    """The state of .venv: (version, verdict)."""
    version = output(str(ROOT / ".venv/bin/python"), "-c",
                     "import pytest, gcovr, qemu.qmp; "
                     "print(pytest.__version__)")
    return (version.strip(), "ok") if version else ("-", "missing")


def report(name, version, state, use, advice):
    print(f"{name:<26} {version:<10} {state:<8} {use}")
    if state != "ok":
        print(f"{'':<26} get it: {advice}")
    return state == "ok"


def main():
    argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter).parse_args()
    system, install = next(
        ((column, line) for program, column, line in SYSTEMS
         if shutil.which(program)), ("debian", "install, as Debian calls it:"))
    print(f"{'tool':<26} {'version':<10} {'verdict':<8} used for")
    good = True
    for row in rows():
        found = find(row["check"])
        name = found[0] if found else row["check"].split(",")[0]
        version, state = verdict(row, found)
        good &= report(name, version, state, row["use"],
                       f"{install} {row[system]}")
    version, state = venv()
    good &= report(".venv pytest", version, state, "tests", "tools/setup")
    if not good:
        print("\nNot all is well: tools/setup installs what is missing.")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
