"""The time that a submission may use: of the processor for each compiler and
machine, and for all of them together. Honest submissions use a tenth of it or
less; what ends others does not keep the next one waiting for long."""

import contextlib
import math
import resource
import time

EACH = 120          # processor seconds of one process
WHOLE = 600         # of all processes of a submission
SLOWEST = 10        # seconds of the clock for one of the processor


class Spent(Exception):
    """A submission has used all its time."""


def _used():
    """Processor seconds of all processes that this one has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


class Budget:
    """The time of one submission after another: begin() is for the next."""

    def __init__(self, each=EACH, whole=WHOLE):
        self.each, self.whole = each, whole
        self.begin()

    def begin(self):
        self._end = _used() + self.whole
        self._clock = time.monotonic() + SLOWEST * self.whole

    @contextlib.contextmanager
    def paused(self):
        """What runs meanwhile is the grader's own, and is not counted."""
        used, clock = _used(), time.monotonic()
        try:
            yield
        finally:
            self._end += _used() - used
            self._clock += time.monotonic() - clock

    def next(self, most=math.inf):
        """Processor seconds for the next process, at most `most`. Raises
        Spent."""
        if time.monotonic() > self._clock:
            raise Spent(f"it took more than {SLOWEST * self.whole} s")
        left = int(self._end - _used())
        if left < 1:
            raise Spent(f"all {self.whole} s of processor time were used up")
        return min(self.each, most, left)
