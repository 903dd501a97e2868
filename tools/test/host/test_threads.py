"""mm/ under real threads and the thread sanitizer, which reports accesses that
no lock orders; and the other allocators, on several processors. A run is
bounded by its operations, not by time."""

import pytest

from conftest import BUILD, OTHERS
from tools.test import mutants

MMTHREADS = BUILD / "threads" / "mmthreads"
OTHERTHREADS = BUILD / "threads-mag" / "otherthreads"
OPERATIONS = 20_000

pytestmark = [pytest.mark.long, pytest.mark.plain]


def run(program, *arguments):
    assert program.exists(), f"{program} does not exist: make test-threads"
    done = mutants.with_threads(program, *arguments, OPERATIONS)
    assert done.returncode == 0, f"{arguments}:\n{done.stdout[:6000]}"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_threads(seed):
    run(MMTHREADS, seed)


@pytest.mark.parametrize("allocator", OTHERS)
@pytest.mark.parametrize("seed", [1, 2])
def test_threads_of_the_other_allocators(allocator, seed):
    run(OTHERTHREADS, allocator, seed)
