"""Agreement between the judges of a duel campaign, beyond chance."""

from collections import Counter

from winnow.storage.json_types import Row
from winnow.storage.queries.objective.agreement import Sides, judge_sides, shared_sides
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.look import Look


def agreement(look: Look) -> list[Row]:
    """One row per two judges with an opinion on the same duel, by name.

    `same` counts the duels in which both prefer the same answer or neither, `opposite` those in which they
    prefer different ones. `kappa` is Cohen's: 1 is full agreement, 0 is chance; null if both judges always
    gave the same verdict, so that chance alone would agree.
    """
    return [
        {
            "judge": judge,
            "other": other,
            "duels": sides.total(),
            **agreement_of(sides),
        }
        for (judge, other), sides in judge_sides(look.session, look.record.id).items()
    ]


def campaigns_agreement(look: Look, other: CampaignRecord) -> Row | None:
    """The agreement of two campaigns on the outputs that both judged; None if there are none.

    The columns are those of `agreement`, with `texts` instead of `duels`. For a single output the sides are
    scores above 1/2, below it, and 1/2 itself.
    """
    sides = shared_sides(look.session, look.record.id, other.id)
    return {"campaign": other.name, "texts": sides.total(), **agreement_of(sides)} if sides else None


def agreement_of(sides: Counter[Sides]) -> Row:
    """Counts and rates for two judges with at least one common subject."""
    same = sum(count for (a, b), count in sides.items() if a == b)
    return {
        "same": same,
        "opposite": sum(count for (a, b), count in sides.items() if a * b < 0),
        "agreement": same / sides.total(),
        "kappa": cohens_kappa(sides),
    }


def cohens_kappa(sides: Counter[Sides]) -> float | None:
    """Agreement beyond chance; None if chance always agrees.

    Args:
        sides: Counts of the pairs of verdicts that two judges gave; at least one.

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
