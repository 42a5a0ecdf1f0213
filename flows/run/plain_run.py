"""A campaign's run by plain calls: its session, observers, rounds and result.

`flow` has Prefect record them; runs without model requests and without the user's Prefect server use this
module alone.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from winnow.flows.run.artifacts import ending
from winnow.flows.run.callbacks import Callback, current_callback
from winnow.flows.run.head_start import begin_loading, session_of
from winnow.tasks.campaign.campaign import Campaign, opened_campaign
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.objectives.runner import Runner, campaign_span

_running: ContextVar[Campaign | None] = ContextVar("running", default=None)


@contextmanager
def at_hand(campaign: Campaign) -> Generator[None, None, None]:
    """Make runs of this campaign inside the block use its open session."""
    token = _running.set(campaign)
    try:
        yield
    finally:
        _running.reset(token)


@contextmanager
def _campaign_at(storage: str, name: str) -> Generator[Campaign, None, None]:
    found = _running.get()
    if found is not None and (found.storage, found.name) == (storage, name):
        yield found
    else:
        with opened_campaign(storage, name) as campaign:
            yield campaign


Rounds = Callable[[CampaignSession, Callback], None]
"""Runs rounds until the campaign ends or is stopped."""


def run_campaign(storage: str, name: str, run: Rounds | None = None) -> str:
    """Run a stored campaign until it is decided, out of budget, waiting for people, or stopped.

    `run` runs its rounds; None for `run_rounds`.

    Returns:
        The campaign's status, and commands that show more.

    Raises: See `flow.run_campaign`.
    """
    callback = current_callback()
    with _campaign_at(storage, name) as stored:
        try:
            with session_of(stored) as campaign, campaign_span(campaign.record):
                callback.begun(campaign)
                if begin_loading(campaign):
                    (run or run_rounds)(campaign, callback)
        finally:
            callback.ended()
        with stored.look() as look:
            return ending(look, stored.database.url)


def run_rounds(campaign: CampaignSession, callback: Callback) -> None:
    """Run rounds by plain calls until the campaign ends or is stopped."""
    with Runner(campaign, callback) as runner:
        runner.run()
