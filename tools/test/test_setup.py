"""tools/setup and tools/doctor: their output, without installing anything."""

import os
import re
import shutil
import subprocess
import sys

import pexpect
import pytest

from conftest import ROOT, copy_tree
from tools.run import watchdog

pytestmark = pytest.mark.plain


def run(*argv, cwd=ROOT, **env):
    return subprocess.run(argv, cwd=cwd, encoding="utf-8", check=False,
                          capture_output=True, env={**os.environ, **env})


def test_setup_is_valid_bash():
    assert run("bash", "-n", "tools/setup").returncode == 0


def test_setup_refuses_what_it_does_not_know():
    done = run("tools/setup", "--frobnicate")
    assert done.returncode == 2
    assert "--frobnicate" in done.stderr and len(done.stderr.splitlines()) == 1


def test_setup_finds_all_there_and_prints_versions():
    done = run("tools/setup")
    assert done.returncode == 0, done.stdout + done.stderr
    for tool in ("nasm", "qemu-system-i386", "gdb", "pytest"):
        assert re.search(rf"{tool}\S* .*\d+\.\d+", done.stdout), done.stdout
    assert "Installing" not in done.stdout


def system_without(folder, names, *fakes):
    """A PATH that has the named tools of this machine, and some fakes."""
    for name in names:
        found = shutil.which(name)
        if name == "python3":  # the program itself, not a wrapper's script
            found = os.path.realpath(sys.executable)
        if found:
            (folder / name).symlink_to(found)
    for name, text in fakes:
        (folder / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    return str(folder)


SHELL_TOOLS = ("bash chmod dirname uname cut awk tr head sed cmp grep mktemp "
               "rm cp tail tee python3 id env cat").split()


def test_setup_prints_the_command_on_fedora(tmp_path):
    path = system_without(tmp_path, SHELL_TOOLS, ("dnf", "exit 1"))
    done = run("tools/setup", PATH=path)
    assert done.returncode == 1
    line = next(line for line in done.stderr.splitlines() if "dnf" in line)
    assert line.startswith("tools/setup: run: sudo dnf install -y make ")
    assert "nasm" in line and "qemu-system-x86-core" in line


def test_setup_says_why_a_package_cannot_be_had(tmp_path):
    fake = ('case "$*" in *update*) exit 0 ;; esac\n'
            'echo "E: Unable to locate package"\nexit 100')
    path = system_without(tmp_path, SHELL_TOOLS, ("apt-get", fake),
                          ("sudo", 'exec "$@"'))
    done = run("tools/setup", PATH=path)
    assert done.returncode == 1
    assert "cannot install nasm: E: Unable to locate package" in done.stderr


APT = r"""case "$*" in
*update*) ;;
*--assume-no*) echo '0 upgraded, 2 newly installed, 0 to remove'
    echo 'Need to get 44.0 kB/1,234 MB of archives.'
    echo 'After this operation, 198 MB of additional disk space will be used.'
    exit 1 ;;
*) printf 'Get:%d http://there/\n' 1 2
    printf 'Unpacking %s ...\n' a b; printf 'Setting up %s ...\n' a b ;;
esac"""


def test_setup_says_what_it_fetches_and_how_far_it_is(tmp_path):
    path = system_without(tmp_path, SHELL_TOOLS, ("apt-get", APT),
                          ("sudo", 'exec "$@"'))
    said = run("tools/setup", PATH=path).stdout
    assert "\nFetching 2 packages, 44.0 kB; they take 198 MB of disk. About " \
        "a minute.\n" in said and "%" not in said
    child = pexpect.spawn("tools/setup", cwd=str(ROOT), encoding="utf-8",
                          env={**os.environ, "PATH": path},
                          timeout=watchdog.SECONDS)
    child.expect(pexpect.EOF)
    assert re.findall(r"\d+%", child.before) == [
        "16%", "33%", "50%", "66%", "83%", "100%"]


def test_setup_says_of_tools_what_they_are_for(tmp_path):
    said = run("tools/setup", DISPLAY="", WAYLAND_DISPLAY="").stdout
    assert re.search("^grub-pc-bin +is there, for make iso$", said, re.M), said
    assert re.search("^no display +so make run opens no window$", said, re.M)
    said = run("python3", "-m", "tools.run.doctor", DISPLAY="",
               WAYLAND_DISPLAY="").stdout
    assert re.search("^no display +- +ok +a window for make run$", said, re.M)


# Keeps pip from any package: no server listens on port 9 (`discard`).
OFFLINE = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "1",
           "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "",
           "PIP_EXTRA_INDEX_URL": "", "PIP_NO_INDEX": "",
           "BUILD": "build", "DEBUG": "", "SANITIZE": ""}


@pytest.fixture(scope="module")
def offline(shared_path):
    """A copy of the tree after a set-up that reached no package index, and
    what the set-up printed."""
    copy_tree(shared_path)
    return shared_path, run("tools/setup", cwd=shared_path, **OFFLINE)


@pytest.mark.long
def test_setup_without_a_package_index_says_what_does_not_work(offline):
    done = offline[1]
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^tools/setup: cannot install the Python packages, which "
                     r"make test, gdb and grade need: no connection to the "
                     r"package index; ERROR: .*pytest", done.stderr,
                     re.M), done.stderr
    assert "but this does: make run" in done.stderr
    assert "All tools are there" not in done.stdout


@pytest.mark.long
def test_make_run_works_without_python_packages(offline):
    done = run("make", "run", cwd=offline[0], CMD="verify; poweroff", **OFFLINE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every invariant holds" in done.stdout


def expect_refused(tree):
    for target, speaker in ("test", "make"), ("grade", "tools/grade"):
        done = run("make", target, "LAB=2", cwd=tree, **OFFLINE)
        lines = [line for line in done.stderr.splitlines()
                 if not line.startswith("make: *** ")]
        assert done.returncode == 2 and not done.stdout, done.stdout
        assert lines == [f"{speaker}: .venv lacks the Python packages: "
                         "tools/setup installs them, or says why it cannot"]


@pytest.mark.long
def test_tests_and_grades_say_that_packages_are_missing(offline):
    expect_refused(offline[0])


@pytest.mark.long
def test_packages_that_are_half_installed_are_not_used(offline):
    """.venv is as after a power cut in pip. The next set-up begins anew."""
    tree, _ = offline
    packages = next((tree / ".venv").glob("lib/python3*/site-packages"))
    half = packages / "pytest"
    half.mkdir()
    (half / "__init__.py").write_text("raise SystemExit('half')\n", "utf-8")
    expect_refused(tree)
    assert "Making .venv" in run("tools/setup", cwd=tree, **OFFLINE).stdout
    assert not half.exists()


@pytest.mark.long
def test_v86_without_a_package_index_says_what_does_not_work(tmp_path):
    folder = tmp_path / "v86"
    done = run("make", f"{folder}/done", f"V86_ENV={folder}", **OFFLINE)
    assert done.returncode == 2 and not (folder / "done").exists()
    assert re.search("^ERROR: .*nodejs.*\nmake: cannot install v86 and Node.js,"
                     " see above: test-v86 and test-all need them$",
                     done.stderr, re.M), done.stderr


def test_doctor_names_what_is_missing_and_how_to_get_it(tmp_path):
    path = system_without(tmp_path, ["python3", "env"], ("apt-get", "exit 1"))
    done = run("python3", "-m", "tools.run.doctor", PATH=path)
    assert done.returncode == 1
    assert re.search(r"^nasm +- +missing", done.stdout, re.M), done.stdout
    assert "get it: sudo apt-get install -y nasm" in done.stdout


def test_doctor_is_content_here():
    done = run("python3", "-m", "tools.run.doctor")
    assert done.returncode == 0, done.stdout
    assert "missing" not in done.stdout and "too old" not in done.stdout
