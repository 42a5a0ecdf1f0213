"""How far the judges of a campaign of duels agree with one another, beyond what chance would give."""

from collections import Counter

from sqlalchemy.orm import Session

from winnow.storage.json_types import Row
from winnow.storage.queries.objective.agreement import Sides, judge_sides
from winnow.storage.records.values import CampaignRecord


def agreement(session: Session, campaign: CampaignRecord) -> list[Row]:
    """One row per two judges with an opinion on the same duel, by name.

    `same` counts the duels where both prefer the same answer or neither, `opposite` those where they prefer
    different ones. `kappa` is Cohen's: 1 is full agreement, 0 what chance would give; null where both judges
    always said the same one thing, so that chance alone would agree.
    """
    return [
        {
            "judge": judge,
            "other": other,
            "duels": sides.total(),
            "same": (same := sum(count for (a, b), count in sides.items() if a == b)),
            "opposite": sum(count for (a, b), count in sides.items() if a * b < 0),
            "agreement": same / sides.total(),
            "kappa": cohens_kappa(sides),
        }
        for (judge, other), sides in judge_sides(session, campaign.id).items()
    ]


def cohens_kappa(sides: Counter[Sides]) -> float | None:
    """Agreement beyond chance; None where chance agrees always.

    Args:
        sides: How often two judges said which of a few things, at least once in all.

    Source: Cohen (1960), A coefficient of agreement for nominal scales, Educ. Psychol. Meas. 20(1), eq. 1.
    """
    total = sides.total()
    first, second = Counter[int](), Counter[int]()
    for (a, b), count in sides.items():
        first[a] += count
        second[b] += count
    # Whole numbers up to the division: agreement that is exact comes out as exactly 1.
    observed = total * sum(count for (a, b), count in sides.items() if a == b)
    expected = sum(count * second[side] for side, count in first.items())
    return None if expected == total**2 else (observed - expected) / (total**2 - expected)
