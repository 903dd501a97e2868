"""Processor seconds of each test, its children's included.

A plugin of pytest (conftest.py names it), and the program of `make test-times`.
Wall-clock time depends on the load of the host; processor time hardly does, so
it says which test to make cheaper. A child is counted when it has been waited
for: a machine that a file's tests share counts for the last of them.

Each run writes build/times/NAME.json, where NAME is the --times option. The
program prints them, most expensive first: each file's sum, then single tests.
"""

import json
import re
import resource
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

SHOWN = 40  # single tests that the program prints of a run


def processor_seconds():
    """User and system time of this process and of children that have ended."""
    return sum(usage.ru_utime + usage.ru_stime for usage in map(
        resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


# ---- the plugin --------------------------------------------------------------

def pytest_addoption(parser):
    parser.addoption("--times", metavar="FILE", help="write the processor "
                     "seconds of each test there, as JSON")


class Clock:
    """Measures in the process that runs tests: a report carries the time that
    passed since the one before it."""

    def pytest_collection_finish(self):
        self.last = processor_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
        report = yield
        now = processor_seconds()
        report.user_properties.append(("processor", now - self.last))
        self.last = now
        return report


class Collector:
    """Adds up in the process that writes the file."""

    def __init__(self, path):
        self.path, self.seconds = Path(path), Counter()

    def pytest_runtest_logreport(self, report):
        name = re.sub(r"@[\w-]+$", "", report.nodeid)  # xdist's group
        self.seconds[name] += sum(
            value for key, value in report.user_properties
            if key == "processor")

    def pytest_sessionfinish(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(
            {name: round(value, 3) for name, value in self.seconds.items()},
            indent=0), encoding="utf-8")


def pytest_configure(config):
    config.pluginmanager.register(Clock())
    path = config.getoption("--times")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Collector(path))


# ---- the program -------------------------------------------------------------

def table(seconds):
    """Lines: files, then the most expensive tests."""
    files, tests = Counter(), Counter()
    for name, value in seconds.items():
        file = name.split("::", 1)[0]
        files[file] += value
        tests[file] += 1
    yield "  SECONDS  TESTS  FILE"
    for file, value in files.most_common():
        yield f"{value:9.1f} {tests[file]:6}  {file}"
    yield f"{sum(files.values()):9.1f} {len(seconds):6}  in all"
    yield ""
    yield "  SECONDS  TEST"
    for name, value in Counter(seconds).most_common(SHOWN):
        yield f"{value:9.1f}  {name}"


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # the reader may stop
    paths = sorted(Path(sys.argv[1]).glob("*.json"))
    if not paths:
        sys.exit("no run of the tests has been timed: make test")
    for path in paths:
        print(f"{path.stem}, processor seconds\n")
        print("\n".join(table(json.loads(path.read_text(encoding="utf-8")))))
        print()


if __name__ == "__main__":
    main()
