"""slate pipes, inodes, mounts: files from the kernel's side, as in its
shell."""

import common
import objects_model as model

# ---- pipes -----------------------------------------------------------------

PIPE_COLUMNS = "{:<10} {:>7} {:>7} {:>6} {:>10}"


class Pipes(common.Command):
    name = "slate pipes"
    summary = "The pipes that are open"
    details = """
READERS and WRITERS are 0 where that end is closed. BYTES wait in the pipe,
TOTAL went in since it was made."""
    example = "slate pipes"

    def run(self, args):
        print(PIPE_COLUMNS.format("PIPE", "READERS", "WRITERS", "BYTES",
                                  "TOTAL"))
        found = model.pipes()
        for p in found:
            if isinstance(p, model.Bad):
                print(p)
                continue
            print(PIPE_COLUMNS.format(f"0x{p.address:08x}", p.pipe_readers,
                                      p.pipe_writers, p.pipe_bytes,
                                      p.pipe_total))
        if not found:
            print("(no pipe is open)")


# ---- inodes ----------------------------------------------------------------

INODE_COLUMNS = "{:<8} {:>8} {:<6} {:>5} {:>10} {:>5}"


def inode_row(inode):
    types = model.file_types()
    try:
        fs = model.fs_name(inode)
    except common.BadMemory:
        fs = "!"
    kind = types.get(inode.inode_type, "new")
    return INODE_COLUMNS.format(fs, inode.inode_number, kind,
                                inode.inode_nlink, inode.inode_size,
                                inode.inode_refs) + \
        ("  unused" if inode.inode_refs == 0 else "")


def print_totals():
    totals = common.record_of(common.variable("totals", "fs/inode.c"))
    table = model.inode_table()
    looked = totals.total_hits + totals.total_misses
    rate = common.percent(1000 - common.waste(totals.total_hits, looked))
    print(f"{table.hash_count} inodes in memory, {totals.total_unused} of "
          f"them unused; {totals.total_reclaimed} given up for their memory")
    print(f"looked for {looked} times, found {totals.total_hits} times: "
          f"{rate} %")


class Inodes(common.Command):
    name = "slate inodes"
    usage = "[-a]"
    summary = "The inode cache"
    details = """
The files that somebody uses, by file system and number: REFS counts open
files, current directories and mounts. The last lines tell how many files are
remembered though nobody uses them, and how often an inode that was wanted was
there.
  -a  unused ones too"""
    example = "slate inodes -a"
    options = "a"

    def run(self, args):
        print(INODE_COLUMNS.format("FS", "NUMBER", "TYPE", "LINKS", "SIZE",
                                   "REFS"))
        for inode in model.inodes():
            if isinstance(inode, model.Bad):
                print(inode)
            elif "a" in args or inode.inode_refs > 0:
                print(inode_row(inode))
        print_totals()


# ---- mounts ----------------------------------------------------------------

MOUNT_COLUMNS = "{:<11} {:<5} {:>8} {:>7} {:>7} {:>5} {:>5} {:>6} {:<10} {}"


def mount_row(fs):
    """The figures of a file system are its own: nobody can be asked here."""
    served = model.userfs_of(fs)
    server, state = "-", "ok"
    if served:
        port = common.record("struct port", served.userfs_port, "port_init")
        names = {t.task_pid: t.task_name for t in model.tasks()
                 if not isinstance(t, model.Bad)}
        server = f"{names.get(port.port_server, '')}({port.port_server})"
        state = "ok" if port.port_holders else "dead"
    path = model.ram_path(model.inode_at(fs.fs_covers)) \
        if fs.fs_covers else "/"
    return MOUNT_COLUMNS.format(path, common.string(fs.fs_name, 16),
                                fs.fs_root, "-", "-", "-", "-", fs.fs_inodes,
                                server, state)


class Mounts(common.Command):
    name = "slate mounts"
    summary = "File systems and who serves them"
    details = """
ROOT is the number of the root directory, INODES how many of its inodes are in
memory. STATE `dead`: the server has died, and another has not come yet. What
the file systems say of themselves is not in the kernel, so these columns are
empty here."""
    example = "slate mounts"

    def run(self, args):
        print(MOUNT_COLUMNS.format("PATH", "KIND", "ROOT", "BLOCKS", "FREE",
                                   "FILES", "FREE", "INODES", "SERVER",
                                   "STATE"))
        for fs in model.mounts():
            try:
                print(fs if isinstance(fs, model.Bad) else mount_row(fs))
            except common.BadMemory as e:
                print(f"! {e}")


Pipes()
Inodes()
Mounts()
