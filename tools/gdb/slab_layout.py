"""slab layout: what a cache would look like, from the rules of the paper's
section 3.2 alone; no cache is asked. slab explain: what one looks at, in the
words of the paper.
"""

import gdb

import common
import slab_heap
from common import PAGE_SIZE, WORD, Command, Fail, percent, waste
from slab_heap import Heap, Slab, impl


class Geometry:
    """Chunk, pages, objects and colours from size, alignment and whether the
    objects are constructed (mm/kmem_slab.c says the same in C)."""

    def __init__(self, size, align=0, constructed=False):
        least = common.macros("mm/kmem.h")["KMEM_ALIGN_MIN"]
        self.size, self.align = size, max(align, least)
        small = self.round_up(size + (WORD if constructed else 0))
        self.large = small >= impl("KMEM_LARGE_MIN")
        self.header = 0 if self.large else \
            common.layout("struct kmem_slab").size
        self.chunk = self.round_up(size) if self.large else small
        self.extra = WORD if constructed and not self.large else 0
        self.pages = self.large_pages() if self.large else 1
        self.bytes = self.pages * PAGE_SIZE
        self.objects, self.left = divmod(self.bytes - self.header, self.chunk)
        self.colour_max = self.left & -self.align

    def round_up(self, n):
        return -(-n // self.align) * self.align

    def fits(self, pages, part):
        """Whether at most 1/part of such a slab would be unused."""
        size = pages * PAGE_SIZE
        return size >= self.chunk and size % self.chunk * part <= size

    def large_pages(self):
        for pages in range(1, impl("KMEM_SLAB_PAGES_TRY") + 1):
            if self.fits(pages, 16):
                return pages
        pages = 1
        while not self.fits(pages, 8):
            pages += 1
        return pages

    @property
    def colours(self):
        return self.colour_max // self.align + 1


class Layout(Command):
    name = "slab layout"
    usage = "SIZE [ALIGN] [ctor]"
    summary = "What a cache of such objects would look like"
    details = """\
Predicted from the rules alone: chunk, pages of a slab, objects, colours, and
what part of the memory is lost. `ctor`: the objects are constructed, so that a
small one gets an extra word for the link. Needs no target.
  ALIGN  a power of two up to a page; else 8"""
    example = "slab layout 200 64 ctor"
    least, most = 1, 3
    wants = "wants a size; `slab layout 200 64 ctor`"
    target = False

    def number(self, text, what):
        try:
            return int(gdb.parse_and_eval(text))
        except gdb.error as e:
            raise Fail(f"'{text}' is no {what}: {e}") from e

    def arguments(self, args):
        words = [w for w in args.words if w != "ctor"]
        size = self.number(words[0], "size") if words else 0
        align = self.number(words[1], "alignment") if len(words) > 1 else 0
        most = common.macros("mm/kmem.h")["KMEM_SIZE_MAX"]
        if len(words) > 2 or not 1 <= size <= most:
            raise Fail(f"wants a size from 1 to {most}")
        if align < 0 or align & (align - 1) or align > PAGE_SIZE:
            raise Fail("the alignment is a power of two up to a page")
        return size, align, len(words) != len(args.words)

    def run(self, args):
        size, align, constructed = self.arguments(args)
        g = Geometry(size, align, constructed)
        print(f"{'large' if g.large else 'small'} layout: the chunk is "
              f"{'not ' if g.large else ''}smaller than 1/8 page, "
              f"{impl('KMEM_LARGE_MIN')} bytes")
        print(f"chunk     {g.chunk:6} = {size} asked for + {g.extra} extra "
              f"word + {g.chunk - size - g.extra} to the next multiple of "
              f"{g.align}")
        print(f"slab      {g.bytes:6} = {common.plural(g.pages, 'page')}")
        print(f"header    {g.header:6}   " +
              ("kmem_slab at the end of the page" if g.header else
               "kmem_slab and bufctls are outside the slab"))
        print(f"objects   {g.objects:6} = ({g.bytes} - {g.header}) / "
              f"{g.chunk}")
        print(f"unused    {g.left:6} = {g.bytes} - {g.header} - {g.objects} * "
              f"{g.chunk}, {percent(waste(g.bytes - g.left, g.bytes))}% of "
              "the slab")
        print(f"colours   {g.colours:6} = {g.left} / {g.align} + 1: up to "
              f"{g.colour_max}")
        lost = percent(waste(g.objects * size, g.bytes))
        print(f"lost      {g.bytes - g.objects * size:6} = {lost}% of a slab "
              "whose objects are all in use")


# ---- explain ---------------------------------------------------------------

def say(text):
    """A paragraph, 78 columns wide."""
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > 78:
            print(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    print(line)


def explain_cache(cache):
    say(f"{cache.name} is an object cache (section 2): clients of it get "
        f"objects of {cache.size} bytes" +
        (", which its constructor has brought into their initial state before "
         "and which come back in that state, so that the next client finds "
         "the work done." if cache.ctor else
         ". It has no constructor: what an object contains is its client's "
         "business."))
    if cache.hashed:
        say("The layout is that of large objects (3.2.3): a slab is "
            f"{common.plural(cache.slab_pages, 'page')} full of buffers; its "
            "kmem_slab and a kmem_bufctl per buffer come from caches of their "
            "own, and a hash table leads from a buffer back to its bufctl "
            f"when it is freed ({cache.inuse} in {cache.hash_size} buckets).")
    else:
        say("The layout is that of small objects (3.2.2), less than 1/8 page: "
            "a slab is one page, its kmem_slab lies at the end of that page, "
            "so that from a buffer's address it is computed, and the last "
            "word of a free buffer is its link to the next." +
            (" As the objects keep their constructed state while they are "
             "free, a word was added for that link." if cache.extra_word
             else ""))
    say(f"A slab holds {cache.slab_objects} objects, {cache.chunk} bytes "
        f"apart, and leaves {cache.slab_left} bytes unused: its buffers start "
        "at one of "
        f"{common.plural(cache.colour_max // cache.align + 1, 'colour')} "
        "(section 4), so that objects of different slabs do not meet in the "
        "same lines of the processor's cache.")
    if cache.modes:
        explain_modes(cache)
    explain_list(cache)


MODES = {"F": "a freed address is verified before it is believed (6.2)",
         "P": "free memory is 0xdeadbeef and new memory 0xbaddcafe, so that "
              "objects are constructed with each allocation (6.3)",
         "Z": "there is a redzone before and behind each object (6.4)",
         "U": "each object knows who allocated and who freed it last, and the "
              "log has more (6.1)",
         "T": "each operation prints a line",
         "S": "a slab whose objects are all free is unmapped at once (6.5)",
         "G": "each object has pages of its own, which are there only while "
              "it is in use (6.6)"}


def explain_modes(cache):
    said = "; ".join(MODES.get(c, c) for c in cache.mode_text)
    say(f"It is in debugging modes {cache.mode_text} (section 6): {said}." +
        (" Such a cache has the large layout whatever its objects' size, as "
         "nothing of the allocator's may lie within reach of a client."
         if cache.debugged else ""))


def explain_error():
    """The last error that the allocator has found."""
    e = common.record_of(common.variable("kmem_last_error"))
    row = common.variable("errors", "mm/debug/report.c")[e.error_kind]
    title = common.string(int(row["title"]) & common.WORD_MASK)
    print(f"The allocator has found: {title}.\n")
    if e.error_base or e.error_buf:
        address = e.error_base or e.error_buf
        say(f"It is about 0x{address:08x}" +
            (f", where the first wrong byte is at 0x{e.error_at:08x}, "
             f"0x{e.error_expected:x} expected and 0x{e.error_found:x} found."
             if e.error_at else ".") +
            f" `slab whatis 0x{address:08x}` says whose that was, `slab "
            f"history 0x{address:08x}` what happened to it, and in a replay "
            "`slab culprit` goes back to the guilty line.")


def callers(frame):
    """The names of the functions under way."""
    names = []
    while frame is not None:
        names.append(frame.name())
        frame = frame.older()
    return names


def explain_list(cache):
    say(f"Its {common.plural(cache.slabs, 'slab')}: {cache.full} full (the "
        "paper calls a slab that has nothing left to give \"empty\"), "
        f"{cache.partial} partial, {cache.complete} free (\"complete\"). They "
        "stand on the list in this order, and the freelist pointer is at the "
        "first that has a buffer (3.3): " +
        (f"slab 0x{cache.raw.cache_freelist:08x}."
         if cache.raw.cache_freelist != cache.null else
         "there is none, so the next allocation calls kmem_cache_grow."))
    say(f"A reap (3.4) would leave the working set and take at most "
        f"{min(cache.ws_limit, cache.ws_min)} of the {cache.complete} free "
        "slabs.")


def explain_slab(slab):
    words = {"full": "every buffer is handed out: it stands before the "
                     "freelist pointer, where no allocation looks",
             "partial": "some buffers are handed out: allocations take the "
                        "rest before a free slab is broken",
             "free": "all its buffers have come back: it stands at the tail, "
                     "and a reap may take it once it is out of the working "
                     "set"}
    say(f"Slab 0x{slab.address:08x} has {slab.refcnt} of {slab.chunks} buffers "
        f"out; {words[slab.state_name]}. Its colour is {slab.colour}: so many "
        f"bytes of page 0x{slab.base:08x} come before the first buffer." +
        (" The freelist pointer is here: the next object comes from it."
         if slab.freelist else ""))


class Explain(Command):
    name = "slab explain"
    usage = "[NAME|ADDR]"
    summary = "What one looks at, in the words of the paper"
    details = """\
Of a cache by name, of whatever is at an address, or, with neither, of the
cache and slab that the selected frame works on: stop in kmem_cache_alloc and
ask; after an error, of that. Sections are those of the paper."""
    example = "slab explain kmem_alloc_64"
    joined = True

    def run(self, args):
        heap = Heap()
        if args.words:
            self.named(heap, args.word())
        else:
            self.frame(heap)

    def named(self, heap, word):
        for cache in heap.caches:
            if cache.name == word:
                explain_cache(cache)
                return
        self.address(heap, common.parse_address(word))

    def address(self, heap, address):
        cache = heap.cache_at(address)
        if cache:
            explain_cache(cache)
            return
        place = heap.whose(address)
        if place is None:
            raise Fail(f"0x{address:08x} is no cache and in no slab; "
                       "`slab whatis` says what is there")
        cache, slab, index = place
        if index is None:
            print(f"0x{address:08x} is in a slab of {cache.name}, but in no "
                  "buffer of it.\n")
        else:
            used = slab.bitmap(heap.pages)[0][index]
            print(f"0x{address:08x} is in buffer {index} of a slab of "
                  f"{cache.name}, which is "
                  f"{'handed out' if used else 'free'}.\n")
        explain_slab(slab)
        print()
        explain_cache(cache)

    def frame(self, heap):
        """The nearest frame that has a cache or a slab in a variable; before
        that, the error that is being reported."""
        frame = gdb.selected_frame()
        if "kmem_error" in callers(frame):
            explain_error()
            print()
        while frame is not None:
            found = self.variables(heap, frame)
            if found:
                cache, slab = found
                print(f"{frame.name()} works on {cache.name}"
                      f"{f', slab 0x{slab.address:08x}' if slab else ''}.\n")
                if slab:
                    explain_slab(slab)
                    print()
                explain_cache(cache)
                return
            frame = frame.older()
        raise Fail("no frame here works on a cache; give one: "
                   "`slab explain inode`")

    def variables(self, heap, frame):
        """(cache, slab or None) that the frame's variables point to."""
        cache = slab = None
        try:
            block = frame.block()
        except RuntimeError:
            return None
        for symbol in self.symbols(block):
            kind = str(symbol.type.unqualified().strip_typedefs())
            try:
                value = int(frame.read_var(symbol, block)) & common.WORD_MASK
            except (gdb.error, ValueError, TypeError):
                continue
            if kind.endswith("struct kmem_cache *"):
                cache = cache or heap.cache_at(value)
            elif kind.endswith("struct kmem_slab *") and slab is None:
                slab = self.slab(heap, value)
        cache = cache or (slab and slab.cache)
        if cache is None:
            return None
        return cache, slab if slab and slab.cache is cache else None

    @staticmethod
    def symbols(block):
        while block and not block.is_static and not block.is_global:
            for symbol in block:
                if symbol.is_argument or symbol.is_variable:
                    yield symbol
            if block.function:
                return
            block = block.superblock

    @staticmethod
    def slab(heap, address):
        try:
            raw = common.record("struct kmem_slab", address)
        except common.BadMemory:
            return None
        owner = heap.cache_at(raw.slab_cache)
        if owner is None or address == owner.null:
            return None
        return Slab(owner, address)

    def complete(self, text, word):
        return slab_heap.complete_cache(word)


for _command in (Layout, Explain):
    _command()
