"""What processes were started with."""

import psutil
from waiting import eventually


def command_of(process):
    """The words of a process's command line; none where it is gone.

    A process that has begun this moment has none either, until the kernel has copied them.
    """
    try:
        return eventually(process.cmdline)
    except psutil.NoSuchProcess:  # or has ended and is not waited for
        return []
