"""The core of the ATA driver as a program of this machine, under the
sanitizers, against a drive that is a program too: every cmocka case becomes a
pytest case."""

import subprocess

import pytest

from conftest import BUILD, ROOT
from tools.run import watchdog
from tools.test import tap

pytestmark = pytest.mark.plain

ATATEST = BUILD / "host" / "atatest"
SOURCES = ROOT / "drivers/servers/ata/tests"


def pytest_generate_tests(metafunc):
    """The cases' names, as the program's tables have them."""
    if "ata_case" in metafunc.fixturenames:
        names = [line.split("(")[1].split(")")[0]
                 for path in sorted(SOURCES.glob("test_*.c"))
                 for line in path.read_text(encoding="utf-8").splitlines()
                 if line.startswith("        CASE(")]
        metafunc.parametrize("ata_case", names)


@pytest.fixture(scope="module")
def results():
    assert ATATEST.exists(), f"{ATATEST} does not exist: make test-host"
    done = watchdog.run(
        [str(ATATEST)], cwd=ROOT, encoding="utf-8", errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={"ASAN_OPTIONS": "detect_leaks=0",
             "CMOCKA_MESSAGE_OUTPUT": "TAP"})
    return tap.parse(done.stdout, notes_first=False), done.stdout


def test_ata(ata_case, results):
    cases, text = results
    if ata_case not in cases or not cases[ata_case].passed:
        pytest.fail(text[-3000:], pytrace=False)
