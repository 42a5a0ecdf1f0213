"""The Prefect flow of a campaign, with tasks for the steps of its rounds."""

import time
from collections.abc import Callable
from typing import Any, cast
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
from winnow.flows.run import plain_run
from winnow.flows.run.callbacks import Callback
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.engines.errors import is_transient
from winnow.tasks.objectives.round_functions import generate_round, judge_round
from winnow.tasks.objectives.runner import ASKS_ENGINES, P, Runner, T
from winnow.tasks.rounds.plan import plan_rounds
from winnow.tasks.rounds.record import decide_round, record_round

LONG_ROUND = 1.5
"""Minimum seconds of a round whose steps become tasks; five tasks cost 15 ms in Prefect, 1% of the round."""

CHUNK_SECONDS = 2.0
"""Duration of shorter rounds that together form one task, in seconds."""

RETRY_DELAY = 1.0
"""Seconds before a failed step is tried again."""


def _may_retry(task: Task[..., object], run: TaskRun, state: State[Any]) -> bool:
    return is_transient(state.result(raise_on_failure=False))


NAMES: dict[Callable[..., object], str] = {
    plan_rounds: "plan",
    generate_round: "generate",
    judge_round: "judge",
    decide_round: "decide",
    record_round: "record",
    Runner.run_for: "rounds",
}
"""Function -> name of its task: a step of a long round, or several short rounds."""

# Only the database records what is done, so Prefect caches nothing and stores no results.
TASKS = {
    function: task(
        name=name, cache_policy=NO_CACHE, retry_condition_fn=_may_retry, retry_delay_seconds=RETRY_DELAY
    )(function)
    for function, name in NAMES.items()
}

RETRIED = ASKS_ENGINES | {Runner.run_for}


@flow(name="run-campaign", flow_run_name="{name}", validate_parameters=False)
def run_campaign(storage: str, name: str) -> State[None]:
    """Run a stored campaign until it is decided, out of budget, waiting for people, or stopped.

    The flow can be repeated after any crash, because each step does only work that is not stored.

    Args:
        storage: URL of the results database, possibly masked by `mask`.
        name: Name of the campaign.

    Returns:
        A state whose message contains the campaign's status and commands that show or continue it.

    Raises:
        CampaignNotFound: If the database has no campaign of this name.
        LeaseHeld: If another live process runs the campaign.
        LeaseLost: If another process has taken over the campaign.
        SpecError: If a checkpoint is missing or differs from the one at the campaign's beginning.
    """
    if flow_run.id is not None:  # None if called without Prefect
        label_run(UUID(flow_run.id))
    # Without tags, because a task with the run's tags first asks the server for limits on these tags.
    with TagsContext(current_tags=set()):
        message = plain_run.run_campaign(unmask(storage), name, run_rounds)
    return Completed(message=message)


def run_rounds(campaign: CampaignSession, callback: Callback) -> None:
    """Run rounds until the campaign ends or is stopped, as Prefect tasks.

    The steps of a long round are separate tasks; several short rounds together are one task. Rounds with
    lookahead or concurrent judging are never split. On a request to stop, outputs in progress are finished
    and stored, and rounds in flight are continued by `resume`.
    """

    def as_task(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        retries = campaign.most_restarts if function in RETRIED else 0
        # Quoted, because Prefect would otherwise search all arguments for futures.
        named = {key: quote(value) for key, value in kwargs.items()}
        return cast("T", TASKS[function].with_options(retries=retries)(*map(quote, args), **named))

    with Runner(campaign, callback) as runner:
        ended, seconds = False, LONG_ROUND
        while not (ended or callback.wants_to_stop):
            if campaign.checked.runs_ahead or seconds < LONG_ROUND:
                ended, seconds = as_task(Runner.run_for, runner, CHUNK_SECONDS)
            else:
                started = time.monotonic()
                ended = runner.run_round(as_task)
                seconds = time.monotonic() - started
        runner.finish_begun()
