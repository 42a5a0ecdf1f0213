"""The texts that a campaign used, its own and those of others, and who wrote them in their servers' words."""

from sqlalchemy import Select, Subquery, distinct, func, or_, select, union
from sqlalchemy.orm import Session, aliased

from winnow.storage.models import Campaign, Comparison, Generation, Judgment, Output, Pin, Round


def used_texts(session: Session, campaign_id: int) -> Subquery:
    """The `id` of each text that a campaign used, once.

    Comparisons and judgments say which these are, but to certify: there all count that the campaign paid for
    or took up.
    """
    is_certified = session.scalar(select(Campaign.objective).where(Campaign.id == campaign_id)) == "certify"
    of_both = (_paid_for, _taken_up) if is_certified else (_compared, _compared_beside, _judged)
    return union(*(texts(campaign_id) for texts in of_both)).subquery()


def names_served(session: Session, campaign_id: int, model: str) -> dict[str, int]:
    """How many texts that a campaign used of a model were told to be written by which name, in their order.

    Most models have one name in the whole database, which is read off an index; then the count is left out,
    and the answer is empty.
    """
    told = Generation.model == model, Generation.served_as.is_not(None)
    # SQLite seeks each in the index by itself; for both at once it reads all of it.
    ends = [select(end(Generation.served_as)).where(*told).scalar_subquery() for end in (func.min, func.max)]
    first, last = session.execute(select(*ends)).one()
    if first == last:
        return {}
    used = used_texts(session, campaign_id)
    rows = session.execute(
        select(Generation.served_as, func.count(distinct(Generation.id)))
        .join(used, used.c.id == Generation.id)
        .where(*told)
        .group_by(Generation.served_as)
    )
    return dict(sorted((name, n) for name, n in rows))


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
    return (
        select(Generation.id)
        .join(Output, Output.generation_id == Generation.id)
        .join(Comparison, Comparison.id == Output.comparison_id)
        .join(Round, Round.id == Comparison.round_id)
        .where(Round.campaign_id == campaign_id)
    )


def _judged(campaign_id: int) -> Select[tuple[int]]:
    played = aliased(Comparison)
    return (
        select(Generation.id)
        .join(Judgment, Judgment.generation_id == Generation.id)
        .join(played, played.id == Judgment.comparison_id)
        .join(Round, Round.id == played.round_id)
        .where(Round.campaign_id == campaign_id)
    )
