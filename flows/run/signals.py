"""Handle signals: the first Ctrl-C lets the round finish; the second, SIGTERM and SIGHUP stop at once."""

import logging
import signal
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from types import FrameType

from winnow.flows.run.log_format import notice

AT_ONCE = (signal.SIGTERM, signal.SIGHUP)
"""Signals that stop a run at once; service managers send SIGTERM, closed terminals SIGHUP."""


def hold_back_from_children() -> None:
    """Block Ctrl-C for processes that this thread starts, until they enter `Interrupts.caught`.

    Otherwise Ctrl-C would end them with a traceback while they import modules. In this process, another
    thread receives the signal.
    """
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])


class Interrupts:
    """Requests to stop a run, by signals or by a program."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._forced_by: int | None = None

    @property
    def asked(self) -> bool:
        """Whether the user or the system requested a stop."""
        return self._asked.is_set()

    def ask(self) -> None:
        """Request a stop after the current round."""
        self._asked.set()

    @property
    def exit_code(self) -> int:
        """128 plus the number of the signal that stopped the run, as shells report it."""
        return 128 + (self._forced_by or signal.SIGINT)

    @contextmanager
    def caught(self, at_once: Sequence[signal.Signals] = AT_ONCE) -> Generator[None, None, None]:
        """Handle Ctrl-C and the signals in `at_once` until the block ends.

        Signals that are ignored, such as SIGHUP below `nohup`, stay ignored. Only the main thread receives
        signals, so the block handles none in other threads. A Ctrl-C that `hold_back_from_children` has
        blocked until now counts.

        Args:
            at_once: Signals that stop at once. In a flow run, SIGTERM is not among them, because Prefect
                uses it to cancel runs.

        Raises:
            KeyboardInterrupt: At the second Ctrl-C, or at a signal in `at_once`. Further signals are ignored,
                so that the lease can be released.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handled = [each for each in at_once if signal.getsignal(each) != signal.SIG_IGN]
        before = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, *handled)}
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._forced_by is not None:
            return
        if self.asked or number in AT_ONCE:
            self._asked.set()
            self._forced_by = number
            # Else a connection pool that is interrupted while it closes a connection prints a traceback.
            logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
            raise KeyboardInterrupt
        self._asked.set()
        notice("interrupted", "finishing the round; press Ctrl-C again to stop at once")
