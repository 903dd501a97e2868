"""slate pipes, inodes, mounts: files from the kernel's side. slate dmesg: what
the kernel has printed."""

import system
import target
from command import Command, Hex, Table, percent, waste
from target import BadMemory, record, string


class Pipes(Command):
    """slate pipes
    The pipes that are open.
    READERS and WRITERS are 0 where that end is closed. BYTES are in the pipe
    now, TOTAL went in since it was made."""

    def run(self, args):
        table = Table("PIPE:-10 READERS:7 WRITERS:7 BYTES:6 TOTAL:10")
        for p in table.each(system.pipes()):
            table.row(Hex(p.address), p.pipe_readers, p.pipe_writers,
                      p.pipe_bytes, p.pipe_total)
        if not table.rows:
            print("(no pipe is open)")


class Inodes(Command):
    """slate inodes [-a]
    The inode cache.
    The files in use, by file system and number: REFS counts open files, current
    directories and mounts. The last lines say how many files are cached though
    unused, and how often an inode that was looked up was cached.
      -a  unused ones too
    Example: slate inodes -a"""

    def run(self, args):
        table = Table("FS:-8 NUMBER:8 TYPE:-6 LINKS:5 SIZE:10 REFS:5 :-1")
        for inode in table.each(system.inodes()):
            if "a" in args or inode.inode_refs:
                table.row(system.fs_name(inode), inode.inode_number,
                          system.file_type(inode), inode.inode_nlink,
                          inode.inode_size, inode.inode_refs,
                          "" if inode.inode_refs else " unused")
        totals = target.record_of("totals", "fs/inode.c")
        looked = totals.total_hits + totals.total_misses
        rate = percent(1000 - waste(totals.total_hits, looked))
        print(f"{system.inode_table().hash_count} inodes in memory, "
              f"{totals.total_unused} of them unused; "
              f"{totals.total_reclaimed} reclaimed\n"
              f"looked up {looked} times, found {totals.total_hits} times: "
              f"{rate} %")


class Mounts(Command):
    """slate mounts
    File systems and their servers.
    ROOT is the number of the root directory, INODES how many of its inodes are
    in memory. STATE `dead`: the server has died, and no other has started."""

    def run(self, args):
        table = Table("PATH:-11 KIND:-5 ROOT:8 INODES:6 SERVER:-12 STATE:-1")
        for fs in table.each(system.mounts()):
            try:
                server, state = None, "ok"
                if fs.fs_ops == target.address_of("userfs_ops"):
                    port = record("port", record("userfs",
                                                 fs.address).userfs_port)
                    server = f"{system.task_name(port.port_server)}" \
                        f"({port.port_server})"
                    state = "ok" if port.port_holders else "dead"
                path = system.ram_path(record("inode", fs.fs_covers)) \
                    if fs.fs_covers else "/"
                table.row(path, string(fs.fs_name, 16), fs.fs_root,
                          fs.fs_inodes, server, state)
            except BadMemory as e:
                table.bad(e)


class Dmesg(Command):
    """slate dmesg [-n LINES]
    What the kernel has printed, out of its memory.
    The last 16 KiB of output, oldest first; also of a kernel whose serial line
    is silent.
      -n  only the last lines
    Example: slate dmesg -n 5"""

    def run(self, args):
        console = target.record_of("console", "console.c")
        offset, kind = console.layout.members["history"]
        ring = console.data[offset:offset + kind.sizeof]
        at = console.history_end % kind.sizeof
        if console.history_end <= kind.sizeof:
            ring, at = ring[:console.history_end], 0
        lines = (ring[at:] + ring[:at]).decode("latin-1").splitlines()
        print("\n".join(lines[-args.number("n", len(lines), 1):]))
