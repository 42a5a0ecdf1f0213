"""Agreement of the judges of a campaign of duels with one another, beyond what chance would give."""

from collections import Counter

from winnow.storage.json_types import Row
from winnow.storage.queries.objective.agreement import Sides, judge_sides, shared_sides
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.look import Look


def agreement(look: Look) -> list[Row]:
    """One row per two judges with an opinion on the same duel, by name.

    `same` counts the duels where both prefer the same answer or neither, `opposite` those where they prefer
    different ones. `kappa` is Cohen's: 1 is full agreement, 0 what chance would give; null if both judges
    always said the same one thing, so that chance alone would agree.
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
    """The agreement of two campaigns on the texts that both judged; None if there are none.

    The columns are those of `agreement`, with `texts` instead of `duels`. Of a single text the sides are
    scores above 1/2, below it, and 1/2 itself.
    """
    sides = shared_sides(look.session, look.record.id, other.id)
    return {"campaign": other.name, "texts": sides.total(), **agreement_of(sides)} if sides else None


def agreement_of(sides: Counter[Sides]) -> Row:
    """The counts and rates of two judges who said something of the same things, at least once in all."""
    same = sum(count for (a, b), count in sides.items() if a == b)
    return {
        "same": same,
        "opposite": sum(count for (a, b), count in sides.items() if a * b < 0),
        "agreement": same / sides.total(),
        "kappa": cohens_kappa(sides),
    }


def cohens_kappa(sides: Counter[Sides]) -> float | None:
    """Agreement beyond chance; None if chance agrees always.

    Args:
        sides: Counts of the pairs of answers that two judges gave, of a few possible ones; one at least.

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
