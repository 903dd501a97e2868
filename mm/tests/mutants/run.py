#!/usr/bin/env python3
"""Breaks the allocator in every way that mutants.py and mutants_debug.py list,
and looks whether the case that should notice does.

    run.py [NAME ...]     all mutants, or these
    run.py -l             list them

Each mutant is built in a copy of the tree from objects that are compiled once;
only what the change touches is compiled again. A line per mutant:

    KILLED   colour_step_8      S-24  by kmem.S24_step_is_the_alignment…
    SURVIVED …

The exit status is 1 if one survives, and 2 if one does not apply or compile.
"""

import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import mutants as core  # noqa: E402
import mutants_debug as debug  # noqa: E402

MUTANTS = core.MUTANTS + debug.MUTANTS
ROOT = Path(__file__).resolve().parents[3]
CC = os.environ.get("HOSTCC", "gcc")
CFLAGS = ["-std=gnu17", "-g", "-O0", "-w", "-I.", "-Imm/tests/host",
          "-DCASE_SECONDS=10", "-fno-omit-frame-pointer"]
LIBS = ["-lcmocka"]
TRACES = {"trace": ["-t", "1", "60000"], "modes": ["-m", "1", "30000"]}
SECONDS = 60
JOBS = min(2, os.cpu_count() or 1)


class Broken(Exception):
    """A mutant that cannot be tried."""


def sources(tree):
    return sorted(str(p.relative_to(tree)) for folder in
                  ("mm", "mm/debug", "mm/tests", "mm/debug/tests",
                   "mm/tests/host")
                  for p in (tree / folder).glob("*.c"))


def object_of(source):
    return source.replace("/", "_")[:-2] + ".o"


def compile_one(tree, source, out):
    done = subprocess.run([CC, *CFLAGS, "-c", source, "-o",
                           str(out / object_of(source))],
                          cwd=tree, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise Broken(f"does not compile:\n{done.stderr}")


def link(objects, program):
    done = subprocess.run([CC, *map(str, objects), *LIBS, "-o", str(program)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Broken(f"does not link:\n{done.stderr}")


def run(program, arguments):
    """True if the program ends well."""
    try:
        done = subprocess.run([str(program), *arguments], check=False,
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def killer_arguments(killer):
    return TRACES.get(killer, [killer])


def touched(tree, file):
    """What to compile again: the file, or for a header of mm/ all of mm/. (The
    tests keep their own copy of what a header says inline.)"""
    if file.endswith(".c"):
        return [file]
    return [s for s in sources(tree) if s.count("/") == 1]


def try_mutant(mutant, base, objects):
    """True if the killer notices."""
    name, _, file, old, new, killer = mutant
    with tempfile.TemporaryDirectory(prefix=f"mutant-{name}-") as folder:
        tree = Path(folder) / "tree"
        out = Path(folder) / "out"
        out.mkdir()
        shutil.copytree(base, tree)
        text = (tree / file).read_text()
        if text.count(old) != 1:
            raise Broken(f"the old text occurs {text.count(old)} times in "
                         f"{file}, not once")
        (tree / file).write_text(text.replace(old, new))
        changed = touched(tree, file)
        for source in changed:
            compile_one(tree, source, out)
        program = out / "mmtest"
        link([out / object_of(s) if s in changed else objects / object_of(s)
              for s in sources(tree)], program)
        return not run(program, killer_arguments(killer))


def build_base(tree, objects):
    """Copies the sources and compiles the unbroken program, which must pass
    what kills the mutants."""
    for folder in ("mm", "kernel/lib"):
        shutil.copytree(ROOT / folder, tree / folder)
    objects.mkdir()
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        list(pool.map(lambda s: compile_one(tree, s, objects), sources(tree)))
    program = objects / "mmtest"
    link([objects / object_of(s) for s in sources(tree)], program)
    return program


def check_killers(program, mutants):
    """A case that fails anyway kills nothing; nor does a missing one."""
    killers = sorted({m[5] for m in mutants})
    bad = [k for k in killers if not run(program, killer_arguments(k))]
    if bad:
        raise Broken("fail without any mutant: " + ", ".join(bad))


def report(mutant, killed):
    name, rule, _, _, _, killer = mutant
    verdict = "KILLED  " if killed else "SURVIVED"
    print(f"{verdict} {name:32} {rule:8} by {killer}", flush=True)


def run_all(mutants):
    broken = 0
    killed = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder) / "tree"
        objects = Path(folder) / "objects"
        try:
            check_killers(build_base(tree, objects), mutants)
        except Broken as error:
            print(f"mutants: {error}", file=sys.stderr)
            return 2
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            tries = [pool.submit(try_mutant, m, tree, objects)
                     for m in mutants]
            for mutant, attempt in zip(mutants, tries):
                try:
                    result = attempt.result()
                except Broken as error:
                    broken += 1
                    print(f"BROKEN   {mutant[0]}: {error}", flush=True)
                    continue
                killed += result
                report(mutant, result)
    print(f"{len(mutants)} mutants, {killed} killed")
    return 2 if broken else 0 if killed == len(mutants) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("-l", "--list", action="store_true",
                        help="list the mutants")
    parser.add_argument("name", nargs="*", help="mutants to try (all)")
    args = parser.parse_args()
    known = [m[0] for m in MUTANTS]
    if len(set(known)) != len(known):
        parser.error("two mutants have one name")
    if args.list:
        for name, rule, file, _, _, killer in MUTANTS:
            print(f"{name:32} {rule:8} {file:20} {killer}")
        return 0
    unknown = [n for n in args.name if n not in known]
    if unknown:
        parser.error("no such mutant: " + ", ".join(unknown))
    return run_all([m for m in MUTANTS
                    if not args.name or m[0] in args.name])


if __name__ == "__main__":
    sys.exit(main())
