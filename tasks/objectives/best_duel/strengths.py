"""The strength of each candidate of a duel campaign, on one scale."""

import numpy as np

from winnow.algorithms.best_duel.bradley_terry import bradley_terry_strengths
from winnow.storage.json_types import Row
from winnow.storage.queries.objective import duels as duel_views
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.campaign.look import Look


def strengths(look: Look) -> list[Row]:
    """One row per candidate, the strongest first: log-odds of beating the average candidate, 95% interval."""
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
