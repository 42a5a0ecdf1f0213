"""Waiting for what happens soon on an idle machine, and late on a busy one."""

import time

PATIENCE_S = 120.0
"""Seconds after which something has not happened; how fast it is, no test says."""


def eventually(holds, *, every_s=0.01):
    """What `holds` returns once that is true, or at last."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := holds()) and time.monotonic() < deadline:
        time.sleep(every_s)
    return found
