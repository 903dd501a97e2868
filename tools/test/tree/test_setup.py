"""tools/setup and tools/doctor: their output, without installing anything."""

import json
import os
import re
import shutil
import subprocess
import sys

import pexpect
import pytest

from conftest import ROOT, copy_tree, execute
from tools.run import doctor, watchdog

pytestmark = pytest.mark.plain


NO_DISPLAY = {"DISPLAY": "", "WAYLAND_DISPLAY": ""}


def test_setup_is_valid_bash():
    assert execute("bash", "-n", "tools/setup").returncode == 0


@pytest.mark.parametrize("argv, said", [
    (["--frobnicate"], "unknown argument --frobnicate; it takes web or --help"),
    (["web", "web"], "it takes one argument")])
def test_setup_refuses_what_it_does_not_know(argv, said):
    done = execute("tools/setup", *argv)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr == f"tools/setup: {said}\n"


def test_setup_says_what_it_installs_for_the_page():
    assert re.search("tools/setup web .*`make web`.*Node.js.*Chromium",
                     execute("tools/setup", "--help").stdout, re.S)


def test_setup_finds_all_there_and_prints_versions():
    done = execute("tools/setup", **NO_DISPLAY)
    assert done.returncode == 0, done.stdout + done.stderr
    for tool in ("nasm", "qemu-system-i386", "gdb", "pytest"):
        assert re.search(rf"{tool}\S* .*\d+\.\d+", done.stdout), done.stdout
    assert "Installing" not in done.stdout
    assert re.search("^grub-pc-bin +is there, for make iso$", done.stdout, re.M)
    assert re.search("^no display +so make run opens no window$", done.stdout,
                     re.M)


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
    done = execute("tools/setup", PATH=path)
    assert done.returncode == 1
    line = next(line for line in done.stderr.splitlines() if "dnf" in line)
    assert line.startswith("tools/setup: run: sudo dnf install -y make ")
    assert "nasm" in line and "qemu-system-x86-core" in line


def test_setup_says_why_a_package_cannot_be_had(tmp_path):
    fake = ('case "$*" in *update*) exit 0 ;; esac\n'
            'echo "E: Unable to locate package"\nexit 100')
    path = system_without(tmp_path, SHELL_TOOLS, ("apt-get", fake),
                          ("sudo", 'exec "$@"'))
    done = execute("tools/setup", PATH=path)
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
    said = execute("tools/setup", PATH=path).stdout
    assert "\nFetching 2 packages, 44.0 kB; they take 198 MB of disk. About " \
        "a minute.\n" in said and "%" not in said
    child = pexpect.spawn("tools/setup", cwd=str(ROOT), encoding="utf-8",
                          env={**os.environ, "PATH": path},
                          timeout=watchdog.SECONDS)
    child.expect(pexpect.EOF)
    assert re.findall(r"\d+%", child.before) == [
        "16%", "33%", "50%", "66%", "83%", "100%"]


# Keeps pip from any package: no server listens on port 9 (`discard`).
OFFLINE = {"SLATE_VENV": "none",
           "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "1",
           "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "",
           "PIP_EXTRA_INDEX_URL": "", "PIP_NO_INDEX": "",
           "BUILD": "build", "DEBUG": "", "SANITIZE": ""}


@pytest.fixture(scope="module")
def offline(shared_path):
    """A copy of the tree after a set-up that reached no package index, and
    what the set-up printed."""
    copy_tree(shared_path)
    return shared_path, execute("tools/setup", cwd=shared_path, **OFFLINE)


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
    done = execute("make", "run", cwd=offline[0], CMD="verify; poweroff",
                   **OFFLINE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every invariant holds" in done.stdout


def expect_refused(tree):
    for target, speaker in ("test", "make"), ("grade", "tools/grade"):
        done = execute("make", target, "LAB=2", cwd=tree, **OFFLINE)
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
    assert "Making .venv" in execute("tools/setup", cwd=tree, **OFFLINE).stdout
    assert not half.exists()


@pytest.mark.long
def test_node_without_a_package_index_says_what_does_not_work(tmp_path):
    folder = tmp_path / "node"
    done = execute("make", f"{folder}/done", f"NODE_ENV={folder}", **OFFLINE)
    assert done.returncode == 2 and not (folder / "done").exists()
    assert re.search("^ERROR: .*nodejs.*\nmake: cannot install Node.js and its "
                     "packages, see above: web, test-v86 and test-all need "
                     "them$",
                     done.stderr, re.M), done.stderr


# ---- one set-up for many trees ---------------------------------------------

# A python3 that makes an environment without packages, in which what a set-up
# asks of it works; `pip install` runs the commands in PIP and notes its folder.
PYTHON = """\
case "$*" in
"-m venv "*)
    mkdir -p "$3/bin" "$3/lib"
    ln -s "$0" "$3/bin/python" ;;
*"-m pip install"*)
    eval "$PIP" || exit
    echo "$0" >>"$LOG"
    : >"${0%/*}/../lib/installed" ;;
*"import pytest, gcovr"*) test -f "${0%/*}/../lib/installed" ;;
*) exec "REAL" "$@" ;;
esac"""


# All that a set-up reads. It is about packages here, so the list of tools is
# short: each takes time.
NEEDED = "tools/setup", "tools/tools.list", "tools/requirements.txt"
TOOLS = "python3|-|python3|python3|python|python|everything\n"


class Trees:
    """Trees of which a set-up needs no network, and what it installed."""

    def __init__(self, folder):
        self.folder, self.log = folder, folder / "log"
        self.cache = folder / "cache/slate"
        (folder / "bin").mkdir()
        self.env = {**os.environ, "LOG": str(self.log), "PIP": ":",
                    "SLATE_VENV": "", "XDG_CACHE_HOME": str(folder / "cache"),
                    "PATH": system_without(
                        folder / "bin", [
                            *(n for n in SHELL_TOOLS if n != "python3"),
                            "ln", "ls", "mkdir", "readlink", "sleep", "touch"],
                        ("python3", PYTHON.replace(
                            "REAL", os.path.realpath(sys.executable))))}

    def tree(self, name):
        for file in NEEDED:
            target = self.folder / name / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, target)
        (self.folder / name / NEEDED[1]).write_text(TOOLS, "utf-8")
        return self.folder / name

    def start(self, name, **env):
        return subprocess.Popen(
            [self.tree(name) / "tools/setup"], encoding="utf-8",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**self.env, **env})

    def set_up(self, name, **env):
        """What a set-up of the tree prints."""
        return self.start(name, **env).communicate()[0]

    def whole(self, name):
        venv = self.folder / name / ".venv"
        return (venv / "requirements.txt").exists() and \
            (venv / "lib/installed").exists()

    def installed(self):
        return len(self.log.read_text("utf-8").splitlines())

    def folders(self):
        """What the cache has, but for the links that lead to it."""
        return [p for p in self.cache.iterdir() if not p.is_symlink()]


@pytest.fixture
def trees(tmp_path):
    return Trees(tmp_path)


def test_packages_are_installed_once_for_all_trees(trees):
    assert "Python packages, in " in trees.set_up("a")
    said = trees.set_up("b")
    assert f"Making .venv, with the packages in {trees.cache}/venv-" in said
    assert trees.whole("a") and trees.whole("b") and trees.installed() == 1
    assert "Making" not in trees.set_up("a")
    (trees.folder / "b/.venv/book").mkdir()
    assert not (trees.folder / "a/.venv/book").exists()
    requirements = trees.tree("c") / "tools/requirements.txt"
    requirements.write_text(requirements.read_text("utf-8") + "\n", "utf-8")
    venv = trees.folder / "c/.venv"
    venv.mkdir()  # of another version of the tree
    (venv / "requirements.txt").write_text("old\n", "utf-8")
    done = subprocess.run([trees.folder / "c/tools/setup"], env=trees.env,
                          check=False, capture_output=True)
    assert b"Making .venv" in done.stdout and trees.whole("c")
    assert trees.installed() == 2 and len(trees.folders()) == 2


@pytest.mark.long
def test_packages_that_are_damaged_are_installed_again(trees):
    """For all trees that have links to them."""
    trees.set_up("a")
    trees.set_up("b")
    (trees.folders()[0] / "lib/installed").unlink()
    assert not trees.whole("a")
    trees.set_up("a")
    assert trees.whole("a") and trees.whole("b")
    assert trees.installed() == 2 and len(trees.folders()) == 1
    shutil.rmtree(trees.cache)
    trees.set_up("b")
    assert trees.whole("a") and trees.whole("b") and trees.installed() == 3


@pytest.mark.long
def test_a_set_up_that_ends_early_leaves_nothing_that_is_used(trees):
    assert "cannot install the Python packages" in \
        trees.set_up("a", PIP="echo no >&2; false")
    assert not (trees.folder / "a/.venv").exists() and not trees.folders()
    first = trees.start("a", PIP="kill -9 $PPID; false")
    first.communicate()
    assert not (trees.folder / "a/.venv").exists() and trees.folders()
    trees.set_up("a")
    assert trees.whole("a") and trees.installed() == 1


@pytest.mark.long
def test_set_ups_beside_each_other(trees):
    """Each waits in pip until all are there; then both have what is whole."""
    both = [trees.start(name, PIP='touch "$LOG.$$"; while [ "$(ls "$LOG".* | '
                        'grep -c .)" -lt 2 ]; do sleep 0.1; done')
            for name in "ab"]
    for process in both:
        process.communicate()
    assert trees.installed() == 2
    assert trees.whole("a") and trees.whole("b")
    trees.set_up("c")
    assert trees.whole("c") and trees.installed() == 2


@pytest.mark.long
def test_another_place_for_the_packages(trees):
    trees.set_up("a", SLATE_VENV="none")
    assert trees.whole("a") and not trees.cache.exists()
    assert not (trees.folder / "a/.venv/lib").is_symlink()
    trees.set_up("b", SLATE_VENV="../packages")
    assert trees.whole("b") and list((trees.folder / "packages").iterdir())
    trees.set_up("c", XDG_CACHE_HOME="/dev/null")
    assert trees.whole("c") and not (trees.folder / "c/.venv/lib").is_symlink()


def test_a_container_has_what_the_set_up_installs():
    """It names no package, and has the files that the tests above run with."""
    folder = ROOT / ".devcontainer"
    made = json.loads((folder / "devcontainer.json").read_text("utf-8"))
    text = (folder / made["build"]["dockerfile"]).read_text("utf-8")
    copied, = re.findall(r"(?m)^COPY (.*) /tmp/tree/tools/$", text)
    assert tuple(copied.split()) == NEEDED
    assert re.findall(r"(?m)^RUN (\S+ \S+)", text) == [
        "bash /tmp/tree/tools/setup"]
    packages = {word for row in doctor.rows()
                for word in row["debian"].split()}
    assert "nasm" in packages and not packages & set(text.split())
    assert made["postCreateCommand"] == "bash tools/setup"


def test_only_the_compiler_that_make_takes_is_found():
    """If CROSS_COMPILE names a compiler, make uses no other."""
    found = execute("tools/setup", "--found", CROSS_COMPILE="nowhere-").stdout
    assert "nasm|" in found and "cross:|" not in found


def test_doctor_names_what_is_missing_and_how_to_get_it(tmp_path):
    path = system_without(tmp_path, SHELL_TOOLS, ("apt-get", "exit 1"))
    done = execute("python3", "-m", "tools.run.doctor", PATH=path)
    assert done.returncode == 1
    assert re.search(r"^nasm +- +missing", done.stdout, re.M), done.stdout
    assert "get it: sudo apt-get install -y nasm" in done.stdout


def test_doctor_is_content_here():
    done = execute("python3", "-m", "tools.run.doctor", **NO_DISPLAY)
    assert done.returncode == 0, done.stdout
    assert "missing" not in done.stdout and "too old" not in done.stdout
    assert re.search("^no display +- +ok +a window for make run$", done.stdout,
                     re.M)
