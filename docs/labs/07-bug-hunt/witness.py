"""Runs inside GDB, on a counted machine that is about to execute `services`,
and observes the bugs of a kernel, so that answers.py needs no list of answers.
A counted run repeats to the last instruction, so a session can wait for what
another one has found.

    first(service)      the first error that the allocator reports, or an object
                        that is leaked when the machine is switched off
    writer(address)     the last function to change this byte before the report
    loser(object)       the function and task that overwrite the last pointer
    unlike(service)     the function that frees an object which is not in its
                        constructed state

Each prints a line of JSON, with the number of the day's request.
"""

import json
import re

import gdb
import stores
import target
from target import WORD, WORD_MASK, read, record

# Stores that are looked at, and requests of a day.
PATIENCE = 2000


def say(**found):
    print("WITNESS " + json.dumps(found))


def stop_at(*functions):
    return [gdb.Breakpoint(f, internal=True) for f in functions]


def go_on():
    """Continues; returns the function that it stops in."""
    gdb.execute("continue", to_string=True)
    return gdb.newest_frame().name()


def culprit():
    """The function that caused this: neither the allocator nor a helper. None
    if the allocator did it for itself."""
    for frame in stores.frames():
        if frame.is_allocator:
            return None
        if not frame.is_helper:
            return frame.name
    return None


def caller():
    """The function that called the allocator."""
    return next(f.name for f in stores.frames()
                if not f.is_allocator)


def pid():
    return int(gdb.parse_and_eval("$pid()"))


def request():
    """The number of the day's request."""
    return int(gdb.parse_and_eval("workday_request"))


def slate(line):
    """A report of the kernel."""
    return gdb.execute(f"slate {line}", to_string=True)


def place(address):
    """The object that an address is in, as words."""
    text = slate(f"whatis {address:#x}")
    cache, start = re.search(r"^object \d+ of cache (\w+), .*: 0x(\w+) \+",
                             text, re.M).groups()
    task = re.search(r"^allocated by task (\d+)", text, re.M)
    return {"cache": cache, "object": int(start, 16),
            "task": int(task[1]) if task else 0}


# ---- what is seen first -----------------------------------------------------

def reported():
    """The error that kmem_error is about to report."""
    at = int(gdb.parse_and_eval("$eax")) & WORD_MASK
    error = record("kmem_error_record", at)
    names = target.enumerators("kmem_error", "KMERR_")
    say(error=names[error.error_kind].upper(), offset=error.error_offset,
        at=error.error_at, culprit=caller(), request=request(),
        **place(error.error_base or error.error_buf))


def lost(service):
    """An object that is still allocated when the day is over."""
    used = re.search(rf"^ *0x(\w+) {service} ",
                     slate(f"cache -o alloc {service} -n 1"), re.M)
    if used:
        say(error="LOST", **place(int(used[1], 16)))
    else:
        say(error="NONE")


def first(service):
    stop_at("kmem_error", "power_off")
    if go_on() == "kmem_error":
        reported()
    else:
        lost(service)


# ---- the culprit -------------------------------------------------------------

def changes(address, kind, until):
    """Continues from change to change of the value at an address, up to one of
    the functions `until`."""
    stops = stop_at(*until)
    gdb.Breakpoint(f"*({kind} *){address}", gdb.BP_WATCHPOINT,
                   gdb.WP_WRITE, internal=True)
    for _ in range(PATIENCE):
        go_on()
        if any(b.hit_count for b in stops):
            return
        yield


def writer(address):
    found = when = None
    for _ in changes(address, "unsigned char", ["kmem_error"]):
        by = culprit()
        if by is not None:
            found, when = by, request()
    say(culprit=found, request=when)


def holder(obj):
    """The address of a static variable that points to an object, or None. What
    the first task's stack holds does not count."""
    for start, end in (("data_start", "boot_stack_guard"),
                       ("boot_stack_top", "bss_end")):
        for address, data in target.present(target.linker(start),
                                            target.linker(end)):
            at = data.find(obj.to_bytes(WORD, "little"))
            if at >= 0:
                return address + at
    return None


def loser(obj):
    """Between two requests there is the pointer; then comes the store."""
    (step,) = stop_at("workday_step")
    at = None
    while at is None:
        go_on()
        at = holder(obj)
    step.delete()
    found = task = when = None
    for _ in changes(at, "unsigned", ["power_off"]):
        if int(gdb.parse_and_eval(f"*(unsigned *){at}")) != obj:
            found, task, when = culprit(), pid(), request()
            break
    say(culprit=found, by=task, request=when)


def constructed(buf):
    """The last object of the slab that an object is in, and its size."""
    at = re.search(r"^slab 0x(\w+), base", slate(f"whatis {buf:#x}"), re.M)
    slab = record("kmem_slab", int(at[1], 16))
    cache = record("kmem_cache", slab.slab_cache)
    return slab.slab_base + slab.slab_colour + \
        (slab.slab_chunks - 1) * cache.cache_chunk, cache.cache_size


def unlike(service):
    """Compares each freed object with the last object of its slab, which was
    constructed and never allocated."""
    stop_at("kmem_cache_free", "power_off")
    while go_on() == "kmem_cache_free":
        cache, buf = (int(gdb.parse_and_eval(register)) & WORD_MASK
                      for register in ("$eax", "$edx"))
        if record("kmem_cache", cache).cache_name != service:
            continue
        like, size = constructed(buf)
        if read(buf, size) != read(like, size):
            say(error="UNLIKE", culprit=caller(), request=request(),
                **place(buf))
            return
    say(error="NONE")
