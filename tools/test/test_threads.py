"""mm/ under real threads and the thread sanitizer, which reports accesses that
no lock orders; and the other allocators, on several processors. A run is
bounded by its operations, not by time."""

import shutil
import subprocess

import pytest

from conftest import BUILD, OTHERS, ROOT
from tools.run import watchdog

MMTHREADS = BUILD / "threads" / "mmthreads"
OTHERTHREADS = BUILD / "threads-mag" / "otherthreads"
OPERATIONS = 20_000

pytestmark = [pytest.mark.long, pytest.mark.plain]


def run(program, *arguments):
    assert program.exists(), f"{program} does not exist: make test-threads"
    # The sanitizer needs addresses that are not random where the kernel
    # randomises more bits than it expects.
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []
    done = watchdog.run(
        [*fixed, str(program), *map(str, arguments), str(OPERATIONS)], cwd=ROOT,
        encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        errors="replace")
    assert done.returncode == 0 and "ThreadSanitizer" not in done.stdout, \
        f"{arguments}:\n{done.stdout[:6000]}"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_threads(seed):
    run(MMTHREADS, seed)


@pytest.mark.parametrize("allocator", OTHERS)
@pytest.mark.parametrize("seed", [1, 2])
def test_threads_of_the_other_allocators(allocator, seed):
    run(OTHERTHREADS, allocator, seed)
