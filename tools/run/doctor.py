"""Looks at the tools that Slate needs: `make doctor`.

A line for each tool of tools/tools.list: its version, whether that will do,
what it is for, and where it is missing the command that installs it. Exit
status 1 if something is missing or too old.
"""

import argparse
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


def output(*argv):
    """The output of a command, or "" if it fails or does not exist."""
    try:
        return subprocess.run(argv, check=True, encoding="utf-8",
                              stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def found():
    """{check: (the tool that satisfies it, the first line of its version)}."""
    lines = output("bash", ROOT / "tools/setup", "--found").splitlines()
    return {check: (name, version) for check, name, version in
            (line.split("|", 2) for line in lines)}


def numbers(text):
    """A version as a tuple, for comparing."""
    return tuple(int(n) for n in text.split("."))


def verdict(row, name, text):
    """(version to print, the problem or "ok"); `name` is None: no tool."""
    if name is None:
        return "-", "missing"
    if name.endswith(("no display", "not on this system")):
        return "-", "ok"
    # Words in parentheses name the distributor's package, not the tool.
    match = re.search(r"\d+(\.\d+)+", re.sub(r"\(.*?\)", "", text))
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
    version = output(ROOT / ".venv/bin/python", "-c",
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
    good, there = True, found()
    for row in rows():
        name, text = there.get(row["check"], (None, ""))
        version, state = verdict(row, name, text)
        good &= report(name or row["check"].split(",")[0], version, state,
                       row["use"], f"{install} {row[system]}")
    version, state = venv()
    good &= report(".venv pytest", version, state, "tests", "tools/setup")
    if not good:
        print("\nNot all is well: tools/setup installs what is missing.")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
