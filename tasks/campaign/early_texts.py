"""The texts of a round begun early, in a thread, while the rest of the process still gets ready."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context

from winnow.tasks.campaign.missing_texts import GenerationBatch


class EarlyTexts:
    """The texts of one round, on their way from now on.

    Args:
        round_id: The round.
        make: Makes them; called in a thread.
    """

    def __init__(self, round_id: int, make: Callable[[], GenerationBatch]) -> None:
        self.round_id = round_id
        self.began = time.monotonic()
        """The moment from which they are made."""
        self._made: Future[GenerationBatch] = Future()
        # A daemon: what cannot be broken off must not keep the process from ending.
        threading.Thread(
            target=copy_context().run, args=(self._run, make), name="head-start", daemon=True
        ).start()

    @property
    def is_over(self) -> bool:
        """Whether nothing is made any more, whatever came of it."""
        return self._made.done()

    def texts(self) -> GenerationBatch:
        """The batch of texts; waits for it, and raises what ended it."""
        return self._made.result()

    def wait(self) -> None:
        """Wait until nothing is made any more; errors are for `texts`."""
        self._made.exception()

    def _run(self, make: Callable[[], GenerationBatch]) -> None:
        try:
            self._made.set_result(make())
        except BaseException as error:
            self._made.set_exception(error)
