"""Slate under GDB.

    python3 -m tools.run.debug KERNEL                `make gdb`
    python3 -m tools.run.debug --server KERNEL       `make debug-server`
    python3 -m tools.run.debug KERNEL -- ARGUMENTS   further arguments for gdb
    python3 -m tools.run.debug --core FILE KERNEL    `make gdb CORE=FILE`

The first starts QEMU halted, attaches GDB in this terminal, continues to kmain
and lists its source. The serial line is a terminal of its own, whose name is
printed (`screen /dev/pts/N` opens it); a file has the kernel's output too. QEMU
ends with GDB. The second only starts QEMU and prints the command that attaches
a GDB. CMD, APPEND, MEM and CPUS are as with `make run`. With a core file (`make
core`) no machine runs, but `slate` works as on a live machine.

An editor needs a stub at a fixed address: STUB is the path of its socket, and
debugged.elf in the same folder is a link to the kernel (.vscode/launch.json).
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.run import qemu

SETTINGS = Path(__file__).resolve().parents[1] / "gdb" / "slate.gdb"


# What Slate adds to GDB.
BANNER = ["-ex", r"echo \n`slate help` lists the kernel's reports, `slate`"
          r" alone GDB's own commands.\n"]


def find_gdb():
    """A GDB that supports the i386. On Debian for ARM that is gdb-multiarch;
    the gdb that is always installed with it does not."""
    names = [os.environ.get("GDB"), "gdb-multiarch", "gdb", "i386-elf-gdb"]
    for name in filter(None, names):
        if shutil.which(name):
            return name
    sys.exit("make gdb: gdb not found: run tools/setup")


def gdb_command(kernel, stub, arguments=()):
    """GDB attached at `stub`. The first breakpoint is a hardware one: paging
    is off when it is set, so there is no memory to write a trap into."""
    return [find_gdb(), "-nx", "-q", "-x", str(SETTINGS), kernel,
            "-ex", f"target remote {stub}", "-ex", "hbreak kmain",
            "-ex", "continue", "-ex", "list", *BANNER, *arguments]


def open_core(kernel, core, arguments):
    """Runs GDB on a core file."""
    if not os.access(core, os.R_OK):
        sys.exit(f"make gdb: cannot read {core}; `make core` makes "
                 "build/slate.core")
    return subprocess.run(
        [find_gdb(), "-nx", "-q", "-x", str(SETTINGS), kernel, core,
         *BANNER, *arguments], check=False).returncode


# The longest path of a Unix socket, in bytes: that of macOS; Linux has 107.
LONGEST = 103


def socket_folder():
    """A new folder for a machine's files and sockets, whose paths are short
    enough whatever TMPDIR is."""
    path = os.path.join(tempfile.gettempdir(), "slate-12345678/stub")
    return tempfile.TemporaryDirectory(
        prefix="slate-", dir="/tmp" if len(os.fsencode(path)) > LONGEST
        else None)


def listen(stub):
    """The unix socket of a GDB stub. GDB may connect to it from now on."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(stub)
    server.listen(1)
    return server


def stub_arguments(server):
    """Arguments that halt QEMU, with its GDB stub on a socket that listens."""
    return ["-S", "-gdb", "chardev:gdb", "-chardev",
            f"socket,id=gdb,fd={server.fileno()},server=on,wait=off"]


def qemu_command(kernel, server, serial, extra=()):
    """QEMU for `make gdb`."""
    line = qemu.kernel_line(os.environ.get("CMD", ""),
                            os.environ.get("APPEND", ""))
    return qemu.command(
        qemu.boot_arguments(kernel, line), os.environ.get("MEM") or "128",
        serial=serial,
        extra=[*qemu.processors(), *stub_arguments(server), *extra])


def debug(kernel, folder, arguments):
    """Runs GDB on a QEMU in the background."""
    stub, log = f"{folder}/gdb", Path(kernel).parent / "gdb-serial.log"
    ours, theirs = socket.socketpair()
    wire, server = theirs.fileno(), listen(stub)
    # A session of its own: ^C must not reach QEMU. It stays when the kernel
    # powers off, as it may while GDB detaches, until GDB has ended.
    machine = subprocess.Popen(
        qemu_command(kernel, server, "chardev:line", [
            "-no-shutdown",
            "-chardev", f"pty,id=line,logfile={qemu.option(log)}",
            "-chardev", f"socket,id=qmp,fd={wire}",
            "-mon", "chardev=qmp,mode=control"]),
        pass_fds=(wire, server.fileno()), start_new_session=True,
        stdout=subprocess.DEVNULL)
    theirs.close()
    server.close()
    try:
        control = qemu.Qmp(ours)
        line = next(chardev["filename"].replace("pty:", "") for chardev in
                    control.execute("query-chardev")
                    if chardev["label"] == "line")
        print(f"serial line: {line}, copied to {log}", flush=True)
        control.close()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return subprocess.run(
            gdb_command(kernel, stub, arguments), check=False,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
        ).returncode
    except (qemu.QemuError, OSError) as e:
        print(f"make gdb: QEMU did not start: {e}", file=sys.stderr)
        return 1
    finally:
        machine.kill()
        machine.wait()


def known_stub(kernel, stub):
    """Prepares for an editor that attaches at `stub`: removes the socket of a
    server that was killed, and names the kernel."""
    if os.path.exists(stub) and not Path(stub).is_socket():
        sys.exit(f"make debug-server: STUB: {stub} is there, and no socket")
    Path(stub).unlink(missing_ok=True)
    link = Path(stub).with_name("debugged.elf")
    link.unlink(missing_ok=True)
    link.symlink_to(Path(kernel).absolute())


def serve(kernel, folder):
    """Runs QEMU in this terminal, halted until a GDB is attached."""
    stub = os.environ.get("STUB") or f"{folder}/gdb"
    if os.environ.get("STUB"):
        known_stub(kernel, stub)
    try:
        server = listen(stub)
    except OSError as e:
        sys.exit(f"make debug-server: STUB: {stub}: {e}")
    print(f"Ctrl-A X leaves QEMU. Attach with:\n"
          f"  {find_gdb()} -x tools/gdb/slate.gdb "
          f"-ex 'target remote {stub}' {kernel}", flush=True)
    return subprocess.run(qemu_command(kernel, server, "mon:stdio"),
                          pass_fds=(server.fileno(),), check=False).returncode


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--server", action="store_true",
                        help="only QEMU, waiting for a GDB")
    parser.add_argument("--core", default=os.environ.get("CORE"),
                        help="open this file instead of starting QEMU")
    parser.add_argument("kernel")
    parser.add_argument("arguments", nargs="*", help="for gdb, after --")
    args = parser.parse_args()

    if args.core:
        sys.exit(open_core(args.kernel, args.core, args.arguments))
    if not shutil.which(qemu.QEMU):
        sys.exit(f"make gdb: {qemu.QEMU} not found: run tools/setup")
    qemu.leave_in_order()
    with socket_folder() as folder:
        if args.server:
            sys.exit(serve(args.kernel, folder))
        sys.exit(debug(args.kernel, folder, args.arguments))


if __name__ == "__main__":
    main()
