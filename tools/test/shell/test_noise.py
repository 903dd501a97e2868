"""Lines of random bytes at the kernel shell: thousands, or in `make fuzz` a
hundred thousand."""

import random

import pytest

from conftest import tiers
from tools.run import qemu


def noise(chance):
    """A line of random bytes, mostly short, sometimes longer than the shell
    accepts. The commands that end the machine are too long to occur by
    chance."""
    length = chance.randrange(1, 10)
    if length == 9:
        length = chance.choice([20, 40, 80, 300])
    return chance.randbytes(length) + b"\r"


@pytest.mark.parametrize("seed, lines", tiers([(1, 1000)], [(2, 10_000)],
                                              [(3, 100_000)]))
def test_random_bytes_leave_the_shell_working(kernel, seed, lines):
    chance = random.Random(seed)
    with qemu.Machine(kernel) as machine:
        machine.prompt()
        for _ in range(lines // 1000):
            machine.send(b"".join(noise(chance) for _ in range(1000)))
            machine.buffer = ""
        # The kernel loses keys that are typed faster than it reads: repeat
        # until it responds.
        while "\nstill-alive" not in machine.buffer:
            machine.send("\r\x03\x15\recho still-\"\"alive\r")
            while machine.receive(2):
                pass
            assert machine.process.poll() is None, \
                (seed, machine.transcript[-3000:])
            assert "slate!> " not in machine.buffer, \
                (seed, machine.transcript[-3000:])
        machine.buffer = ""
        assert machine.command("echo fine") == "fine\n", seed
        assert not machine.events("panic"), seed
