"""The slabs of the heap as data: where buffers are, and which are free. A list
that breaks ends there."""

import functools
import itertools

import system
from target import PAGE_SIZE, WORD, constant, links, members, record, word


class Slab:
    """A slab of a cache; `data` is its struct kmem_slab."""

    def __init__(self, cache, data):
        self.cache, self.data, self.base = cache, data, data.slab_base
        self.end = self.base + cache.cache_slab_pages * PAGE_SIZE

    def buffer(self, address):
        """The start of the buffer that an address is in, or None."""
        first = self.base + self.data.slab_colour
        i, inside = divmod(address - first, max(self.cache.cache_chunk, 1))
        return address - inside if 0 <= i < self.data.slab_chunks else None

    @functools.cached_property
    def free(self):
        """{start of a free buffer: the address of its bufctl}"""
        large = self.cache.cache_flags & constant("KMF_HASH")
        return {record("kmem_bufctl", at).bufctl_addr if large else
                at - self.cache.cache_bufctl: at for at in itertools.islice(
                    links(self.data.slab_head, 0), self.data.slab_chunks)}

    def bufctl(self, start):
        """The address of the bufctl of a buffer; None if it is allocated and
        small."""
        cache = self.cache
        if start in self.free or not cache.cache_flags & constant("KMF_HASH"):
            return self.free.get(start)
        bucket = start >> cache.cache_hash_shift & cache.cache_hash_mask
        return next((at for at in links(word(cache.cache_hash + WORD * bucket),
                                        0)
                     if record("kmem_bufctl", at).bufctl_addr == start), None)


def slabs_of(cache):
    """A cache's slabs, in list order."""
    for data in members(cache.where("cache_null"), "kmem_slab", "slab_link"):
        if data.slab_cache != cache.address:
            return
        yield Slab(cache, data)


def find(address):
    """(the slab whose pages hold an address, the start of the buffer there);
    None for what there is not."""
    for cache in system.caches():
        for slab in slabs_of(cache):
            if slab.base <= address < slab.end:
                return slab, slab.buffer(address)
    return None, None
