"""mm/ under real threads and the thread sanitizer, which reports accesses that
no lock orders. A run is bounded by its operations, not by time."""

import shutil
import subprocess

import pytest

from conftest import BUILD, ROOT
from tools.run import watchdog

MMTHREADS = BUILD / "threads" / "mmthreads"
OPERATIONS = 20_000


@pytest.mark.long
@pytest.mark.plain
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_threads(seed):
    assert MMTHREADS.exists(), f"{MMTHREADS} does not exist: make test-threads"
    # The sanitizer needs addresses that are not random where the kernel
    # randomises more bits than it expects.
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []
    done = watchdog.run(
        [*fixed, str(MMTHREADS), str(seed), str(OPERATIONS)], cwd=ROOT,
        encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        errors="replace")
    assert done.returncode == 0 and "ThreadSanitizer" not in done.stdout, \
        f"seed {seed}:\n{done.stdout[:6000]}"
