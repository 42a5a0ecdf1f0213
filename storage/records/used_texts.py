"""Outputs that a campaign used, its own and reused ones, and the served names of their models."""

from collections import Counter

from sqlalchemy import Select, Subquery, and_, distinct, func, or_, select, union
from sqlalchemy.orm import Session

from winnow.storage.models import Campaign, Canary, Comparison, Generation, Judgment, Output, Pin, Round
from winnow.storage.objectives import traits_of
from winnow.storage.records.canaries import canary_record
from winnow.storage.records.record_types import CanaryRecord


def used_texts(session: Session, campaign_id: int) -> Subquery:
    """Select the `id` of each output that a campaign used, once.

    Comparisons and judgments determine them, except for certify: there, all outputs count that the campaign
    paid for or pinned.
    """
    objective = session.scalars(select(Campaign.objective).where(Campaign.id == campaign_id)).one()
    by_losses = traits_of(objective).measures_risk
    of_both = (_paid_for, _taken_up) if by_losses else (_compared, _compared_beside, _judged)
    return union(*(texts(campaign_id) for texts in of_both)).subquery()


def canaries_behind(session: Session, campaign_id: int) -> list[CanaryRecord]:
    """Canary contacts during which the outputs used by a campaign were generated, in order."""
    used = used_texts(session, campaign_id)
    contacts = select(Generation.canary_id).join(used, used.c.id == Generation.id)
    rows = session.scalars(select(Canary).where(Canary.id.in_(contacts)).order_by(Canary.id))
    return [canary_record(row) for row in rows]


def texts_before(session: Session, campaign_id: int, name: str, change: CanaryRecord) -> int:
    """Number of outputs used by a campaign that a model generated before it changed.

    Outputs without a canary count as well if a model of this name generated them before.
    """
    used = used_texts(session, campaign_id)
    query = (
        select(func.count(distinct(Generation.id)))
        .join(used, used.c.id == Generation.id)
        .outerjoin(Canary, Canary.id == Generation.canary_id)
        .where(
            or_(
                and_(Canary.model == change.model, Canary.epoch < change.epoch),
                and_(
                    Generation.canary_id.is_(None),
                    Generation.model == name,
                    Generation.created_at < change.created_at,
                ),
            )
        )
    )
    return session.scalar(query) or 0


def names_served(session: Session, campaign_id: int, model: str) -> dict[str, int]:
    """Number of used outputs of a served model by served name, if a server reported several names.

    Two servers can have different names for it: users declare that they serve the same model. Most models
    have one name in the whole database, which an index shows; the result is then empty without counting.

    Args:
        session: Reads.
        campaign_id: The campaign.
        model: `Canary.model`; campaigns can use several names for it.
    """
    called = list(session.scalars(select(Canary.name).where(Canary.model == model).distinct()))
    if len({end for name in called for end in _ends(session, name)}) < 2:
        return {}
    used = used_texts(session, campaign_id)
    rows = session.execute(
        select(Canary.server, Generation.served_as, func.count(distinct(Generation.id)))
        .join(used, used.c.id == Generation.id)
        .outerjoin(Canary, Canary.id == Generation.canary_id)
        .where(
            Generation.served_as.is_not(None),
            or_(Canary.model == model, and_(Generation.canary_id.is_(None), Generation.model.in_(called))),
        )
        .group_by(Canary.server, Generation.served_as)
    )
    by_server: dict[str | None, dict[str, int]] = {}
    for server, name, n in rows:
        by_server.setdefault(server, {})[name] = n
    several = Counter[str]()
    for names in by_server.values():
        if len(names) > 1:
            several.update(names)
    return dict(sorted(several.items()))


def _ends(session: Session, name: str) -> set[str]:
    """First and last served name, alphabetically, of models that campaigns give this name."""
    told = Generation.model == name, Generation.served_as.is_not(None)
    # SQLite seeks each in the index separately; for both together it reads the whole index.
    ends = [select(end(Generation.served_as)).where(*told).scalar_subquery() for end in (func.min, func.max)]
    return {end for end in session.execute(select(*ends)).one() if end is not None}


def _paid_for(campaign_id: int) -> Select[tuple[int]]:
    return (
        select(Generation.id)
        .join(Round, Round.id == Generation.round_id)
        .where(Round.campaign_id == campaign_id)
    )


def _taken_up(campaign_id: int) -> Select[tuple[int]]:
    return (
        select(Pin.generation_id.label("id"))
        .join(Round, Round.id == Pin.round_id)
        .where(Round.campaign_id == campaign_id)
    )


def _compared(campaign_id: int) -> Select[tuple[int]]:
    return (
        select(Generation.id)
        .join(
            Comparison,
            or_(Comparison.generation_a_id == Generation.id, Comparison.generation_b_id == Generation.id),
        )
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id)
    )


def _compared_beside(campaign_id: int) -> Select[tuple[int]]:
    return _behind(Output, campaign_id)


def _judged(campaign_id: int) -> Select[tuple[int]]:
    return _behind(Judgment, campaign_id)


def _behind(row: type[Output] | type[Judgment], campaign_id: int) -> Select[tuple[int]]:
    """Outputs that dependent rows of a campaign's comparisons refer to."""
    return (
        select(Generation.id)
        .join(row, row.generation_id == Generation.id)
        .join(Comparison, Comparison.id == row.comparison_id)
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id)
    )
