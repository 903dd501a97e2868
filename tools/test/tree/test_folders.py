"""What tests leave behind: folders of failed tests, and none of others."""

import sys

import pytest

from conftest import ROOT, execute

pytestmark = pytest.mark.plain

TESTS = """
def test_some(passing, shared_path):
    passing.append(shared_path.parent / "made")
    passing[-1].mkdir()
    assert {}


def test_more():
    pass
"""


@pytest.mark.parametrize("passes", [True, False])
def test_only_folders_of_failed_tests_are_kept(tmp_path, passes):
    (tmp_path / "test_it.py").write_text(TESTS.format(passes), "utf-8")
    kept = tmp_path / "kept"
    done = execute(sys.executable, "-m", "pytest", "-c",
                   ROOT / "tools/test/pytest.ini", "-p", "conftest",
                   f"--basetemp={kept}", tmp_path, cwd=tmp_path,
                   PYTHONPATH=f"{ROOT}:{ROOT / 'tools/test'}")
    assert done.returncode == (0 if passes else 1), done.stdout + done.stderr
    assert {path.name for path in kept.iterdir() if not path.is_symlink()} == \
        (set() if passes else {"test_it0", "made"})
