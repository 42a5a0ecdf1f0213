"""A campaign as Prefect records it: plan a round, generate, judge, decide, record; again, or stop."""

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, TypedDict, TypeVar, cast
from uuid import UUID

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.context import TagsContext
from prefect.runtime import flow_run
from prefect.states import Completed
from prefect.tasks import Task
from prefect.utilities.annotations import quote

from winnow.flows.prefect_support.client import label_run
from winnow.flows.prefect_support.masked_urls import unmask
from winnow.flows.run import rounds as plain
from winnow.flows.run.callbacks import Callback
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.campaign.tracing import round_span, tell_decision
from winnow.tasks.engines.errors import is_transient
from winnow.tasks.objectives.human.annotation_tasks import ask_people
from winnow.tasks.objectives.steps import awaits_humans, generate_round, judge_round
from winnow.tasks.rounds.generate_ahead import RoundsInFlight
from winnow.tasks.rounds.plan import plan_round
from winnow.tasks.rounds.record import decide_round, record_round

Value = TypeVar("Value")

LONG_ROUND = 1.5
"""Seconds of a round from which on its steps are tasks: Prefect takes 15 ms for all five, 1% of it."""

RETRY_DELAY = 1.0
"""Seconds before an engine that died is asked again."""


def _may_retry(task: Task[..., object], run: TaskRun, state: State[Any]) -> bool:
    return is_transient(state.result(raise_on_failure=False))


class _Retries(TypedDict):
    retry_condition_fn: Callable[[Task[..., object], TaskRun, State[Any]], bool]
    retry_delay_seconds: float


# The database decides what is done and what is not: Prefect caches nothing and stores no result.
RETRIED = _Retries(retry_condition_fn=_may_retry, retry_delay_seconds=RETRY_DELAY)
plan = task(name="plan", cache_policy=NO_CACHE)(plan_round)
generate = task(name="generate", cache_policy=NO_CACHE, **RETRIED)(generate_round)
judge = task(name="judge", cache_policy=NO_CACHE, **RETRIED)(judge_round)
decide = task(name="decide", cache_policy=NO_CACHE)(decide_round)
record = task(name="record", cache_policy=NO_CACHE)(record_round)
rounds = task(name="rounds", cache_policy=NO_CACHE, **RETRIED)(plain.rounds)
rounds_ahead = task(name="rounds", cache_policy=NO_CACHE, **RETRIED)(plain.rounds_ahead)


@flow(name="run-campaign", flow_run_name="{name}", validate_parameters=False)
def run_campaign(storage: str, name: str) -> State[None]:
    """Run a stored campaign until it is decided, its budget is spent, it waits for people, or it is to stop.

    Safe to run again after a crash, however it came: each step does only what is not stored.

    The run ends in a state whose message says where the campaign stands, and how to look at it.

    Args:
        storage: URL of the results database, or what `mask` made of it.
        name: The campaign.

    Raises:
        CampaignNotFound: If there is none of this name.
        LeaseHeld: If another live process runs it.
        LeaseLost: If another process took it over; that one goes on.
        SpecError: If a checkpoint is gone or is not the one the campaign began with.
    """
    if flow_run.id is not None:  # it may be called without Prefect
        label_run(UUID(flow_run.id))
    # A task with the run's tags would ask the server, before it begins, whether these have a limit.
    with TagsContext(current_tags=set()):
        message = plain.run_campaign(unmask(storage), name, run_rounds)
    return Completed(message=message)


def run_rounds(campaign: CampaignSession, callback: Callback) -> None:
    """Run rounds until the campaign ends or is to stop: a long one as several tasks, short ones as one."""
    if campaign.checked.runs_ahead:
        run_ahead(campaign, callback)
        return
    ended, seconds = False, LONG_ROUND
    while not (ended or callback.wants_to_stop):
        if seconds >= LONG_ROUND:
            started = time.monotonic()
            ended = run_round(campaign, callback)
            seconds = time.monotonic() - started
        else:
            ended, seconds = run_chunk(campaign, callback)


def run_round(campaign: CampaignSession, callback: Callback) -> bool:
    """Run one round, each step a task; return whether the campaign has ended or waits for humans."""
    live = _quoted(campaign)
    round_ = plan(live)
    if round_ is None or awaits_humans(campaign, round_):
        return True
    with round_span(campaign.record, round_) as span:
        texts = generate.with_options(retries=campaign.most_restarts)(live, _quoted(round_))
        if ask_people(campaign, round_, texts):
            return True
        judged = judge.with_options(retries=campaign.most_restarts)(live, _quoted(round_), _quoted(texts))
        decision = decide(live, _quoted(round_), _quoted(judged))
        record(live, _quoted(round_), _quoted(judged), _quoted(decision))
        tell_decision(span, campaign.checked.candidates, decision)
    callback.round_done(campaign, round_, decision)
    return decision.stop or campaign.is_overspent


def run_ahead(campaign: CampaignSession, callback: Callback) -> None:
    """Run several rounds at a time, or a judge beside; those in flight are finished in any case.

    Where somebody asks to stop, the texts that engines are at work on are committed, and the rounds wait for
    `resume`.
    """
    with closing(RoundsInFlight(campaign)) as in_flight:
        given, ended = (_quoted(campaign), _quoted(in_flight), _quoted(callback)), False
        while not (ended or callback.wants_to_stop):
            ended = rounds_ahead.with_options(retries=campaign.most_restarts)(*given)
        in_flight.finish_begun()


def _quoted(value: Value) -> Value:
    """The argument of a task, quoted: the task is given the value itself.

    Prefect would otherwise search all of it for futures.
    """
    return cast("Value", quote(value))


def run_chunk(campaign: CampaignSession, callback: Callback) -> tuple[bool, float]:
    """Run short rounds for a while as one task; return whether the campaign ended, and seconds a round."""
    ended, seconds = rounds.with_options(retries=campaign.most_restarts)(_quoted(campaign), _quoted(callback))
    return ended, seconds
