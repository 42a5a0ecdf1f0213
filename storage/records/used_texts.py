"""The texts that a campaign used, its own and those of others, and their servers' names for their writers."""

from collections import Counter

from sqlalchemy import Select, Subquery, and_, distinct, func, or_, select, union
from sqlalchemy.orm import Session

from winnow.storage.models import Campaign, Canary, Comparison, Generation, Judgment, Output, Pin, Round
from winnow.storage.objectives import traits_of
from winnow.storage.records.canaries import canary_record
from winnow.storage.records.values import CanaryRecord


def used_texts(session: Session, campaign_id: int) -> Subquery:
    """The `id` of each text that a campaign used, once.

    Comparisons and judgments say which these are, but to certify: there all count that the campaign paid for
    or took up.
    """
    objective = session.scalars(select(Campaign.objective).where(Campaign.id == campaign_id)).one()
    by_losses = traits_of(objective).measures_risk
    of_both = (_paid_for, _taken_up) if by_losses else (_compared, _compared_beside, _judged)
    return union(*(texts(campaign_id) for texts in of_both)).subquery()


def canaries_behind(session: Session, campaign_id: int) -> list[CanaryRecord]:
    """The contacts with their servers at which the texts that a campaign used were made, in their order."""
    used = used_texts(session, campaign_id)
    contacts = select(Generation.canary_id).join(used, used.c.id == Generation.id)
    rows = session.scalars(select(Canary).where(Canary.id.in_(contacts)).order_by(Canary.id))
    return [canary_record(row) for row in rows]


def texts_before(session: Session, campaign_id: int, name: str, change: CanaryRecord) -> int:
    """The number of texts that a campaign used and that a model made before it changed.

    Texts without a canary count as well if a model of this name made them before.
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
    """The number of used texts of a served model by each name its server gave, where it gave several.

    Two servers may each have a name of their own: it is people who say that they serve the same. Most models
    have one name in the whole database, which is read off an index; then the count is left out, and the
    answer is empty.

    Args:
        session: Reads.
        campaign_id: The campaign.
        model: As `Canary.model` has it; campaigns may call it by several names.
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
    """The first and the last server's name for the writers of texts of models that campaigns call so."""
    told = Generation.model == name, Generation.served_as.is_not(None)
    # SQLite seeks each in the index by itself; for both at once it reads all of it.
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
    """The texts that rows beside a campaign's comparisons are of."""
    return (
        select(Generation.id)
        .join(row, row.generation_id == Generation.id)
        .join(Comparison, Comparison.id == row.comparison_id)
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id)
    )
