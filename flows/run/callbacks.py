"""Watchers of a campaign while it runs: told of every round, and asked whether to continue."""

from collections.abc import Collection, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from winnow.algorithms.decision import Decision
from winnow.storage.records.record_types import RoundRecord
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.objectives.runner import JudgedRound, Observer


class Callback(Observer, Protocol):
    """Sees a campaign run, its beginning and its end as well as its rounds."""

    def begun(self, campaign: CampaignSession) -> None:
        """The campaign begins: its lease is held, and its selector was told all that is stored."""
        ...

    def ended(self) -> None:
        """The run has ended, in whatever way: the lease was given back; the database is still open."""
        ...


class NullCallback:
    """A callback that does nothing and never asks to stop."""

    @property
    def wants_to_stop(self) -> bool:
        """See `Callback`."""
        return False

    def begun(self, campaign: CampaignSession) -> None:
        """See `Callback`."""

    def round_judged(self, campaign: CampaignSession, judged: JudgedRound) -> Collection[int]:
        """See `Callback`."""
        return ()

    def round_done(self, campaign: CampaignSession, round_: RoundRecord, decision: Decision) -> None:
        """See `Callback`."""

    def ended(self) -> None:
        """See `Callback`."""


class CallbackList:
    """Several callbacks as one; each is told in turn, and any may ask to stop."""

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
    """The callback of the flow that is running here."""
    return _current.get() or NullCallback()


@contextmanager
def using_callback(callback: Callback) -> Generator[None, None, None]:
    """Have flows that are started inside the block call it."""
    token = _current.set(callback)
    try:
        yield
    finally:
        _current.reset(token)
