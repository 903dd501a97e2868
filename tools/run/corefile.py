"""Core files of a whole machine, which GDB opens together with the kernel.

QEMU's dump-guest-memory writes them. With paging it records the virtual
addresses of the memory by the current page tables: the kernel's half, which
maps all memory, and the pages of the running program. The pages of another
program are reached through its page tables.

QEMU 7.2 writes ELF64 for a 32-bit machine that could have memory above 4 GiB.
GDB reads such a file but warns that it does not match the executable. narrow()
replaces the headers by ELF32 headers, which are smaller; the rest of the file
stays in place.
"""

import os
import struct
from pathlib import Path

from tools.run import qemu

EHDR64 = struct.Struct("<16sHHIQQQIHHHHHH")
PHDR64 = struct.Struct("<IIQQQQQQ")
EHDR32 = struct.Struct("<16sHHIIIIIHHHHHH")
PHDR32 = struct.Struct("<IIIIIIII")

ELF64 = b"\x7fELF\x02"
ELF32 = b"\x7fELF\x01"
TOO_MANY = 0xffff  # segments for the field that counts them
LIMIT = 1 << 32


def narrow(path):
    """Replaces the headers of an ELF64 core by ELF32 headers, in place.
    Returns False, and changes nothing, if the file is not ELF64 or an address
    does not fit."""
    with open(path, "r+b") as f:
        head = f.read(EHDR64.size)
        if len(head) < EHDR64.size or not head.startswith(ELF64):
            return False
        ident, kind, machine, version, entry, phoff, _, flags, _, _, count, \
            *_ = EHDR64.unpack(head)
        if count >= TOO_MANY:
            return False
        f.seek(phoff)
        segments = []
        for _ in range(count):
            type_, mode, at, virt, phys, filesz, memsz, align = PHDR64.unpack(
                f.read(PHDR64.size))
            if max(at, virt + memsz - 1, phys + memsz - 1) >= LIMIT:
                return False
            segments.append(PHDR32.pack(type_, at, virt, phys, filesz, memsz,
                                        mode, align))
        f.seek(0)
        f.write(EHDR32.pack(ELF32 + ident[5:], kind, machine, version, entry,
                            EHDR32.size, 0, flags, EHDR32.size, PHDR32.size,
                            count, 0, 0, 0))
        f.write(b"".join(segments))
    return True


def dump(control, path):
    """Writes the memory of the machine of `control` (a qemu.Qmp) to `path`.
    The machine is stopped meanwhile, and then continues if it was running."""
    path = Path(path).absolute()
    new = path.with_name(path.name + ".new")
    if '"' in str(new) or "," in str(new):
        raise qemu.QemuError(f"{path}: no core can have such a name")
    new.unlink(missing_ok=True)
    control.execute("dump-guest-memory", paging=True, protocol=f"file:{new}")
    os.chmod(new, 0o644)
    narrow(new)
    os.replace(new, path)
