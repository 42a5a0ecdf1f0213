"""Delete old campaigns without removing outputs that a remaining campaign uses.

No deleted id is reused, so a process that still holds a deleted id finds no row with it.
"""

import datetime as dt
from collections.abc import Callable, Collection, Generator, Sequence
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
from winnow.storage.records.record_types import CampaignRecord, LeaseRecord
from winnow.storage.records.row_counts import add_to_count

# Foreign keys that are looked up only when rows are deleted, so they have no permanent index.
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
    """A campaign that would be deleted, with counts of its rows."""

    id: int
    name: str
    last_active: dt.datetime
    comparisons: int
    judgments: int
    """Number of annotations of the campaign's outputs."""
    generations: int
    """Number of outputs that the campaign paid for and no remaining campaign uses."""
    kept: int
    """Number of outputs that the campaign paid for and a remaining campaign uses.
    These are kept."""


def prunable(
    session: Session, *, before: dt.datetime, name: str | None = None, staying: Collection[str] = ()
) -> list[Prunable]:
    """Campaigns without any stored activity since a time, oldest first.

    Activity is a plan, an output, an annotation or a decision. `name` selects only the campaign of this name;
    `staying` names campaigns to keep in any case.
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
    active = {
        id_: max(moment for moment in (*times, *_later(session, id_)) if moment is not None)
        for id_, _, *times, _ in rows
    }
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


def _later(session: Session, campaign_id: int) -> list[dt.datetime | None]:
    """Last times of a campaign's annotation tasks and outputs.

    These are the times at which a task was shown or answered, and an output was stored.
    """
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
    """Delete campaigns and all rows that only they use.

    Keep datasets, labels and embeddings. The question of each campaign, and the examples that it observed,
    are recorded. An answer can then report whether earlier campaigns had outcomes on its examples, and how
    often its question was asked.

    An output that another campaign uses is kept, and no campaign then counts as having paid for it; the
    spending of the other campaign is unchanged. A campaign uses the outputs of its comparisons and judgments,
    and those that one of its rounds has reused (see `pin`), recorded or not, whether the campaign is running
    or not. So no output that a running campaign has read is deleted. A campaign that begins meanwhile waits
    for this transaction and then reads the new state. References among the canaries are kept too.

    Args:
        session: Session that can write; its transaction deletes everything or nothing.
        campaigns: As `prunable` listed them.
        is_gone: Whether the holder of a lease that was not released has ended.
        seen_by: Positions of the examples on which a campaign has outcomes.

    Raises:
        LeaseHeld: If a campaign is running, or may be running.
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
        # Delete outputs that were kept for a campaign that is deleted now.
        session.execute(delete(Generation).where(Generation.round_id.is_(None), ~_is_used()))
        session.execute(delete(Prompt).where(~exists().where(Generation.prompt_id == Prompt.id)))
        # Canaries that are references for later ones are kept as long as the database exists.
        session.execute(
            delete(Canary).where(
                Canary.campaign_id.is_(None),
                Canary.verdict == "same",
                ~exists().where(Generation.canary_id == Canary.id),
            )
        )


def forget(session: Session, campaign: CampaignRecord, seen: Collection[int]) -> None:
    """Delete a campaign that a command created for its own use.

    Keep its outputs, without an owner. No process may run the campaign. `seen` are the positions of the
    examples whose outputs a user was shown; they are recorded as by `prune`.
    """
    if seen:
        remember(session, campaign, seen)
    _delete_campaign(session, campaign.id, keeps_outputs=True)


def _delete_campaign(session: Session, campaign_id: int, *, keeps_outputs: bool = False) -> None:
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
    # All remaining uses of an output are by other campaigns.
    if not keeps_outputs:
        session.execute(delete(Generation).where(Generation.round_id.in_(rounds), ~_is_used()))
    session.execute(update(Generation).where(Generation.round_id.in_(rounds)).values(round_id=None))
    for of_candidates in (CandidateStats, MetricStats, Standing, Ranking, Difference, Bet):
        session.execute(delete(of_candidates).where(of_candidates.candidate_id.in_(candidates)))
    session.execute(delete(Decision).where(Decision.round_id.in_(rounds)))
    session.execute(delete(Round).where(Round.campaign_id == campaign_id))
    for model in (Candidate, StreamBatch, ModelLoad, Lease):
        session.execute(delete(model).where(model.campaign_id == campaign_id))
    session.execute(update(Canary).where(Canary.campaign_id == campaign_id).values(campaign_id=None))
    dataset_id = session.scalars(select(Campaign.dataset_id).where(Campaign.id == campaign_id)).one()
    session.execute(delete(Campaign).where(Campaign.id == campaign_id))
    add_to_count(session.connection(), "datasets", dataset_id, "campaigns", [campaign_id], gone=True)


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
"""Creates a condition that a row belongs to certain rounds.
The argument is the row's column of round ids."""


def _is_used(by: Rounds = lambda _: true()) -> ColumnElement[bool]:
    """Condition that rows of these rounds refer to a generation.

    These rows are comparisons, outputs, judgments, tasks and pins.
    """
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
    """Create indexes while rows are deleted.

    The database looks up all references to each deleted row.
    """
    made = []
    for table, columns in _LOOKED_UP.items():
        for column in columns:
            made.append(f"ix_pruning_{table}_{column}")
            session.execute(text(f"CREATE INDEX {made[-1]} ON {table} ({column})"))
    yield
    for name in made:
        session.execute(text(f"DROP INDEX {name}"))
