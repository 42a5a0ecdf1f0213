"""Ctrl-C: the first one lets the round finish, the second stops at once."""

import logging
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from flows.log_lines import notice


class Interrupts:
    """Counts the requests to stop."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._is_forced = False

    @property
    def asked(self) -> bool:
        """Whether anybody asked to stop."""
        return self._asked.is_set()

    @contextmanager
    def caught(self) -> Generator[None, None, None]:
        """Take Ctrl-C over until the block ends.

        Raises:
            KeyboardInterrupt: At the second Ctrl-C. Further ones are ignored: what ends then gives the lease
                back, and would be cut off.
        """
        before = signal.signal(signal.SIGINT, self._handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._is_forced:
            return
        if self.asked:
            self._is_forced = True
            # A pool that is cut off while it closes a connection would print a traceback.
            logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
            raise KeyboardInterrupt
        self._asked.set()
        notice("interrupted", "finishing the round; press Ctrl-C again to stop at once")
