"""Early start of a campaign while Prefect starts: models load and servers get the first requests."""

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
    """Start the models of a stored campaign; the run inside the block takes them over.

    Errors in this phase are ignored; the run tries again, so that Prefect shows them.
    """
    with early_server(), ExitStack() as stack:
        begun = _begun(campaign)
        if begun is not None:
            stack.enter_context(begun.closing)
        token = _ahead.set(begun)
        try:
            yield
        finally:
            _ahead.reset(token)


@contextmanager
def session_of(campaign: Campaign) -> Generator[CampaignSession, None, None]:
    """The session of a campaign that is about to run: the one started early, or a new one.

    Raises the errors of `running`.
    """
    ahead = _ahead.get()
    if ahead is not None and ahead.campaign is campaign:
        with ahead.closing.pop_all():
            yield ahead.session
    else:
        with _running(campaign) as session:
            yield session


def _running(campaign: Campaign) -> AbstractContextManager[CampaignSession]:
    return running(campaign.database, campaign.record, resolved(campaign), campaign.pool)


def begin_loading(campaign: CampaignSession) -> bool:
    """Start loading models if the campaign has a round to run; return whether it has."""
    # A round that was planned is finished, whatever is decided.
    begun = stored_plan(campaign) is not None
    has_ended = campaign.selector.decision().stop or campaign.is_overspent
    if (has_ended and not begun) or not can_begin(campaign):
        return False
    campaign.load_engines()
    return True


@dataclass(frozen=True)
class _Ahead:
    """A campaign that was started early."""

    campaign: Campaign
    session: CampaignSession
    closing: ExitStack
    """Closes the early start; empty after a run has taken it over."""


_ahead: ContextVar[_Ahead | None] = ContextVar("_ahead", default=None)
"""The early-started campaign that the next run of this thread takes over, if it is the same campaign."""


def _begun(campaign: Campaign) -> _Ahead | None:
    with ExitStack() as stack:
        try:
            session = stack.enter_context(_running(campaign))
            if begin_loading(session):
                stack.enter_context(_asking(session))
        except Exception:
            return None
        return _Ahead(campaign, session, stack.pop_all())


@contextmanager
def _asking(campaign: CampaignSession) -> Generator[None, None, None]:
    """Request the first round's texts in the block if servers run all models; errors end this silently."""
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
