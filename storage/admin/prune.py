"""Deleting old campaigns, without taking a text from a campaign that stays.

No id of what is deleted is given again, so that whoever still holds one finds nothing under it.
"""

import datetime as dt
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, delete, exists, func, or_, select, text, true, update
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from winnow.storage.errors import LeaseHeld
from winnow.storage.models import (
    Annotation,
    AnnotationTask,
    Bet,
    Campaign,
    CampaignStats,
    Canary,
    Candidate,
    CandidateStats,
    Comparison,
    CostStats,
    Decision,
    Difference,
    DuelStats,
    Generation,
    Judgment,
    Lease,
    Metric,
    MetricStats,
    ModelLoad,
    Output,
    Pin,
    Prompt,
    Ranking,
    ReusedText,
    ReuseStats,
    Round,
    Standing,
    StreamBatch,
)
from winnow.storage.records.campaigns import get_campaign
from winnow.storage.records.leases import find, is_live
from winnow.storage.records.pruned import remember
from winnow.storage.records.values import CampaignRecord, LeaseRecord

# Foreign keys that only deleting looks up; no query of a campaign would use an index on them.
_LOOKED_UP = {
    "comparisons": ("generation_a_id", "generation_b_id", "candidate_a_id", "candidate_b_id"),
    "judgments": ("generation_id",),
    "outputs": ("generation_id",),
    "decisions": ("best_candidate_id", "against_candidate_id"),
    "standings": ("round_id",),
    "rankings": ("round_id",),
    "differences": ("round_id",),
    "bets": ("round_id",),
    "generations": ("prompt_id", "canary_id"),
    "pins": ("generation_id",),
    "reused_texts": ("generation_id",),
    "duel_stats": ("candidate_b_id",),
    "annotation_tasks": ("generation_a_id", "generation_b_id"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prunable:
    """A campaign that would be deleted, and what with it."""

    id: int
    name: str
    last_active: dt.datetime
    comparisons: int
    judgments: int
    """Number of people's judgments of its texts."""
    generations: int
    """Texts that it paid for and no campaign that stays uses."""
    kept: int
    """Texts that it paid for and a campaign that stays uses: they stay."""


def prunable(
    session: Session, *, before: dt.datetime, name: str | None = None, staying: Collection[str] = ()
) -> list[Prunable]:
    """Campaigns for which nothing was planned, written, judged or decided since a moment, oldest first.

    Args:
        session: Reads.
        before: The moment.
        name: Only the campaign of this name.
        staying: Names of those that are not to be deleted all the same.
    """
    rows = session.execute(
        select(
            Campaign.id,
            Campaign.name,
            func.max(Campaign.created_at),
            func.max(Round.planned_at),
            func.max(Decision.decided_at),
            func.coalesce(func.sum(Decision.comparisons), 0),
        )
        .outerjoin(Round, Round.campaign_id == Campaign.id)
        .outerjoin(Decision, Decision.round_id == Round.id)
        .where(Campaign.name == (Campaign.name if name is None else name), Campaign.name.not_in(staying))
        .group_by(Campaign.id, Campaign.name)
        .order_by(Campaign.id)
    ).all()
    active = {id_: _latest([*times, *_later(session, id_)]) for id_, _, *times, _ in rows}
    leaving = [id_ for id_, latest in active.items() if latest < before]
    found = []
    for id_, campaign, *_, comparisons in rows:
        if id_ in leaving:
            kept = _count(session, _paid_by(id_).where(_used_elsewhere(leaving)))
            found.append(
                Prunable(
                    id=id_,
                    name=campaign,
                    last_active=active[id_],
                    comparisons=int(comparisons),
                    judgments=_count(session, _judged(id_)),
                    generations=_count(session, _paid_by(id_)) - kept,
                    kept=kept,
                )
            )
    return sorted(found, key=lambda each: each.last_active)


def _latest(times: Iterable[dt.datetime | None]) -> dt.datetime:
    return max(moment for moment in times if moment is not None)


def _later(session: Session, campaign_id: int) -> list[dt.datetime | None]:
    """The last moments at which people took up a task of a campaign, answered one, and a text was written."""
    asked = (
        select(func.max(AnnotationTask.held_at), func.max(Annotation.annotated_at))
        .select_from(AnnotationTask)
        .join(Round, Round.id == AnnotationTask.round_id)
        .outerjoin(Annotation, Annotation.task_id == AnnotationTask.id)
        .where(Round.campaign_id == campaign_id)
    )
    written = (
        select(func.max(Generation.created_at))
        .join(Round, Round.id == Generation.round_id)
        .where(Round.campaign_id == campaign_id)
    )
    return [*session.execute(asked).one(), session.scalar(written)]


def prune(
    session: Session,
    campaigns: Sequence[Prunable],
    *,
    is_gone: Callable[[LeaseRecord], bool],
    seen_by: Callable[[Session, CampaignRecord], Collection[int]],
) -> None:
    """Delete campaigns with all that belongs to them alone; datasets, labels and embeddings stay.

    What each asked, and which examples it saw, is remembered: an answer says where earlier campaigns had
    outcomes on its examples, and how often its question was put.

    A text that another campaign uses stays, and nobody is held to have paid for it: what that one spent is
    what it spent. It uses what its comparisons and judgments refer to, and what a round of it has taken up
    (see `pin`), recorded or not, whether it is being run or not. So nothing that a running campaign has
    read is deleted under it, and one that begins meanwhile waits for this transaction and reads anew. What
    canaries are compared with stays as well.

    Args:
        session: Writes; everything is deleted in its transaction, or nothing.
        campaigns: As `prunable` listed them.
        is_gone: Whether nobody writes any more under a lease that was not given back.
        seen_by: Positions of the examples that a campaign has outcomes on.

    Raises:
        LeaseHeld: If one of them is being run, or may be for all that is known.
    """
    for campaign in campaigns:
        lease = find(session, campaign.id)
        if lease is not None and is_live(lease, is_gone=is_gone):
            raise LeaseHeld(campaign.name, str(lease.holder), lease.heartbeat_at, lease.lifetime)
    with _indexed(session):
        for campaign in campaigns:
            record = get_campaign(session, campaign.name)
            if seen := seen_by(session, record):
                remember(session, record, seen)
            _delete_campaign(session, campaign.id)
        # Texts that were left to a campaign which has gone now as well.
        session.execute(delete(Generation).where(Generation.round_id.is_(None), ~_is_used()))
        session.execute(delete(Prompt).where(~exists().where(Generation.prompt_id == Prompt.id)))
        # What later canaries are compared with stays: a server is known as long as the database is.
        session.execute(
            delete(Canary).where(
                Canary.campaign_id.is_(None),
                Canary.verdict == "same",
                ~exists().where(Generation.canary_id == Canary.id),
            )
        )


def _delete_campaign(session: Session, campaign_id: int) -> None:
    rounds = select(Round.id).where(Round.campaign_id == campaign_id)
    candidates = select(Candidate.id).where(Candidate.campaign_id == campaign_id)
    comparisons = select(Comparison.id).where(Comparison.round_id.in_(rounds))
    session.execute(delete(Judgment).where(Judgment.comparison_id.in_(comparisons)))
    for part in (Output, Metric):
        session.execute(delete(part).where(part.comparison_id.in_(comparisons)))
    session.execute(delete(Comparison).where(Comparison.round_id.in_(rounds)))
    session.execute(delete(Pin).where(Pin.round_id.in_(rounds)))
    tasks = select(AnnotationTask.id).where(AnnotationTask.round_id.in_(rounds))
    session.execute(delete(Annotation).where(Annotation.task_id.in_(tasks)))
    session.execute(delete(AnnotationTask).where(AnnotationTask.round_id.in_(rounds)))
    for tally in (ReusedText, ReuseStats, CostStats, CampaignStats):
        session.execute(delete(tally).where(tally.campaign_id == campaign_id))
    session.execute(delete(DuelStats).where(DuelStats.candidate_a_id.in_(candidates)))
    # Whatever uses a text now is of another campaign.
    session.execute(delete(Generation).where(Generation.round_id.in_(rounds), ~_is_used()))
    session.execute(update(Generation).where(Generation.round_id.in_(rounds)).values(round_id=None))
    for of_candidates in (CandidateStats, MetricStats, Standing, Ranking, Difference, Bet):
        session.execute(delete(of_candidates).where(of_candidates.candidate_id.in_(candidates)))
    session.execute(delete(Decision).where(Decision.round_id.in_(rounds)))
    session.execute(delete(Round).where(Round.campaign_id == campaign_id))
    for model in (Candidate, StreamBatch, ModelLoad, Lease):
        session.execute(delete(model).where(model.campaign_id == campaign_id))
    session.execute(update(Canary).where(Canary.campaign_id == campaign_id).values(campaign_id=None))
    session.execute(delete(Campaign).where(Campaign.id == campaign_id))


def _paid_by(campaign_id: int) -> Select[tuple[int]]:
    return (
        select(Generation.id)
        .join(Round, Round.id == Generation.round_id)
        .where(Round.campaign_id == campaign_id)
    )


def _judged(campaign_id: int) -> Select[tuple[int]]:
    return (
        select(Annotation.task_id)
        .join(AnnotationTask, AnnotationTask.id == Annotation.task_id)
        .join(Round, Round.id == AnnotationTask.round_id)
        .where(Round.campaign_id == campaign_id)
    )


Rounds = Callable[[InstrumentedAttribute[int]], ColumnElement[bool]]
"""Makes the condition that a row is of certain rounds, from the row's column of round ids."""


def _is_used(by: Rounds = lambda _: true()) -> ColumnElement[bool]:
    """Whether a comparison, one of its outputs or judgments, a task or a pin of these rounds is of a text."""
    played, of_several = aliased(Comparison), aliased(Comparison)
    compares = or_(Comparison.generation_a_id == Generation.id, Comparison.generation_b_id == Generation.id)
    shows = or_(
        AnnotationTask.generation_a_id == Generation.id, AnnotationTask.generation_b_id == Generation.id
    )
    return or_(
        exists().where(compares, by(Comparison.round_id)).correlate(Generation),
        exists()
        .where(
            Judgment.generation_id == Generation.id, played.id == Judgment.comparison_id, by(played.round_id)
        )
        .correlate(Generation),
        exists()
        .where(
            Output.generation_id == Generation.id,
            of_several.id == Output.comparison_id,
            by(of_several.round_id),
        )
        .correlate(Generation),
        exists().where(shows, by(AnnotationTask.round_id)).correlate(Generation),
        exists().where(Pin.generation_id == Generation.id, by(Pin.round_id)).correlate(Generation),
    )


def _used_elsewhere(campaign_ids: Sequence[int]) -> ColumnElement[bool]:
    own = select(Round.id).where(Round.campaign_id.in_(campaign_ids))
    return _is_used(lambda round_id: round_id.not_in(own))


def _count(session: Session, rows: Select[tuple[int]]) -> int:
    return session.scalars(select(func.count()).select_from(rows.subquery())).one()


@contextmanager
def _indexed(session: Session) -> Generator[None, None, None]:
    """Indexes for as long as rows are deleted: each deleted row is looked for in whatever may refer to it."""
    made = []
    for table, columns in _LOOKED_UP.items():
        for column in columns:
            made.append(f"ix_pruning_{table}_{column}")
            session.execute(text(f"CREATE INDEX {made[-1]} ON {table} ({column})"))
    yield
    for name in made:
        session.execute(text(f"DROP INDEX {name}"))
