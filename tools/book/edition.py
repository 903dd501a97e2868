"""The two editions of the book.

The instructors' edition shows the whole tree. That for students can be
published: it shows only files that hand-outs have, too, and sources with the
tasks of all labs open. A hand-out has no cuts, so there it shows sources as
they are, and none of which there is only an object.
"""

from pathlib import Path

from tools.grading import labs

ROOT = Path(__file__).resolve().parents[2]


class Edition:
    def __init__(self, instructors=False, root=ROOT):
        self.instructors, self.root = instructors, Path(root)
        if instructors and (self.root / labs.STAMP).exists():
            raise labs.LabError("this tree is a hand-out, which has no pages "
                                "for instructors")
        self.labs = labs.all_labs(root)
        self.open = {} if instructors else labs.all_open(root)

    def shows(self, path):
        """Whether the file `path` of the tree has a page in this edition. Only
        the name decides, so that a link to a page that is missing is an
        error."""
        built = (self.root / "prebuilt" / path).with_suffix(".o")
        return self.instructors or not built.exists() and any(
            labs.belongs(path, lab) for lab in self.labs)

    def text(self, path):
        """What the page of a source shows."""
        return self.open.get(path) or \
            (self.root / path).read_text(encoding="utf-8")
