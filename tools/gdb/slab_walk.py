"""slab walk: a row per object, slab, bufctl or hash entry, in the order in
which they lie in the slabs, as kernel/shell/cmd_kmem_walk.c; and, as only a
debugger can, an expression evaluated for each. slab why: the objects that keep
nearly free slabs alive.
"""

import gdb

import common
import slab_heap
from common import WORD, BadMemory, Broken, Command, Fail
from slab_buf import put_aside
from slab_heap import Heap, bufctl
from slab_verify import note_broken, slab_wrong

WORDS = 3


def first_words(address, n):
    """(words that can be read, the text of all)."""
    values, text = [], ""
    for i in range(n):
        try:
            values.append(common.word(address + i * WORD))
            text += f" {values[-1]:08x}"
        except BadMemory:
            text += " unmapped"
    return values, text


class _Row:
    def __init__(self, address, slab, index, state, words, bad):
        self.address, self.slab, self.index = address, slab, index
        self.state, self.words, self.bad = state, words, bad


class _Enough(Exception):
    """As many rows as were asked for."""


class Walk(Command):
    name = "slab walk"
    usage = "[-j] alloc|free|slab|bufctl|hash [NAME] [-n N] [-e EXPR]"
    summary = "Every object, slab, bufctl or hash entry"
    details = """\
A row for each, of one cache or of all, largest cache first:
  alloc free  objects in use, free objects
  slab        slabs in list order; IDX is the place in the list
  bufctl      control blocks; of small objects, where a free one is its own,
              the link word
  hash        the chains of the hash table; IDX is the bucket
FIRST-WORDS are the words at ADDR. A row marked ! is inconsistent.
  -n N     at most N rows
  -e EXPR  print EXPR for each; $obj is the address in it, and stays that of
           the last row
  -j       JSON lines"""
    example = "slab walk alloc inode -n 2 -e '((struct inode *)$obj)->" \
              "inode_refs'"
    options, valued, least, most = "j", "ne", 1, 2
    wants = "wants alloc, free, slab, bufctl or hash, and one cache at most"
    KINDS = ("alloc", "free", "slab", "bufctl", "hash")

    def run(self, args):
        self.what = args.word()
        if self.what not in self.KINDS:
            raise Fail(self.wants)
        self.heap, self.json = Heap(), "j" in args
        self.expression = args.get("e")
        self.limit = args.number("n", 1 << 32)
        if self.limit == 0:
            raise Fail("-n wants a number from 1 on")
        self.rows = 0
        if not self.json:
            print(f" {'ADDR':<10} {'CACHE':<16} {'SLAB':<10} {'IDX':>4} "
                  f"{'STATE':<7} FIRST-WORDS")
        one = self.heap.cache(args.word(1)) if len(args.words) > 1 else None
        try:
            for cache in [one] if one else self.heap.ordered():
                self.cache(cache)
        except _Enough:
            pass
        if not self.json:
            print(common.plural(self.rows, "row") +
                  (", as many as asked for" if self.rows == self.limit
                   else ""))

    def put(self, cache, row):
        self.rows += 1
        values, text = first_words(row.address, row.words)
        if self.json:
            common.json_line({"addr": row.address, "cache": cache.name,
                              "slab": row.slab, "index": row.index,
                              "state": row.state, "bad": row.bad,
                              "words": values})
        else:
            print(f"{'!' if row.bad else ' '}0x{row.address:08x} "
                  f"{cache.name:<16} 0x{row.slab:08x} {row.index:4} "
                  f"{row.state:<7}{text}")
            self.evaluate(row)
        if self.rows >= self.limit:
            if not self.json:
                note_broken(self.heap, cache)
            raise _Enough

    def evaluate(self, row):
        kind = gdb.lookup_type("void").pointer()
        gdb.set_convenience_variable("obj",
                                     gdb.Value(row.address).cast(kind))
        if self.expression is None:
            return
        try:
            value = gdb.parse_and_eval(self.expression)
            text = value.format_string()
        except gdb.error as e:
            text = f"! {e}"
        for line in text.splitlines():
            print(f"    {line}")

    def cache(self, cache):
        try:
            if self.what == "hash":
                self.hash(cache)
            else:
                for slab in cache.slab_list():
                    getattr(self, f"in_{self.what}")(cache, slab)
        except (Broken, BadMemory):
            pass  # note_broken says so
        if not self.json:
            note_broken(self.heap, cache)

    # -- what there is to walk

    def objects(self, cache, slab, used):
        bad, aside = slab_wrong(self.heap, slab) is not None, put_aside(slab)
        for i, out in enumerate(slab.bitmap(self.heap.pages)[0]):
            if out != used:
                continue
            lost = cache.hashed and used and \
                cache.bufctl_of(slab.chunk(i)) is None
            state = "bad" if i in aside else "used" if used else "free"
            self.put(cache, _Row(slab.chunk(i), slab.address, i, state, WORDS,
                                 bad or lost or i in aside))

    def in_alloc(self, cache, slab):
        self.objects(cache, slab, True)

    def in_free(self, cache, slab):
        self.objects(cache, slab, False)

    def in_slab(self, cache, slab):
        self.put(cache, _Row(slab.address, slab.address, slab.number,
                             slab.state_name, WORDS,
                             slab_wrong(self.heap, slab) is not None))

    def in_bufctl(self, cache, slab):
        bad, aside = slab_wrong(self.heap, slab) is not None, put_aside(slab)
        free = {index: link for link, _, index, why in
                slab.steps(self.heap.pages) if why is None}
        for i in range(slab.chunks):
            at, state = free.get(i), "free"
            if at is None and cache.hashed:
                found = cache.bufctl_of(slab.chunk(i))
                at = found and found.address
                state = "bad" if i in aside else "used"
            if at is not None:
                self.put(cache, _Row(at, slab.address, i, state,
                                     WORDS if cache.hashed else 1, bad))

    def hash(self, cache):
        for bucket in range(cache.hash_size):
            try:
                for at in cache.chain(bucket):
                    good = slab_heap.bufctl_plausible(cache, at,
                                                      self.heap.pages)
                    if not good:
                        self.put(cache, _Row(0, 0, bucket, "astray", 0, True))
                        break
                    self.put(cache, _Row(at, bufctl(at).bufctl_slab, bucket,
                                         "used", WORDS, False))
            except Broken:
                self.put(cache, _Row(0, 0, bucket, "astray", 0, True))

    def complete(self, text, word):
        return [k for k in self.KINDS if k.startswith(word)] + \
            slab_heap.complete_cache(word)


Walk()
