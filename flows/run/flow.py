"""A campaign as Prefect records it: rounds of planning, generating, judging, deciding and recording."""

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
"""Minimum seconds of a round whose steps become tasks: five tasks cost 15 ms in Prefect, 1% of it."""

CHUNK_SECONDS = 2.0
"""Seconds of shorter rounds that form one task."""

RETRY_DELAY = 1.0
"""Seconds before a failed engine is called again."""


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
"""Contents of tasks and their names: a step of a long round, or several short rounds."""

# The database decides what is done and what is not: Prefect caches nothing and stores no result.
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

    Safe to repeat after any crash: each step does only work that is not stored.

    The run ends in a state whose message contains the campaign's status and commands that show more.
    `storage` is the URL of the results database, possibly masked by `mask`.

    Raises:
        CampaignNotFound: If the database has no campaign of this name.
        LeaseHeld: If another live process runs the campaign.
        LeaseLost: If another process has taken over the campaign.
        SpecError: If a checkpoint is missing or differs from the one at the campaign's beginning.
    """
    if flow_run.id is not None:  # it may be called without Prefect
        label_run(UUID(flow_run.id))
    # A task with the run's tags would ask the server, before it begins, whether these have a limit.
    with TagsContext(current_tags=set()):
        message = plain_run.run_campaign(unmask(storage), name, run_rounds)
    return Completed(message=message)


def run_rounds(campaign: CampaignSession, callback: Callback) -> None:
    """Run rounds until the campaign ends or is stopped: a long one as several tasks, others together as one.

    Rounds with lookahead, or with concurrent judging, always form one task. On a request to stop, texts in
    progress are finished and committed, and the rounds wait for `resume`.
    """

    def as_task(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        retries = campaign.most_restarts if function in RETRIED else 0
        # Quoted, each is handed on as it is: Prefect would otherwise search all of it for futures.
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
