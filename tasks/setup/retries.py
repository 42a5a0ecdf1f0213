"""Plan retry rounds: they request outputs again that are missing because an engine failed."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy.orm import Session

from winnow.storage.json_types import JsonObject
from winnow.storage.queries import unscored
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import leases
from winnow.storage.records import rounds as round_records
from winnow.storage.records.outcomes import latest_decision
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.budget import BudgetTracker
from winnow.tasks.campaign.campaign import Campaign
from winnow.tasks.campaign.lease import is_gone, now, this_process, watch
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.open_campaign import resolved
from winnow.tasks.spec.stored_spec import RETRIED, retries_of
from winnow.tasks.text.phrases import count_of, list_of

FAILURES = ("agent_failed", "bad_reply", "engine_failed", "load_failed", "timed_out")
"""Reasons of missing outputs that another attempt can yield: after crashes, time-outs and server errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """What a retry requests again."""

    pairs: int
    rounds: int
    dropped: int
    """Number of missing outputs of dropped candidates, which are not requested again."""
    others: Counter[str]
    """Number of outputs that are missing for other reasons, by reason."""

    @property
    def sentence(self) -> str:
        """The retry in one sentence, with the missing outputs that it does not request."""
        said = f"requesting {count_of(self.pairs, 'output')} again in {count_of(self.rounds, 'round')}"
        if not self.pairs:
            said = "no output is requested again"
        if self.dropped:
            said += f"; not those of dropped candidates ({self.dropped}): a dropped candidate stays dropped"
        if self.others:
            found = list_of([f"{reason} ({count})" for reason, count in sorted(self.others.items())])
            said += f"; outputs missing for other reasons: {found}; --reason REASON requests those of one"
        return said


def plan_retry(campaign: Campaign, reason: str | None) -> Retry:
    """Plan rounds that request all failed outputs again, or those missing for one reason.

    One transaction stores the plan, so `winnow resume` finishes the retry after any kill.

    Raises:
        SpecError: If the campaign accepts no later scores, or a limit of its budget is spent.
        LeaseHeld: If another live process runs the campaign; nothing is written.
    """
    checked, database, record = resolved(campaign), campaign.database, campaign.record
    if not checked.takes_later_scores:
        raise SpecError(
            f"--retry-unscored: campaign '{record.name}' accepts no later scores; this needs selector "
            "champion or race without prefer: cost, constraints, holdout, judge.spare, a human judge or "
            "reuse: only"
        )
    watch(database, record.id, now=now())
    with database.writing() as session:
        leases.require_free(session, record.id, this_process(), is_gone=is_gone)
        unfinished = {
            (arm, example)
            for each in round_records.unfinished_rounds(session, record.id)
            for arm, example in zip(each.arms, each.examples, strict=True)
        }
        decision = latest_decision(session, record.id)
        statuses = decision.status if decision else []
        found = [
            each
            for each in unscored.without_output(session, record.id)
            if (each.arm, each.example) not in unfinished
        ]
        is_wanted = _wanted(reason)
        wanted = [each for each in found if each.reason in is_wanted]
        asked = [each for each in wanted if statuses[each.arm] != "dropped"]
        n_dropped = len(wanted) - len(asked)
        asked = asked[: _room(record, session)] if asked else []
        size = checked.spec.batch_size
        number = first = round_records.next_round_number(session, record.id)
        told = round_records.told_at(session, record.id)
        for start in range(0, len(asked), size):
            part = asked[start : start + size]
            round_records.add_round(
                session,
                record.id,
                number=number,
                planned_after=0 if told is None else told[0] + 1,
                arms=[each.arm for each in part],
                examples=[each.example for each in part],
                now=now(),
            )
            number += 1
        if asked:
            retried = [*retries_of(record.execution), *range(first, number)]
            execution: JsonObject = {**record.execution, RETRIED: retried}
            campaign.record = campaign_records.set_execution(session, record.id, execution)
    others = Counter(each.reason for each in found if each.reason not in is_wanted)
    return Retry(pairs=len(asked), rounds=number - first, dropped=n_dropped, others=others)


def _room(record: CampaignRecord, session: Session) -> int | None:
    """Number of comparisons that the budget still allows; None for any number.

    Raises:
        SpecError: If a limit is spent.
    """
    room = None
    for usage in BudgetTracker(record).usage(session):
        if usage.is_spent:
            raise SpecError(f"--retry-unscored: {usage.sentence}; raise it with --set {usage.key}=MORE")
        if usage.kind == "comparisons":
            room = int(usage.limit - usage.spent)
    return room


def _wanted(reason: str | None) -> Collection[str]:
    return FAILURES if reason is None else (reason,)
