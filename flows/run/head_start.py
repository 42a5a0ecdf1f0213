"""Prefetch: load models and send the first requests of a campaign while Prefect starts."""

from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from winnow.flows.prefect_support.server import early_server
from winnow.tasks.campaign.campaign import Campaign
from winnow.tasks.campaign.session import CampaignSession, running
from winnow.tasks.engines.known_providers import REMOTE
from winnow.tasks.objectives.round_functions import begin_texts, can_begin
from winnow.tasks.rounds.plan import stored_plan
from winnow.tasks.setup.open_campaign import resolved


@contextmanager
def head_start(campaign: Campaign) -> Generator[None, None, None]:
    """Start the models of a stored campaign; the run inside the block uses them.

    Errors are ignored here; the run tries again, so that Prefect shows them.
    """
    with early_server(), ExitStack() as stack:
        started = _start_early(campaign)
        if started is not None:
            stack.enter_context(started.closing)
        token = _early.set(started)
        try:
            yield
        finally:
            _early.reset(token)


@contextmanager
def session_of(campaign: Campaign) -> Generator[CampaignSession, None, None]:
    """Yield the session of a campaign that is about to run: the early one, or a new one.

    Errors are those of `running`.
    """
    early = _early.get()
    if early is not None and early.campaign is campaign:
        with early.closing.pop_all():
            yield early.session
    else:
        with _running(campaign) as session:
            yield session


def _running(campaign: Campaign) -> AbstractContextManager[CampaignSession]:
    return running(campaign.database, campaign.record, resolved(campaign), campaign.pool)


def begin_loading(campaign: CampaignSession) -> bool:
    """Start loading models if the campaign has a round to run; return whether it has one."""
    # A planned round is always finished, even if the campaign has been decided.
    has_plan = stored_plan(campaign) is not None
    has_ended = campaign.selector.decision().stop or campaign.is_overspent
    if (has_ended and not has_plan) or not can_begin(campaign):
        return False
    campaign.load_engines()
    return True


@dataclass(frozen=True)
class _EarlyStart:
    """A campaign that was started early, with its open session."""

    campaign: Campaign
    session: CampaignSession
    closing: ExitStack
    """Closes the session; empty after a run has taken it over."""


_early: ContextVar[_EarlyStart | None] = ContextVar("_early", default=None)
"""The campaign that was started early in this thread; the next run takes it over if it is its campaign."""


def _start_early(campaign: Campaign) -> _EarlyStart | None:
    with ExitStack() as stack:
        try:
            session = stack.enter_context(_running(campaign))
            if begin_loading(session):
                stack.enter_context(_prefetching(session))
        except Exception:
            return None
        return _EarlyStart(campaign, session, stack.pop_all())


@contextmanager
def _prefetching(campaign: CampaignSession) -> Generator[None, None, None]:
    """During the block, request the first round's outputs if servers run all models."""
    checked, round_ = campaign.checked, stored_plan(campaign)
    if (
        round_ is None
        or checked.runs_ahead
        or not all(each.provider in REMOTE for each in checked.models_to_ask)
    ):
        yield
        return
    texts = begin_texts(campaign, round_)
    try:
        yield
        texts.wait()
    except BaseException:
        if not texts.is_over:
            campaign.engines.abandon()
            texts.wait()
        raise
