"""slab layout: the layout of a cache before it exists (paper, section 3.2).

Lab 3 asks for these rules: its hand-out, and those of earlier labs, do not have
this file.
"""

import target
from command import Command, evaluate, percent, plural, waste
from target import PAGE_SIZE, WORD, Fail, constant


class Geometry:
    """Chunk, pages, objects and colours from size, alignment and whether the
    objects are constructed, by the rules of section 3.2 alone."""

    def __init__(self, size, align=0, constructed=False):
        self.size, self.align = size, max(align, constant("KMEM_ALIGN_MIN"))
        small = self.round_up(size + (WORD if constructed else 0))
        self.large = small >= constant("KMEM_LARGE_MIN")
        self.header = 0 if self.large else target.layout("kmem_slab").size
        self.chunk = self.round_up(size) if self.large else small
        self.extra_word = WORD if constructed and not self.large else 0
        self.slab_pages = self.large_pages() if self.large else 1
        self.slab_bytes = self.slab_pages * PAGE_SIZE
        self.slab_chunks, self.slab_left = divmod(
            self.slab_bytes - self.header, self.chunk)
        self.colour_max = self.slab_left & -self.align

    def round_up(self, n):
        return -(-n // self.align) * self.align

    def fits(self, pages, part):
        """Whether at most 1/part of such a slab would be unused."""
        size = pages * PAGE_SIZE
        return size >= self.chunk and size % self.chunk * part <= size

    def large_pages(self):
        few = range(1, constant("KMEM_SLAB_PAGES_TRY") + 1)
        return next((pages for pages in few if self.fits(pages, 16)), None) \
            or next(pages for pages in range(1, 1 << 20)
                    if self.fits(pages, 8))


def print_geometry(g):
    print(f"chunk     {g.chunk:6} = {g.size} asked for + {g.extra_word} "
          f"extra word + {g.chunk - g.size - g.extra_word} to a multiple of "
          f"{g.align}")
    print(f"slab      {g.slab_bytes:6} = {plural(g.slab_pages, 'page')}")
    print(f"header    {g.header:6}   kmem_slab " +
          ("at the end of the page" if g.header else
           "and bufctls are outside the slab"))
    print(f"objects   {g.slab_chunks:6} = ({g.slab_bytes} - {g.header}) / "
          f"{g.chunk}")
    print(f"unused    {g.slab_left:6} = {g.slab_bytes} - {g.header} - "
          f"{g.slab_chunks} * {g.chunk}, "
          f"{percent(g.slab_left, g.slab_bytes)}% of "
          "the slab")


class Layout(Command):
    """slab layout SIZE [ALIGN] [ctor]
    The layout that a cache of such objects would have.
    Predicted from the rules alone: chunk, pages of a slab, objects, colours,
    and what part of the memory is lost. `ctor`: the objects are constructed,
    so that a small one gets an extra word for the link. ALIGN is a power of
    two up to a page, else 8. Needs no target.
    Example: slab layout 200 64 ctor"""

    offline = True

    def run(self, args):
        numbers = [w for w in args.words if w != "ctor"]
        size, align = ([evaluate(w) for w in numbers] + [0, 0])[:2]
        most = constant("KMEM_SIZE_MAX")
        if len(numbers) > 2 or size is None or not 1 <= size <= most:
            raise Fail(f"wants a size from 1 to {most}")
        if align is None or align & (align - 1) or align > PAGE_SIZE:
            raise Fail("the alignment is a power of two up to a page")
        g = Geometry(size, align, len(numbers) != len(args.words))
        print(f"{'large' if g.large else 'small'} layout: the chunk is "
              f"{'not ' if g.large else ''}smaller than 1/8 page, "
              f"{constant('KMEM_LARGE_MIN')} bytes")
        print_geometry(g)
        print(f"colours   {g.colour_max // g.align + 1:6} = {g.slab_left} / "
              f"{g.align} + 1: up to {g.colour_max}")
        used = g.slab_chunks * size
        print(f"lost      {g.slab_bytes - used:6} = "
              f"{waste(used, g.slab_bytes)}% of a slab whose objects "
              "are all in use")
