"""Answers to batches that an engine did not finish: nobody has to ask and pay for them again."""

import threading
from collections.abc import Mapping, Sequence

from winnow.tasks.engines.protocol import Answer, Request


class KeptAnswers:
    """Answers by engine and request, until a batch with that request is finished. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[tuple[str, Request], Answer] = {}

    def keep(self, engine: str, answers: Mapping[Request, Answer]) -> None:
        """Remember answers of an engine."""
        with self._lock:
            self._answers.update({(engine, request): answer for request, answer in answers.items()})

    def of(self, engine: str, requests: Sequence[Request]) -> dict[Request, Answer]:
        """The answers that the engine has given to these requests, by request."""
        with self._lock:
            if not (known := self._answers):
                return {}
            return {each: known[engine, each] for each in requests if (engine, each) in known}

    def forget(self, engine: str, requests: Sequence[Request]) -> None:
        """Forget the answers of a finished batch: whoever asked has them."""
        with self._lock:
            for each in requests if self._answers else ():
                self._answers.pop((engine, each), None)
