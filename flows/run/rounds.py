"""The rounds of a campaign as plain calls, one after the other or several at a time.

`flow` has Prefect record them; where nobody is asked for texts and no server of the user keeps records, they
run without it.
"""

import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from functools import partial

from winnow.flows.run.artifact_contents import ending
from winnow.flows.run.callbacks import Callback, current_callback
from winnow.flows.run.head_start import begin_loading, session_of
from winnow.storage.records.record_types import RoundRecord
from winnow.tasks.campaign.campaign import Campaign, opened_campaign
from winnow.tasks.campaign.missing_texts import GenerationBatch
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.campaign.tracing import campaign_span, round_span, tell_decision
from winnow.tasks.objectives.human.annotation_tasks import ask_people
from winnow.tasks.objectives.steps import awaits_humans, generate_round, judge_round
from winnow.tasks.rounds.generate_ahead import RoundsInFlight
from winnow.tasks.rounds.plan import plan_round, plan_rounds
from winnow.tasks.rounds.record import decide_round, record_round

CHUNK_SECONDS = 2.0
"""Seconds of shorter rounds that are run as one task."""

_running: ContextVar[Campaign | None] = ContextVar("running", default=None)


@contextmanager
def at_hand(campaign: Campaign) -> Generator[None, None, None]:
    """Let runs of this campaign that start inside the block use it as it is open here."""
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
"""Runs rounds until the campaign ends or is to stop."""


def run_campaign(storage: str, name: str, run: Rounds | None = None) -> str:
    """Run a stored campaign until it is decided, its budget is spent, it waits for people, or it is to stop.

    Args:
        storage: URL of the results database.
        name: The campaign.
        run: Runs its rounds; None for `run_rounds`.

    Returns:
        Where the campaign stands, and how to look at it.

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
    """Run rounds by plain calls until the campaign ends or is to stop."""
    if campaign.checked.runs_ahead:
        with closing(RoundsInFlight(campaign)) as in_flight:
            while not (callback.wants_to_stop or rounds_ahead(campaign, in_flight, callback)):
                pass
            in_flight.finish_begun()
        return
    while not (callback.wants_to_stop or rounds(campaign, callback)[0]):
        pass


def rounds_ahead(campaign: CampaignSession, in_flight: RoundsInFlight, callback: Callback) -> bool:
    """Run rounds for a while, told in the order of planning; return whether the campaign ended.

    Safe to call again after any error.
    """
    started = time.monotonic()
    begins = not (campaign.selector.decision().stop or campaign.is_overspent)
    while time.monotonic() - started < CHUNK_SECONDS and not callback.wants_to_stop:
        planned = plan_rounds(campaign, begins=begins)
        if not planned:
            return True
        begins = not _finish(campaign, callback, planned[0], partial(in_flight.texts_of_first, planned))
    return False


def rounds(campaign: CampaignSession, callback: Callback) -> tuple[bool, float]:
    """Run rounds for a while; return whether the campaign ended, and seconds a round.

    Safe to call again after any error.
    """
    started = time.monotonic()
    done, elapsed, ended = 0, 0.0, False
    while elapsed < CHUNK_SECONDS and not (ended or callback.wants_to_stop):
        round_ = plan_round(campaign)
        if round_ is None or awaits_humans(campaign, round_):
            return True, elapsed
        ended = _finish(campaign, callback, round_, partial(generate_round, campaign, round_))
        done, elapsed = done + 1, time.monotonic() - started
    return ended, elapsed / max(done, 1)


def _finish(
    campaign: CampaignSession, callback: Callback, round_: RoundRecord, texts: Callable[[], GenerationBatch]
) -> bool:
    """The steps of a planned round; return whether the campaign ends or waits for people."""
    with round_span(campaign.record, round_) as span:
        made = texts()
        if ask_people(campaign, round_, made):
            return True
        comparisons = judge_round(campaign, round_, made)
        decision = decide_round(campaign, round_, comparisons)
        record_round(campaign, round_, comparisons, decision)
        tell_decision(span, campaign.checked.candidates, decision)
    callback.round_done(campaign, round_, decision)
    return decision.stop or campaign.is_overspent
