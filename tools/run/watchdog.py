"""The watchdog ends a process of the host that no longer makes progress.

No verdict depends on it: what is tested ends by a budget that it counts itself
(instructions, steps, operations), however busy the host is. The watchdog is for
what counts nothing, or counts wrongly. It is long enough for a busy machine.
"""

import os
import shlex
import signal
import subprocess
import time

SECONDS = 1800
PAUSE = 0.02


class Watchdog(Exception):
    def __init__(self, what):
        super().__init__(f"watchdog: {what} after {SECONDS} s of the host; "
                         "this says nothing about what was tested")


def run(argv, input=None, capture_output=False, **options):
    """subprocess.run() without a check and without input from the terminal. The
    watchdog kills the process and those that it started."""
    options.setdefault("stdin", subprocess.DEVNULL if input is None
                       else subprocess.PIPE)
    if capture_output:
        options.update(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with subprocess.Popen(argv, start_new_session=True, **options) as process:
        try:
            output = process.communicate(input, SECONDS)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise Watchdog(f"{shlex.join(map(str, argv))} still ran") \
                    from None
            raise
    return subprocess.CompletedProcess(argv, process.returncode, *output)


def poll(ask, true=bool):
    """Asks again and again until the answer is `true`; returns it."""
    end = time.monotonic() + SECONDS
    while not true(answer := ask()):
        if time.monotonic() > end:
            raise Watchdog(f"the answer is still {answer!r}")
        time.sleep(PAUSE)
    return answer
