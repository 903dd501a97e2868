"""The host tests notice when mm/ is changed (tools/test/mutants.py)."""

import re
import subprocess
import sys

from conftest import ROOT, long
from tools.test import mutants

TRIED, KILLED = 12, 7    # four in five are killed; some change nothing


def test_mutants_change_a_line_of_code():
    found = mutants.mutants_of("mm/buddy.c")
    lines = (ROOT / "mm/buddy.c").read_text().splitlines(keepends=True)
    assert len(found) > 500
    for mutant in found:
        assert lines[mutant.line - 1] == mutant.old != mutant.new
        assert "MM_ASSERT" not in mutant.old


@long
def test_most_mutants_are_killed():
    done = subprocess.run(
        [sys.executable, "-m", "tools.test.mutants", "--sample", str(TRIED)],
        cwd=ROOT, check=True, capture_output=True, text=True)
    killed = re.search(rf": {TRIED} tried, (\d+) killed", done.stdout)
    assert int(killed[1]) >= KILLED, done.stdout
