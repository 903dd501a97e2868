"""The core of the ATA driver as a program of this machine, under the
sanitizers, against a drive that is a program too: every cmocka case becomes a
pytest case."""

import pytest

from conftest import BUILD, ROOT
from tools.test import tap

pytestmark = pytest.mark.plain

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
    return tap.program(BUILD / "host/atatest", notes_first=False,
                       env={"ASAN_OPTIONS": "detect_leaks=0",
                            "CMOCKA_MESSAGE_OUTPUT": "TAP"})


def test_ata(ata_case, results):
    tap.passed(ata_case, results)
