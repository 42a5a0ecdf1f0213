"""Run a campaign by plain function calls, without Prefect.

The Prefect flow in `flow` uses this module and adds tasks. A run without model requests and without a Prefect
server of the user uses only this module.
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

_open_campaign: ContextVar[Campaign | None] = ContextVar("open_campaign", default=None)


@contextmanager
def using_campaign(campaign: Campaign) -> Generator[None, None, None]:
    """Make runs of this campaign inside the block use its open database."""
    token = _open_campaign.set(campaign)
    try:
        yield
    finally:
        _open_campaign.reset(token)


@contextmanager
def _campaign_at(storage: str, name: str) -> Generator[Campaign, None, None]:
    found = _open_campaign.get()
    if found is not None and (found.storage, found.name) == (storage, name):
        yield found
    else:
        with opened_campaign(storage, name) as campaign:
            yield campaign


Rounds = Callable[[CampaignSession, Callback], None]
"""A function that runs rounds until the campaign ends or is stopped."""


def run_campaign(storage: str, name: str, run: Rounds | None = None) -> str:
    """Run a stored campaign until it is decided, out of budget, waiting for people, or stopped.

    Errors are those of `flow.run_campaign`.

    Args:
        storage: URL of the results database.
        name: Name of the campaign.
        run: Function that runs the rounds; None is `run_rounds`.

    Returns:
        The campaign's status, and commands that show or continue it.
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
