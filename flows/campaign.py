"""The loop of every campaign: plan a round, generate, judge, decide, record; again, or stop."""

from collections.abc import Sequence
from itertools import count
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task
from prefect.utilities.annotations import quote

from algorithms.protocols import Decision
from flows.watching import current_watcher
from storage.database import open_database
from storage.records import NewComparison, RoundRecord
from storage.schema import require_schema
from tasks.campaigns import reopen_campaign
from tasks.deciding import decide_round
from tasks.engines.errors import is_transient
from tasks.generating import RoundTexts, generate_round
from tasks.judging import judge_round
from tasks.planning import plan_round
from tasks.recording import record_round
from tasks.running import RunningCampaign, running

RETRY_DELAY_SECONDS = 1.0


def _may_retry(task: Task[Any, Any], run: TaskRun, state: State[Any]) -> bool:
    return is_transient(state.result(raise_on_failure=False))


# The database decides what is done and what is not: Prefect caches nothing and stores no result.
plan = task(plan_round, name="plan", cache_policy=NO_CACHE)
generate = task(
    generate_round,
    name="generate",
    cache_policy=NO_CACHE,
    retry_condition_fn=_may_retry,
    retry_delay_seconds=RETRY_DELAY_SECONDS,
)
judge = task(judge_round, name="judge", cache_policy=NO_CACHE)
decide = task(decide_round, name="decide", cache_policy=NO_CACHE)
record = task(record_round, name="record", cache_policy=NO_CACHE)


@flow(name="run-campaign", flow_run_name="{name}", validate_parameters=False)
def run_campaign(storage: str, name: str) -> None:
    """Run a stored campaign until it is decided, its budget is spent, or it is asked to stop.

    Safe to run again after a crash, however it came: each step does only what is not stored.

    Args:
        storage: URL of the results database.
        name: The campaign.

    Raises:
        CampaignNotFound: If there is none of this name.
        LeaseHeld: If another live process runs it.
        LeaseLost: If another process took it over; that one goes on.
        SpecError: If a checkpoint is gone or is not the one the campaign began with.
    """
    watcher = current_watcher()
    database = open_database(storage)
    require_schema(database)
    stored, checked = reopen_campaign(database, name, storage)
    with running(database, stored, checked) as campaign:
        watcher.begun(campaign)
        if not campaign.selector.decision().stop:
            campaign.load_engines()
        for number in count(campaign.rounds_done):
            if watcher.wants_to_stop or (round_ := plan(quote(campaign), number)) is None:
                break
            decision = run_round(campaign, round_)
            watcher.round_done(campaign, round_, decision)
            if decision.stop:
                break


def run_round(campaign: RunningCampaign, round_: RoundRecord) -> Decision:
    """A planned round, from its texts to what is decided from them."""
    # Arguments are quoted: Prefect would otherwise walk through all of them in search of futures.
    live, planned = quote(campaign), quote(round_)
    execution = campaign.checked.spec.execution
    enough = execution.max_restarts * len(campaign.checked.spec.models)  # the pool bounds it by model
    texts: RoundTexts = generate.with_options(retries=enough)(live, planned)
    comparisons: Sequence[NewComparison] = judge(live, planned, quote(texts))
    decision: Decision = decide(live, planned, quote(comparisons))
    record(live, planned, quote(comparisons), quote(decision))
    return decision
