"""Earlier campaigns with outcomes on the same examples.

Their dataset is the same, or an edited version of it. Deleted campaigns count too: a choice can have been
made after seeing their results.
"""

from collections.abc import Collection

from sqlalchemy import CTE, ColumnElement, Select, func, or_, select
from sqlalchemy.orm import Session, aliased

from winnow.storage.engine.raw_sql import PARAMETERS_AT_ONCE, in_portions
from winnow.storage.models import Annotation, AnnotationTask, Candidate, Comparison, Example, Round
from winnow.storage.objectives import traits_of
from winnow.storage.records.campaigns import campaigns, first_rounds
from winnow.storage.records.notes import is_note
from winnow.storage.records.pruned import pruned
from winnow.storage.records.record_types import CampaignRecord, PrunedRecord


def campaigns_before(
    session: Session, campaign: CampaignRecord, *, with_duels: bool = False
) -> list[CampaignRecord]:
    """Scoring campaigns that began before the given one, latest first.

    They can be on any data. Deleted campaigns are included. If candidates were added to the given campaign
    later, campaigns that began before the last of these additions count too.
    """
    last = max(first_rounds(session, campaign.id), default=0)
    joined_at = session.scalar(
        select(Round.planned_at).where(Round.campaign_id == campaign.id, Round.number == last)
    )

    def is_before(other: CampaignRecord) -> bool:
        is_begun = last > 0 and (joined_at is None or other.created_at < joined_at)
        return other.id < campaign.id or (is_begun and other.id != campaign.id)

    known = sorted([*campaigns(session), *pruned(session)], key=lambda each: -each.id)
    wanted = [each for each in known if with_duels or not traits_of(each.objective).compares_pairs]
    return list(filter(is_before, wanted))


def scored_positions(session: Session, campaign: CampaignRecord) -> set[int]:
    """Positions of the examples on which a campaign has comparisons or annotations."""
    compared = (
        select(Comparison.example_id)
        .join(Candidate, Candidate.id == Comparison.candidate_a_id)
        .where(Candidate.campaign_id == campaign.id, _is_of(campaign))
    )
    found = compared.union(_judged(campaign))
    return set(session.scalars(select(Example.position).where(Example.id.in_(found))))


def positions_elsewhere(
    session: Session, dataset_id: int, positions: Collection[int], other_id: int
) -> set[int]:
    """Positions of these examples in another dataset, for those that it contains.

    A file becomes another dataset if a line is added, or a column that no prompt shows. Matching examples
    have the same input and the same key. If keys have changed (row numbers, or keys made of all columns),
    examples match if their input occurs exactly once in each dataset.
    """
    if dataset_id == other_id:
        return set(positions)
    here, there = aliased(Example), aliased(Example)
    by_key = select(here.position, there.position).where(
        here.dataset_id == dataset_id,
        there.dataset_id == other_id,
        here.key == there.key,
        here.input_digest == there.input_digest,
    )
    once, once_there = _once(dataset_id), _once(other_id)
    by_input = select(once.c.position, once_there.c.position).where(
        once.c.input_digest == once_there.c.input_digest
    )
    wanted = {*positions}
    return {there for here, there in session.execute(by_key.union(by_input)) if here in wanted}


def _once(dataset_id: int) -> CTE:
    """Query for the inputs that occur once in a dataset, with their positions."""
    return (
        select(Example.input_digest, func.min(Example.position).label("position"))
        .where(Example.dataset_id == dataset_id)
        .group_by(Example.input_digest)
        .having(func.count() == 1)
        .cte()
    )


def count_scored(session: Session, campaign: CampaignRecord, positions: Collection[int]) -> int:
    """Number of these examples on which a campaign has comparisons or annotations."""
    if isinstance(campaign, PrunedRecord):
        return sum(map(campaign.has_seen, positions))
    is_scored = (
        select(Comparison.id)
        .join(Candidate, Candidate.id == Comparison.candidate_a_id)
        .where(Candidate.campaign_id == campaign.id, Comparison.example_id == Example.id, _is_of(campaign))
        .exists()
    )
    found = (
        select(func.count())
        .select_from(Example)
        .where(Example.dataset_id == campaign.dataset_id, or_(is_scored, Example.id.in_(_judged(campaign))))
    )
    return sum(
        session.scalars(found.where(Example.position.in_(part))).one()
        for part in in_portions(positions, PARAMETERS_AT_ONCE)
    )


def _judged(campaign: CampaignRecord) -> Select[tuple[int]]:
    """Query for the examples with annotations for a campaign.

    The annotations' rounds need not be completed.
    """
    return (
        select(AnnotationTask.example_id)
        .join(Annotation, Annotation.task_id == AnnotationTask.id)
        .join(Round, Round.id == AnnotationTask.round_id)
        .where(Round.campaign_id == campaign.id, ~is_note())
    )


def _is_of(campaign: CampaignRecord) -> ColumnElement[bool]:
    """Condition that a comparison has one or two candidates, as in its campaign.

    Every comparison meets it, but it makes an index usable.
    """
    second = Comparison.candidate_b_id
    return second.is_not(None) if traits_of(campaign.objective).compares_pairs else second.is_(None)
