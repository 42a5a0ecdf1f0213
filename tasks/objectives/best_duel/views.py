"""Statistics on duels: strengths of candidates, and agreement between judges."""

from collections import Counter

import numpy as np

from winnow.algorithms.best_duel.bradley_terry import bradley_terry_strengths
from winnow.storage.json_types import Row
from winnow.storage.queries.objective import duels as duel_views
from winnow.storage.queries.objective.judgment_pairs import Sides, judge_sides, shared_sides
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.look import Look


def strengths(look: Look) -> list[Row]:
    """One row per candidate, strongest first: log-odds of beating the average one.

    The columns `lower` and `upper` are a 95% interval.
    """
    names = campaign_records.candidate_names(look.session, look.record.id)
    position = {name: arm for arm, name in enumerate(names)}
    wins, counts = np.zeros((len(names),) * 2), np.zeros((len(names),) * 2, dtype=np.int64)
    for row in duel_views.head_to_head(look.session, look.record.id):
        pair = position[row["candidate"]], position[row["opponent"]]
        counts[pair] = row["wins"] + row["ties"] + row["losses"]
        wins[pair] = (row["win_rate"] or 0.0) * counts[pair]
    found = bradley_terry_strengths(wins, counts)
    rows = [
        {"candidate": name, **{key: _known(ends[arm]) for key, ends in zip(KEYS, found, strict=True)}}
        for arm, name in enumerate(names)
    ]
    return sorted(rows, key=lambda row: (row["strength"] is None, -(row["strength"] or 0.0)))


KEYS = ("strength", "lower", "upper")


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def agreement(look: Look) -> list[Row]:
    """One row per two judges with verdicts on the same duels, by name.

    `same` counts the duels in which both prefer the same output or neither, `opposite` those in which they
    prefer different ones. `kappa` is Cohen's kappa: 1 is full agreement, 0 is agreement by chance. It is null
    if both judges always gave the same verdict, so that chance alone would agree.
    """
    return [
        {"judge": judge, "other": other, "duels": sides.total(), **agreement_of(sides)}
        for (judge, other), sides in judge_sides(look.session, look.record.id).items()
    ]


def campaigns_agreement(look: Look, other: CampaignRecord) -> Row | None:
    """The agreement of two campaigns on the outputs that both judged.

    The columns are those of `agreement`, with `texts` instead of `duels`. For single outputs the three
    verdicts are scores above 1/2, below 1/2, and 1/2. None if the campaigns share no output.
    """
    sides = shared_sides(look.session, look.record.id, other.id)
    return {"campaign": other.name, "texts": sides.total(), **agreement_of(sides)} if sides else None


def agreement_of(sides: Counter[Sides]) -> Row:
    """Counts and rates of agreement of two judges on at least one common subject."""
    same = sum(count for (a, b), count in sides.items() if a == b)
    return {
        "same": same,
        "opposite": sum(count for (a, b), count in sides.items() if a * b < 0),
        "agreement": same / sides.total(),
        "kappa": cohens_kappa(sides),
    }


def cohens_kappa(sides: Counter[Sides]) -> float | None:
    """Cohen's kappa: agreement beyond chance; None if chance always agrees.

    Args:
        sides: Number of each pair of verdicts of two judges; at least one pair in total.

    Source: Cohen (1960), A coefficient of agreement for nominal scales, Educ. Psychol. Meas. 20(1), eq. 1.
    """
    total = sides.total()
    first, second = Counter[int](), Counter[int]()
    for (a, b), count in sides.items():
        first[a] += count
        second[b] += count
    # Integers until the division, so that full agreement gives exactly 1.
    observed = total * sum(count for (a, b), count in sides.items() if a == b)
    expected = sum(count * second[side] for side, count in first.items())
    return None if expected == total**2 else (observed - expected) / (total**2 - expected)
