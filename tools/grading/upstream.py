"""A hand-out that is a git repository: `make lab GIT=1`, `make update`.

    python3 -m tools.grading.upstream --from dir-or-url

The branch `upstream` has what was handed out, and `main`, which begins there,
is the student's. An update makes the content of a newer hand-out of the same
lab a commit on `upstream`, and merges that into the student's branch. Nothing
is lost: with changes that are not committed it does not begin, and a conflict
can be solved or undone as in any merge.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.grading import labs
from tools.grading.labs import LabError

ROOT = Path(__file__).resolve().parents[2]
BRANCH, MAIN = "upstream", "main"
AUTHOR = {"NAME": "Slate", "EMAIL": "slate@localhost"}


# Variables that lead git to another repository.
ELSEWHERE = {f"GIT_{what}" for what in (
    "DIR", "WORK_TREE", "INDEX_FILE", "PREFIX", "COMMON_DIR",
    "OBJECT_DIRECTORY", "NAMESPACE")}


class Repository:
    """The git repository in a folder."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.env = {key: value for key, value in os.environ.items()
                    if key not in ELSEWHERE}

    def run(self, *arguments, **env):
        """(status, what it prints) of a git command."""
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, check=False,
            encoding="utf-8", errors="replace", capture_output=True,
            stdin=subprocess.DEVNULL, env={**self.env, **env})
        return done.returncode, done.stdout.strip() or done.stderr.strip()

    def __call__(self, *arguments, **env):
        """What a git command prints; it must not fail."""
        status, said = self.run(*arguments, **env)
        if status:
            raise LabError(f"git {arguments[0]}: {said}")
        return said

    def tree_of(self, folder):
        """The git tree of a folder's files, but for ignored ones."""
        with tempfile.TemporaryDirectory() as index:
            env = {"GIT_DIR": str((self.folder / ".git").absolute()),
                   "GIT_WORK_TREE": str(Path(folder).absolute()),
                   "GIT_INDEX_FILE": f"{index}/index"}
            outside = Repository(folder)
            outside("add", "--all", **env)
            return outside("write-tree", **env)

    def commit(self, tree, message, parents=(), date=""):
        """Makes a tree the next commit of `upstream`."""
        env = {f"GIT_{who}_{key}": value for key, value in AUTHOR.items()
               for who in ("AUTHOR", "COMMITTER")}
        if date:
            env.update(GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date)
        made = self("commit-tree", tree, "-m", message,
                    *(word for p in parents for word in ("-p", p)), **env)
        self("update-ref", f"refs/heads/{BRANCH}", made)
        return made


def begin(folder, message, date=""):
    """Makes a hand-out a repository, with the student's branch checked out.
    With the same date the same files are the same commit."""
    git = Repository(folder)
    git("init", "--quiet", "--template=")
    git("config", "core.autocrlf", "false")
    made = git.commit(git.tree_of(folder), message, date=date)
    git("update-ref", f"refs/heads/{MAIN}", made)
    git("symbolic-ref", "HEAD", f"refs/heads/{MAIN}")
    git("reset", "--quiet")


# ---- updating --------------------------------------------------------------

def fetched(git, source):
    """The git tree of a newer hand-out: a repository, by URL or folder, or a
    folder without one."""
    if os.path.isdir(source) and not (Path(source) / ".git").exists():
        return git.tree_of(source)
    if os.path.isdir(source):
        source = os.path.abspath(source)
    for branch in (BRANCH, "HEAD"):
        status, said = git.run("fetch", "--quiet", "--no-tags", "--", source,
                               branch, GIT_TERMINAL_PROMPT="0")
        if status == 0:
            return git("rev-parse", "FETCH_HEAD^{tree}")
    raise LabError(f"FROM: {source}: {said.splitlines()[0]}")


def which(text):
    """What must be the same in two hand-outs of one student, from .lab."""
    try:
        data = labs.tomllib.loads(text)
        stage = ", open stage," if data.get("open") else ""
        return f"lab {data['lab']}{stage} with seed {data['seed']}"
    except (ValueError, KeyError):
        return "no hand-out"


def check_place(git):
    """Refuses a tree in which a merge could lose something."""
    if git.run("rev-parse", "--verify", "--quiet", BRANCH)[0] or \
            not (git.folder / ".git").exists():
        raise LabError("this hand-out is no git repository with a branch "
                       "upstream: it was made without GIT=1")
    if (git.folder / ".git/MERGE_HEAD").exists():
        raise LabError("a merge is not finished: solve its conflicts and "
                       "git commit -a, or undo it by git merge --abort")
    if git.run("symbolic-ref", "--quiet", "--short", "HEAD")[1] in ("", BRANCH):
        raise LabError(f"your work is on the branch {MAIN}: git checkout "
                       f"{MAIN}")
    changed = git("status", "--porcelain", "--untracked-files=no")
    if changed:
        names = ", ".join(line.split(maxsplit=1)[1]
                          for line in changed.splitlines())
        raise LabError(f"changes are not committed in {names}: git commit -a, "
                       "then again")


def update(git, source):
    """Merges a newer hand-out; returns the names of the files in conflict."""
    check_place(git)
    tree = fetched(git, source)
    new, old = (which(git.run("show", f"{at}:{labs.STAMP}")[1])
                for at in (tree, BRANCH))
    if new != old:
        raise LabError(f"FROM: {source} is {new}, but this is {old}")
    if tree != git("rev-parse", f"{BRANCH}^{{tree}}"):
        git.commit(tree, "A newer hand-out", [git("rev-parse", BRANCH)])
    return merge(git)


def merge(git):
    """Merges `upstream`; returns the names of the files in conflict."""
    who = [] if git.run("var", "GIT_COMMITTER_IDENT")[0] == 0 else \
        ["-c", "user.name=student", "-c", "user.email=student@localhost"]
    status, said = git.run(*who, "-c", "commit.gpgSign=false", "merge", "--ff",
                           "--no-edit", BRANCH)
    if status == 0:
        print(said)
        return []
    names = git("diff", "--name-only", "--diff-filter=U").splitlines()
    if not names:
        raise LabError(f"git merge: {said}")
    return names


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--from", dest="source", default="")
    source = parser.parse_args().source
    if not source:
        raise LabError("FROM is missing: make update FROM=dir-or-url")
    names = update(Repository(ROOT), source)
    if names:
        print("update: you and the newer hand-out changed the same lines of\n"
              + "".join(f"    {name}\n" for name in names) +
              "Both versions are in these files, between <<<<<<< and >>>>>>>. "
              "Write what\nyou want there, then: git commit -a. Or go back to "
              "what you had: git merge --abort", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    labs.command("update", main)
