"""The journal of the ext2 server's core: a directory moves all or not at all,
wherever the power is cut; a mount replays a journal as e2fsck does, if Slate
wrote it, and refuses it if not. docs/ext2.md."""

import struct

import pytest

from test_ext2 import clean, core, make, run
from test_ext2_cuts import NAME, WAYS, cuts

pytestmark = [pytest.mark.plain, pytest.mark.spread]

MAGIC = 0xc03b3998
DESCRIPTOR = 1
BLOCK = 1024
RECOVER = 4


@pytest.fixture(name="image")
def fixture_image(tmp_path):
    """1 KiB a block, four inodes in each block of the table."""
    return make(tmp_path / "image", "journal", "2M", "-N", "96")


# ---- all or nothing --------------------------------------------------------

# Commands before, and the move. Fillers keep the entries in different blocks.
TREE = "mkdir /a;mkdir /b;mkdir /a/d;write /a/d/f 0 3000 1;mkdir /a/d/s"
MOVES = {
    "elsewhere": (TREE, "mv /a/d /b/e"),
    "up": (TREE, "mv /a/d/s /s"),
    "over an empty one": (f"{TREE};mkdir /b/e;mkdir /b/k", "mv /a/d /b/e"),
    "over its neighbour": (f"{TREE};mkdir /a/e", "mv /a/d /a/e"),
    "a longer name": (f"{TREE};many /a{NAME} 0 9", f"mv /a/d /a{NAME}x"),
    "the folder grows": (f"{TREE};many /b{NAME} 0 13", f"mv /a/d /b{NAME}x"),
    "with other work": (TREE, "write /a/d/s/g 0 9 1;rm /a/d/f;sync;"
                        "mv /a/d /b/e"),
}


def tree(image):
    return frozenset(line.split(" ")[3]
                     for line in core(image, "ls /").splitlines())


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("ways", WAYS)
def test_a_move_happens_all_or_not_at_all(move, ways, in_memory):
    """After a cut at each write, and at each write of the replay, repaired by
    e2fsck or by a mount: the old tree or the new one."""
    before, under_way = MOVES[move]
    image, other = (make(in_memory / name, "journal", "2M", "-N", "96")
                    for name in ("image", "other"))
    core(other, *before.split(";"))
    allowed = {tree(other)}
    for command in under_way.split(";"):
        core(other, command)
        allowed.add(tree(other))
    clean(other)
    _, replays, outcomes = cuts(image, ways, before, under_way)
    assert replays > 10
    if "sync" in under_way:  # the changes before it may be there in part
        assert tree(other) in outcomes
        moved = {"/b/e" in names for names in outcomes}
        assert moved == {True, False}
        assert all(("/a/d" in names) != ("/b/e" in names)
                   for names in outcomes)
    else:
        assert outcomes == allowed


# ---- images as a power cut leaves them --------------------------------------

class Image:
    """The bytes of an image, and the places of its structures."""

    def __init__(self, path, block=BLOCK):
        self.path = path
        self.block = block
        self.data = bytearray(path.read_bytes())
        said = run("debugfs", "-R", "blocks <8>", path)
        self.journal = [int(word) for word in said.split()
                        if word.isdigit()][:12]

    def save(self):
        self.path.write_bytes(self.data)

    def journal_at(self, index, offset):
        return self.journal[index] * self.block + offset

    def get(self, at, size):
        return bytes(self.data[at:at + size])

    def put(self, at, form, *values):
        struct.pack_into(form, self.data, at, *values)

    def set_super(self, offset, form, value):
        self.put(1024 + offset, form, value)

    def set_journal(self, index, offset, value, form=">I"):
        self.put(self.journal_at(index, offset), form, value)

    def pend(self):
        """Makes the image as if the power was cut before the last move was in
        place: its transaction is still in the journal."""
        self.set_super(58, "<H", 0)  # not clean
        self.set_super(96, "<I", 2 | RECOVER)
        self.set_journal(0, 0x1c, 1)
        return self

    def targets(self):
        """The numbers of the blocks in the transaction."""
        at, blocks = self.journal_at(1, 12), []
        while True:
            block, _, flags = struct.unpack_from(">IHH", self.data, at)
            blocks.append(block)
            if flags & 8:
                return blocks
            at += 8 if flags & 2 else 24

    def table(self, inode):
        """The block of the table that has an inode."""
        said = run("debugfs", "-R", f"imap <{inode}>", self.path)
        return int(said.split("at block ")[1].split(",")[0])


def moved(path):
    """An image on which a folder was moved over another."""
    core(path, *f"{TREE};mkdir /b/e;mv /a/d /b/e".split(";"))
    return Image(path)


@pytest.mark.parametrize("repair", ["e2fsck", "mount"])
def test_pending_blocks_are_replayed(repair, image):
    it = moved(image)
    after = tree(image)
    assert len(it.targets()) == 4
    for block in it.targets():
        it.put(block * BLOCK, f"{BLOCK}s", b"lost".ljust(BLOCK))
    it.pend().save()
    if repair == "e2fsck":
        run("e2fsck", "-p", image, good=(1,))
    else:
        said = core(image, "sync")
        assert "repaired" in said
    assert tree(image) == after
    clean(image)


def test_inodes_beside_the_journals_are_replayed(tmp_path):
    """Their block has been read by then, to find the journal."""
    image = make(tmp_path / "image", "4k-256", "8M", "-N", "96",
                 "-O", "has_journal")
    core(image, "mkdir /a", "mkdir /e", "mkdir /a/d", "mv /a/d /e")
    it = Image(image, 4096)
    assert it.table(8) == it.table(13) and it.table(8) in it.targets()
    offset = it.table(8) * 4096 + 12 * 256  # the old inode of /e, 13
    assert it.get(offset + 26, 2) == bytes(2)
    it.put(offset + 26, "<H", 2)
    it.pend().save()
    core(image)
    assert Image(image).get(offset + 26, 2) == bytes(2)
    clean(image)


def test_a_block_that_looks_like_the_journals_own(image):
    """The first of the inodes in the block of one that dies is free, and has
    what would be the head of the next transaction but one."""
    core(image, "mkdir /a", "write /x 0 0 1", "mkdir /v", "mkdir /a/d",
         "mkdir /c", f"many {NAME} 0 8", "rm /x")
    it = Image(image)
    block = it.table(14)
    assert it.table(13) == block and it.table(12) != block
    head = struct.pack(">III", MAGIC, DESCRIPTOR, 4)
    it.put(block * BLOCK, "12s", head)
    it.save()
    clean(image)
    core(image, "mv /a/d /v")
    it = Image(image)
    assert block in it.targets()
    logged = it.journal_at(2 + it.targets().index(block), 0)
    assert it.get(logged, 4) == bytes(4)
    assert it.get(logged + 4, 252) == it.get(block * BLOCK + 4, 252)
    it.put(block * BLOCK, "12s", bytes(12))
    it.pend().save()
    after = tree(image)
    assert Image(image).get(block * BLOCK, 12) == head
    # the next transaction is shorter, and this block comes after it
    core(image, f"mv /c {NAME}x")
    it = Image(image)
    assert logged == it.journal_at(2 + len(it.targets()) + 1, 0)
    it.pend().save()
    assert tree(image) == after - {"/c"} | {NAME + "x"}
    clean(image)


FOREIGN = {
    "a feature of the journal": lambda it: it.set_journal(0, 0x28, 8),
    "an error in it": lambda it: it.set_journal(0, 0x20, 1),
    "it starts elsewhere": lambda it: it.set_journal(0, 0x14, 2),
    "its blocks have another size": lambda it: it.set_journal(0, 12, 2048),
    "it is longer than its file": lambda it: it.set_journal(0, 16, 1025),
    "no superblock": lambda it: it.set_journal(0, 4, 3),
    "another journal": lambda it: it.set_super(0xe0, "<I", 11),
    "none": lambda it: it.set_super(92, "<I", 0),
}
PENDING = {
    "another sequence": lambda it: it.set_journal(1, 8, 77),
    "no descriptor": lambda it: it.set_journal(1, 4, 5),
    "no commit": lambda it: it.set_journal(6, 4, DESCRIPTOR),
    "another commit": lambda it: it.set_journal(6, 8, 77),
    "a second transaction": lambda it: it.put(
        it.journal_at(7, 0), ">III", MAGIC, DESCRIPTOR, 3),
    "a deleted block": lambda it: it.set_journal(1, 18, 4, ">H"),
    "a checksum": lambda it: it.set_journal(1, 16, 1, ">H"),
    "no last tag": lambda it: it.set_journal(1, 58, 2, ">H"),
    "the boot block": lambda it: it.set_journal(1, 12, 0),
    "the superblock": lambda it: it.set_journal(1, 12, 1),
    "the descriptors": lambda it: it.set_journal(1, 36, 2),
    "past the end": lambda it: it.set_journal(1, 44, 2048),
    "the journal itself": lambda it: it.set_journal(1, 52, it.journal[0]),
    "damaged": lambda it: it.set_super(58, "<H", 2),
}


@pytest.mark.parametrize("what", [*FOREIGN, *PENDING])
def test_foreign_journals_are_not_replayed(what, image):
    it = moved(image).pend()
    {**FOREIGN, **PENDING}[what](it)
    it.save()
    said = core(image, "ls /", good=(1,))
    assert "another system's journal must be replayed: run e2fsck" in said
    assert image.read_bytes() == it.data


# Commands of debugfs that make a journal useless.
USELESS = {
    "sparse": "sif <8> block[3] 0",
    "outside of the disk": "sif <8> block[4] 5000",
    "among the inodes": "sif <8> block[2] 20",
    "free": "freeb {2}",
    "a folder": "sif <8> mode 040700",
    "without links": "sif <8> links_count 0",
    "one block twice": "sif <8> block[5] {2}",
}


def refuse(image):
    """Directories stay where they are; everything else works."""
    core(image, *f"{TREE};mkdir /b/e;many /a{NAME} 0 13".split(";"),
         "fails 18 mv /a/d /b/d", "fails 18 mv /a/d /b/e",
         f"fails 18 mv /a/d /a{NAME}x", "mv /a/d /a/k",
         "mv /a/k/f /b/f", "fails 39 mv /a/k /b", "fails 20 mv /a /b/f")
    assert {"/a/k/s", "/b/e", "/b/f"} < tree(image)


@pytest.mark.parametrize("what", USELESS)
def test_a_journal_that_is_useless_is_not_used(what, image):
    blocks = Image(image).journal
    run("debugfs", "-w", "-R", USELESS[what].format(*blocks), image)
    refuse(image)


@pytest.mark.parametrize("what", FOREIGN)
def test_a_journal_of_another_kind_is_not_used(what, image):
    it = Image(image)
    FOREIGN[what](it)
    it.save()
    refuse(image)
    assert it.get(it.journal_at(1, 0), BLOCK) == bytes(BLOCK)


def test_a_journal_with_something_in_it_is_not_used(image):
    """It is refused although the superblock says that it is empty."""
    it = Image(image)
    it.set_journal(0, 0x1c, 1)
    it.save()
    refuse(image)


def test_without_a_journal_directories_do_not_move(tmp_path):
    image = make(tmp_path / "image", "1k-128", "600k")
    refuse(image)
    clean(image)


def test_it_is_used_again_and_again(image):
    """Sequence numbers go up; e2fsck may come between."""
    core(image, *TREE.split(";"))
    for i in range(6):
        core(image, "mv /a/d /b/d", "mv /b/d /a/d")
        it = Image(image)
        assert it.get(it.journal_at(1, 8), 4) == struct.pack(">I", 3 + 2 * i)
        clean(image)
    it.pend().save()
    run("e2fsck", "-p", image, good=(1,))
    core(image, "mv /a/d /b/d")
    assert "/b/d/s" in tree(image)
    clean(image)


# ---- names that rename makes for a moment ------------------------------------

def test_leftover_names_go_with_the_next_mount(image):
    """One file has another name, the other has no name any more."""
    free = core(image, "write /kept 0 3000 1", "df").splitlines()[-1]
    core(image, "write /lost 0 5000 2", "mkdir /d")
    run("debugfs", "-w", "-R", "link /kept /d/.replaced-12", image)
    run("debugfs", "-w", "-R", "link /lost /d/.replaced-13", image)
    run("debugfs", "-w", "-R", "link /kept /d/.replaced-13x", image)
    run("debugfs", "-w", "-R", "unlink /lost", image)
    it = Image(image)
    it.set_super(58, "<H", 0)
    it.save()
    assert "repaired" in core(image)
    assert tree(image) == {"/lost+found", "/kept", "/d", "/d/.replaced-13x"}
    clean(image)
    core(image, "rm /d/.replaced-13x", "rmdir /d")
    assert free in core(image, "df")


def test_nobody_else_may_make_such_names(image):
    core(image, "write /f 0 1 1", "fails 22 write /.replaced-1 0 1 1",
         "fails 22 ln /f /.replaced-12", "fails 22 mv /f /.replaced-x",
         "mv /f /.replaced")
