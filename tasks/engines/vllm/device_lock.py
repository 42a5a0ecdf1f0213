"""One engine at a time loads, sleeps or wakes on a GPU that several share.

vLLM measures how much memory its own load takes by how much is free before and after, and fails or takes too
little for its cache where another engine takes or frees some meanwhile.
"""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from winnow.tasks.plugins.own_files import open_to_append

VISIBLE = "CUDA_VISIBLE_DEVICES"


class DeviceLock:
    """The lock of the devices that this process sees; it ends with the process, however that ends.

    Args:
        folder: Folder of the lock files, the same for all engines that may share a device; made when needed.
        is_shared: Whether any may; otherwise nothing is locked.
    """

    def __init__(self, folder: Path, *, is_shared: bool) -> None:
        devices = os.environ.get(VISIBLE, "all").replace(os.sep, "_").split(",") if is_shared else []
        # In one order everywhere: two engines that wait for each other would wait for ever.
        self._files = [folder / f"device-{name.strip()}.lock" for name in sorted(set(devices))]
        self.waited = 0.0
        """Seconds, the last time."""

    @contextmanager
    def held(self) -> Generator[None, None, None]:
        """Have the devices to ourselves until the block ends."""
        started = time.monotonic()
        with ExitStack() as files:
            for path in self._files:
                file = files.enter_context(open_to_append(path))
                fcntl.flock(file, fcntl.LOCK_EX)
                # Said, and not left to the end of the file: processes that vLLM forks hold it open as well.
                files.callback(fcntl.flock, file, fcntl.LOCK_UN)
            self.waited = time.monotonic() - started
            yield
