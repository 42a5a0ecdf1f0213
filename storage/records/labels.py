"""Human labels of examples, shared by all campaigns on the same dataset."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.orm import Session

from winnow.storage.columns import ByCodePoints
from winnow.storage.models import Campaign, Candidate, Comparison, Dataset, Example, Label, Lease
from winnow.storage.objectives import OBJECTIVES, traits_of
from winnow.storage.records.leases import find
from winnow.storage.records.record_types import LeaseRecord
from winnow.storage.records.row_counts import add_to_count

PEOPLE = "human"
"""Type of the judge with which annotators rate outputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRecord:
    """A human label."""

    targets: tuple[str, ...]
    """Empty if no human can answer the example."""
    source: str
    labelled_at: dt.datetime


def labels(session: Session, dataset_id: int) -> dict[int, LabelRecord]:
    """All labels of a dataset's examples, by example position."""
    rows = session.execute(
        select(Example.position, Label.targets, Label.source, Label.labelled_at)
        .join(Label, Label.example_id == Example.id)
        .where(Example.dataset_id == dataset_id)
        .order_by(Example.position)
    )
    return {
        position: LabelRecord(targets=tuple(targets), source=source, labelled_at=labelled_at)
        for position, targets, source, labelled_at in rows
    }


def labelled(session: Session, fingerprint: str) -> frozenset[int]:
    """Positions of the labelled examples of the dataset with this fingerprint."""
    found = (
        select(Example.position)
        .join(Label, Label.example_id == Example.id)
        .join(Dataset, Dataset.id == Example.dataset_id)
        .where(Dataset.fingerprint == fingerprint)
    )
    return frozenset(session.scalars(found))


def targets(session: Session, dataset_id: int, positions: Sequence[int]) -> dict[int, tuple[str, ...] | None]:
    """Correct answers for some examples.

    An answer is the dataset's target, otherwise the label, otherwise None. An empty tuple means that no human
    can answer the example.
    """
    rows = session.execute(
        select(Example.position, Example.targets, Label.targets)
        .outerjoin(Label, Label.example_id == Example.id)
        .where(Example.dataset_id == dataset_id, Example.position.in_(positions))
    )
    return {
        position: tuple(own) if own else None if given is None else tuple(given)
        for position, own, given in rows
    }


def _reads_labels() -> ColumnElement[bool]:
    """Condition that a campaign's losses are measured with labels."""
    return Campaign.objective.in_([each for each in OBJECTIVES if traits_of(each).measures_risk])


def used_positions(session: Session, dataset_id: int) -> set[int]:
    """Positions of the examples whose labels were used in some stored comparison.

    If annotators rate the outputs themselves, no comparison uses a label.
    """
    certifying = select(Campaign.id, Campaign.spec).where(Campaign.dataset_id == dataset_id, _reads_labels())
    by_label = [
        id_ for id_, spec in session.execute(certifying) if spec.get("judge", {}).get("type") != PEOPLE
    ]
    # Selected by candidate, because an index of the scored pairs then suffices, without reading rows.
    used = (
        select(Comparison.example_id)
        .join(Candidate, Candidate.id == Comparison.candidate_a_id)
        .where(Candidate.campaign_id.in_(by_label), Comparison.candidate_b_id.is_(None))
    )
    return set(
        session.scalars(
            select(Example.position).where(Example.dataset_id == dataset_id, Example.id.in_(used))
        )
    )


def incomplete(session: Session, campaign_id: int, *, reads_auto: bool) -> list[int]:
    """Number of comparisons that lack a needed loss, by candidate position.

    A loss is needed if the selector reads it.
    """
    lacks = _lacks_a_loss(reads_auto=reads_auto)
    rows = session.execute(
        select(func.count(Comparison.id))
        .select_from(Candidate)
        .outerjoin(Comparison, and_(Comparison.candidate_a_id == Candidate.id, lacks))
        .where(Candidate.campaign_id == campaign_id)
        .group_by(Candidate.id, Candidate.position)
        .order_by(Candidate.position)
    )
    return [int(count) for (count,) in rows]


def causes_of_lacking(
    session: Session, campaign_id: int, *, reads_auto: bool
) -> list[tuple[int, str | None, str | None, int]]:
    """Causes of comparisons that lack a needed loss.

    Each row has the candidate position, the reason, the detail and the number of comparisons.
    """
    cause = (Candidate.position, Comparison.reason, Comparison.detail)
    rows = session.execute(
        select(*cause, func.count())
        .join(Comparison, Comparison.candidate_a_id == Candidate.id)
        .where(Candidate.campaign_id == campaign_id, _lacks_a_loss(reads_auto=reads_auto))
        .group_by(*cause)
    )
    return list(rows.tuples())


def _lacks_a_loss(*, reads_auto: bool) -> ColumnElement[bool]:
    missing = Comparison.human_loss.is_(None)
    if not reads_auto:
        return missing
    return or_(missing, Comparison.auto_loss.is_(None), Comparison.unlabelled_missing > 0.0)


def mean_losses(session: Session, campaign_id: int) -> list[float | None]:
    """Mean of each candidate's known human losses, by candidate position.

    None without known losses.
    """
    rows = session.execute(
        select(func.avg(Comparison.human_loss))
        .select_from(Candidate)
        .outerjoin(
            Comparison, and_(Comparison.candidate_a_id == Candidate.id, Comparison.candidate_b_id.is_(None))
        )
        .where(Candidate.campaign_id == campaign_id)
        .group_by(Candidate.id, Candidate.position)
        .order_by(Candidate.position)
    )
    return [mean for (mean,) in rows]


def set_label(
    session: Session, dataset_id: int, position: int, targets: Sequence[str], source: str, now: dt.datetime
) -> None:
    """Store the label of an example; it replaces an earlier label.

    `targets` are empty if the example is unanswerable.
    """
    example_id = session.scalars(
        select(Example.id).where(Example.dataset_id == dataset_id, Example.position == position)
    ).one()
    row = session.scalar(select(Label).where(Label.example_id == example_id))
    if is_new := row is None:
        row = Label(example_id=example_id)
        session.add(row)
    row.targets, row.source, row.labelled_at = list(targets), source, now
    session.flush()
    if is_new:
        add_to_count(session.connection(), "datasets", dataset_id, "labels", [row.id])


def leases_on(session: Session, dataset_id: int) -> list[tuple[str, LeaseRecord]]:
    """Leases of certifying campaigns on a dataset, by name.

    The campaigns are all those that were ever run.
    """
    rows = session.execute(
        select(Campaign.name, Campaign.id)
        .join(Lease, Lease.campaign_id == Campaign.id)
        .where(Campaign.dataset_id == dataset_id, _reads_labels())
        .order_by(ByCodePoints(Campaign.name))
    )
    return [(name, lease) for name, id_ in rows if (lease := find(session, id_)) is not None]


def keys_without(session: Session, dataset_id: int, positions: Sequence[int]) -> list[str]:
    """Keys of examples that have neither a target nor a label.

    They are in the order of `positions`.
    """
    found = targets(session, dataset_id, positions)
    keys = dict(
        session.execute(
            select(Example.position, Example.key).where(
                Example.dataset_id == dataset_id, Example.position.in_(positions)
            )
        )
        .tuples()
        .all()
    )
    return [keys[position] for position in dict.fromkeys(positions) if found[position] is None]
