"""Callbacks: observers of a running campaign, which are called at every round and can stop it."""

from collections.abc import Collection, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from winnow.algorithms.decision import Decision
from winnow.storage.records.record_types import RoundRecord
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.objectives.runner import JudgedRound, Observer


class Callback(Observer, Protocol):
    """Protocol of observers of a campaign's beginning, rounds and end; the default methods do nothing."""

    def begun(self, campaign: CampaignSession) -> None:
        """Called at the beginning; the lease is held, and the selector has observed all stored results."""
        return

    def ended(self) -> None:
        """Called at the end of the run, also after an error; the lease is released, the database is open."""
        return


class NullCallback(Callback):
    """A callback that does nothing and never stops a run."""


class CallbackList:
    """Several callbacks as one: they are called in turn, and each can stop the run."""

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
    """The callback set by `using_callback`, or one that does nothing."""
    return _current.get() or NullCallback()


@contextmanager
def using_callback(callback: Callback) -> Generator[None, None, None]:
    """Set the callback of runs that start inside the block."""
    token = _current.set(callback)
    try:
        yield
    finally:
        _current.reset(token)
