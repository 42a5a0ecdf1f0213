"""Waiting for what happens soon on an idle machine, and late on a busy one."""

import time

PATIENCE_S = 600.0
"""Seconds after which something has not happened; how fast it is, no test says."""


def eventually(holds, *, every_s=0.01, patience_s=PATIENCE_S):
    """What `holds` returns once that is true, or at last."""
    deadline = time.monotonic() + patience_s
    while not (found := holds()) and time.monotonic() < deadline:
        time.sleep(every_s)
    return found


def until(holds, *, every_s=0.1, patience_s=PATIENCE_S):
    """What `holds` returns once that is true; the test fails where it never is."""
    found = eventually(holds, every_s=every_s, patience_s=patience_s)
    assert found, f"it did not happen in {patience_s:g} s"
    return found
