"""Restore a selector's state by replaying a campaign's stored rounds in order.

A user can exclude candidates from a running campaign after reading their first outputs. They are stored in
its execution fields, each with the round in which it was excluded. The selector drops a candidate when it
observes that round, both in the run and in a replay.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import numpy as np
from sqlalchemy.orm import Session

from winnow.algorithms.protocols import SPARED, Batch, LeavingOut, LookingAhead, Revising, Selector
from winnow.algorithms.state.arrays import FloatArray
from winnow.storage.json_types import Arms, JsonObject, JsonView
from winnow.storage.records import rounds as round_records
from winnow.storage.records.record_types import CampaignRecord, RoundRecord, ToldRound
from winnow.tasks.campaign.blas_threads import on_one_thread
from winnow.tasks.campaign.budget import Allowance
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.candidates.candidates import Candidate
from winnow.tasks.spec.stored_spec import LEFT_OUT, RETRIED, left_out_of, retries_of


def keeping_history(execution: JsonView, stored: JsonView) -> JsonObject:
    """Keep the candidates excluded before, and the retry rounds, in a new definition's execution fields."""
    return {**execution, **{key: stored[key] for key in (LEFT_OUT, RETRIED) if key in stored}}


def observe(
    selector: Selector, campaign: CampaignRecord, number: int, batch: Batch, outcomes: FloatArray
) -> None:
    """Let a selector observe a round: outcomes of new pairs, or those of a retry round."""
    if number in retries_of(campaign.execution):
        cast(Revising, selector).revise(batch, outcomes)
    else:
        selector.tell(batch, outcomes)


def can_leave_out(selector: Selector) -> bool:
    """Whether a selector supports the exclusion of candidates."""
    return isinstance(selector, LeavingOut)


def leave_out_by(
    selector: Selector, campaign: CampaignRecord, candidates: Sequence[Candidate], number: int
) -> None:
    """Let a selector drop the candidates excluded up to a round, before it observes that round.

    Repeated calls have no further effect. See `LeavingOut`.
    """
    rounds = left_out_of(campaign.execution)
    if rounds and isinstance(selector, LeavingOut):
        arms = [arm for arm, each in enumerate(candidates) if rounds.get(each.name, number + 1) <= number]
        selector.leave_out(np.array(arms, dtype=np.int64))


ArmExample = tuple[int, int]
"""An arm and an example, as indices."""


class ReplicateCounter:
    """Counts the pairs of finished rounds, in memory only.

    They are not stored, because they follow from the stored rounds.
    """

    def __init__(self) -> None:
        self._counts: Counter[ArmExample] = Counter()

    def add(self, pairs: Iterable[ArmExample]) -> None:
        """Count the pairs of a finished round."""
        self._counts.update(pairs)

    def replicates(self, pairs: Iterable[ArmExample]) -> list[int]:
        """For each pair of the next round, the number of its earlier occurrences."""
        now: Counter[ArmExample] = Counter()
        replicates = []
        for pair in pairs:
            replicates.append(self._counts[pair] + now[pair])
            now[pair] += 1
        return replicates


def arms_and_examples(arms: Arms, examples: Sequence[int]) -> list[ArmExample]:
    """Arm and example of each output, in planned order.

    A duel has two outputs; that of its first arm comes first.
    """
    return [
        (arm, example)
        for arms_of_one, example in zip(arms, examples, strict=True)
        for arm in (arms_of_one if isinstance(arms_of_one, list) else [arms_of_one])
    ]


@on_one_thread
def restored(
    session: Session, record: CampaignRecord, checked: ResolvedCampaign
) -> tuple[Selector, Allowance, ReplicateCounter]:
    """Restore a selector, its limit of pairs, and the counts of evaluated pairs."""
    allowance, replicates = (
        Allowance(checked.spec.own_budget if checked.counts_pairs else None),
        ReplicateCounter(),
    )
    for asked, answered in round_records.answered_by_round(session, record.id):
        allowance.add(asked, answered)
    selector = checked.unused_selector(allowance.limit)
    for told in retold(session, record, checked, selector):
        if checked.repeats_examples:
            replicates.add(arms_and_examples(told.arms, told.examples))
    planned = round_records.unfinished_round(session, record.id)
    number = round_records.next_round_number(session, record.id) if planned is None else planned.number
    as_of_round(selector, record, checked, number)
    take_up_rounds(session, record, checked, selector)
    return selector, allowance, replicates


def retold(
    session: Session, record: CampaignRecord, checked: ResolvedCampaign, selector: Selector
) -> Iterator[ToldRound]:
    """Yield each finished round in order, after the selector has observed it."""
    spared = SPARED if checked.spares else None
    for told in round_records.told_rounds(session, record.id, checked.told_metrics, spared=spared):
        outcomes = checked.outcomes(told.outcomes, told.losses, told.metrics)
        as_of_round(selector, record, checked, told.number)
        observe(selector, record, told.number, batch_of(told), outcomes)
        yield told


def as_of_round(
    selector: Selector, record: CampaignRecord, checked: ResolvedCampaign, number: int
) -> Selector:
    """Add candidates that joined to a selector, and drop excluded ones, at a round."""
    selector = checked.at_round(selector, number)
    leave_out_by(selector, record, checked.candidates, number)
    return selector


def take_up_rounds(
    session: Session, record: CampaignRecord, checked: ResolvedCampaign, selector: Selector
) -> None:
    """Let a selector register the rounds in flight, after all finished rounds."""
    if checked.lookahead:
        retries = retries_of(record.execution)
        for planned in round_records.unfinished_rounds(session, record.id):
            if planned.number not in retries:
                cast(LookingAhead, selector).take_up(batch_of(planned))


def batch_of(planned: RoundRecord | ToldRound) -> Batch:
    """The batch that the selector proposed for a stored round."""
    drawn = None if planned.propensities is None else np.array(planned.propensities)
    return Batch(np.array(planned.arms), np.array(planned.examples), propensities=drawn)
