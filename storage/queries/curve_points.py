"""The curve of a campaign as far as a figure can show it: of very many rounds, some."""

from collections.abc import Sequence
from itertools import accumulate

from sqlalchemy.orm import Session

from winnow.storage.engine.raw_sql import run
from winnow.storage.json_types import Row
from winnow.storage.records.campaigns import candidate_ids, candidate_names

TOLD = """
    SELECT r.number, d.answered, d.best_candidate_id, d.best_estimate, d.best_lower, d.best_upper
    FROM rounds r JOIN decisions d ON d.round_id = r.id WHERE r.campaign_id = ? ORDER BY r.number
"""


def curve_points(session: Session, campaign_id: int, *, most: int, changes: int) -> list[Row]:
    """Rows of `campaign_views.curve`: all of them, or of very many about so many.

    Args:
        session: Reads the results.
        campaign_id: Whose.
        most: Rounds that are evenly spread, the first and the last among them.
        changes: Changes of the lead that are there besides, the last ones.
    """
    told = run(session.connection(), TOLD, (campaign_id,))
    answered = list(accumulate(each[1] for each in told))
    names = dict(zip(candidate_ids(session, campaign_id), candidate_names(session, campaign_id), strict=True))
    return [
        {
            "round": number,
            "comparisons": answered[place],
            "best": None if best is None else names[best],
            "estimate": estimate,
            "lower": lower,
            "upper": upper,
        }
        for place in places([each[2] for each in told], most=most, changes=changes)
        for number, _, best, estimate, lower, upper in [told[place]]
    ]


def places(leaders: Sequence[int | None], *, most: int, changes: int) -> Sequence[int]:
    """Which rounds to show, by the leaders after each."""
    if len(leaders) <= most:
        return range(len(leaders))
    changed = [
        place
        for place, (before, leader) in enumerate(zip([None, *leaders], leaders, strict=False))
        if leader is not None and leader != before
    ]
    step = -(-len(leaders) // most)
    last = changed[max(0, len(changed) - changes) :]
    return sorted({*range(0, len(leaders), step), len(leaders) - 1, *last})
