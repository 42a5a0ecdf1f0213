"""Signals: the first Ctrl-C lets the round finish; the second, SIGTERM and SIGHUP stop at once."""

import logging
import signal
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from types import FrameType

from winnow.flows.run.log_format import notice

AT_ONCE = (signal.SIGTERM, signal.SIGHUP)
"""Signals that stop at once: from a service manager, or on the end of the terminal."""


def hold_back_from_children() -> None:
    """Block Ctrl-C for processes that this thread starts, until they enter `Interrupts.caught`.

    While they import modules, Ctrl-C would end them with a traceback. In this process, another thread
    receives it.
    """
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])


class Interrupts:
    """Counts the requests to stop."""

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
        """The exit code that a shell reports for a process ended by the signal that stopped this one."""
        return 128 + (self._forced_by or signal.SIGINT)

    @contextmanager
    def caught(self, at_once: Sequence[signal.Signals] = AT_ONCE) -> Generator[None, None, None]:
        """Handle Ctrl-C, SIGTERM and SIGHUP until the block ends; `nohup` keeps SIGHUP ignored.

        Signals reach only the main thread, so other threads handle none. A Ctrl-C that
        `hold_back_from_children` has blocked until now counts. Signals in `at_once` stop at once; in a flow
        run SIGTERM does not, because Prefect cancels runs by it.

        Raises:
            KeyboardInterrupt: At the second Ctrl-C, or at a signal in `at_once`. Further signals are ignored,
                so that the lease is released.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        taken = [each for each in at_once if signal.getsignal(each) != signal.SIG_IGN]
        before = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, *taken)}
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
            # A pool that is cut off while it closes a connection would print a traceback.
            logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
            raise KeyboardInterrupt
        self._asked.set()
        notice("interrupted", "finishing the round; press Ctrl-C again to stop at once")
