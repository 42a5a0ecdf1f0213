"""Who watches a campaign while it runs: told of every round, and asked whether to go on."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from algorithms.protocols import Decision
from storage.records import RoundRecord
from tasks.running import RunningCampaign


class Watcher(Protocol):
    """Sees a campaign run. It changes nothing but when the campaign stops."""

    @property
    def wants_to_stop(self) -> bool:
        """Whether to end before the next round."""
        ...

    def begun(self, campaign: RunningCampaign) -> None:
        """The lease is held and all that is stored was told."""
        ...

    def round_done(self, campaign: RunningCampaign, round_: RoundRecord, decision: Decision) -> None:
        """A round is recorded."""
        ...


class Unwatched:
    """Nobody looks, and nobody asks to stop."""

    wants_to_stop = False

    def begun(self, campaign: RunningCampaign) -> None:
        """See `Watcher`."""

    def round_done(self, campaign: RunningCampaign, round_: RoundRecord, decision: Decision) -> None:
        """See `Watcher`."""


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


def current_watcher() -> Watcher:
    """Who watches the flow that is running here."""
    return _watcher.get() or Unwatched()


@contextmanager
def watched_by(watcher: Watcher) -> Generator[None, None, None]:
    """Have flows started inside the block watched."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)
