"""Ctrl-C: the first one lets the round finish, the second stops at once, as SIGTERM and SIGHUP do."""

import logging
import signal
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from types import FrameType

from winnow.flows.run.log_format import notice

AT_ONCE = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end us at once: from a service manager, or because the terminal is gone."""


def hold_back_from_children() -> None:
    """Let processes that this thread starts from now on get Ctrl-C only once they enter `Interrupts.caught`.

    Until then they import what they need, and would end in a traceback. Here, another thread gets it.
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
        """Whether anybody asked to stop."""
        return self._asked.is_set()

    def ask(self) -> None:
        """Have the round that is going on be the last one."""
        self._asked.set()

    @property
    def exit_code(self) -> int:
        """The exit code that a shell gives a process that was ended by the signal that stopped this one."""
        return 128 + (self._forced_by or signal.SIGINT)

    @contextmanager
    def caught(self, at_once: Sequence[signal.Signals] = AT_ONCE) -> Generator[None, None, None]:
        """Take Ctrl-C, SIGTERM and SIGHUP over until the block ends; SIGHUP not where `nohup` ignores it.

        Signals reach the main thread alone: in any other one, nothing is taken over. A Ctrl-C that was held
        back until now counts; see `hold_back_from_children`.

        Args:
            at_once: The signals that stop at once; in a flow run not SIGTERM, by which Prefect cancels it.

        Raises:
            KeyboardInterrupt: At the second Ctrl-C, or at one of the others. Further ones are ignored: what
                ends then gives the lease back, and would be cut off.
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
