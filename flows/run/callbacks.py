"""Observers of a running campaign, called at every round and able to stop it."""

from collections.abc import Collection, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from winnow.algorithms.decision import Decision
from winnow.storage.records.record_types import RoundRecord
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.objectives.runner import JudgedRound, Observer


class Callback(Observer, Protocol):
    """Observer of a campaign's beginning, rounds and end; methods that are not overridden do nothing."""

    def begun(self, campaign: CampaignSession) -> None:
        """Called at the beginning: the lease is held, and the selector has all stored results."""
        return

    def ended(self) -> None:
        """Called at the end of the run, for any reason: the lease is released, the database still open."""
        return


class NullCallback(Callback):
    """A callback that does nothing and never stops a run."""


class CallbackList:
    """Several callbacks as one, called in turn; each one can stop the run."""

    def __init__(self, *callbacks: Callback) -> None:
        self._callbacks = callbacks

    @property
    def wants_to_stop(self) -> bool:
        """See `Callback`."""
        return any(each.wants_to_stop for each in self._callbacks)

    def begun(self, campaign: CampaignSession) -> None:
        """See `Callback`."""
        for each in self._callbacks:
            each.begun(campaign)

    def round_judged(self, campaign: CampaignSession, judged: JudgedRound) -> Collection[int]:
        """See `Callback`."""
        return {arm for each in self._callbacks for arm in each.round_judged(campaign, judged)}

    def round_done(self, campaign: CampaignSession, round_: RoundRecord, decision: Decision) -> None:
        """See `Callback`."""
        for each in self._callbacks:
            each.round_done(campaign, round_, decision)

    def ended(self) -> None:
        """See `Callback`."""
        for each in self._callbacks:
            each.ended()


_current: ContextVar[Callback | None] = ContextVar("callback", default=None)


def current_callback() -> Callback:
    """The callback of the current flow."""
    return _current.get() or NullCallback()


@contextmanager
def using_callback(callback: Callback) -> Generator[None, None, None]:
    """Make flows started inside the block use a callback."""
    token = _current.set(callback)
    try:
        yield
    finally:
        _current.reset(token)
