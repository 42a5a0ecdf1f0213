"""Quality, cost and time of candidates, and which candidates are dominated.

Quality is what the campaign proves or estimates; cost and time are plain means over the stored outputs, with
their standard deviations. Cost and time are not certified, and no selector observes them.
"""

import math

from winnow.storage.json_types import Row
from winnow.storage.queries.campaign_views import leaderboard
from winnow.storage.queries.costs import CandidateTexts, reported_by_candidate, texts_by_candidate
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.budget import price_weights, reporting_models
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.warnings.from_outputs import OUT

TEXTS = 1_000
"""Number of outputs that a price refers to."""

NOISE = 2.0
"""Standard errors of a difference between two means up to which the means count as equal."""


def pareto(look: Look) -> list[Row]:
    """One row per candidate with outputs, best estimate first.

    `tokens`, `seconds`, `latency` and `cost` are means per output, each followed by its standard deviation:
    input and output tokens; engine time, which outputs of one batch share; the time from a request to its
    answer, null if no engine reported it; and the price of a thousand outputs, null if a price is unknown.

    `pareto` is true if the candidate is not out and no other one that is not out beats it: none has at least
    as high an estimate, is not clearly dearer (in tokens if a price is unknown), is not clearly slower (in
    seconds if a latency is unknown), and is better in one of the three. Nothing of this is proved.
    """
    texts = texts_by_candidate(look.session, look.record.id)
    reported = reported_of(look)
    rows = [
        _row(look.record, row, texts[row["candidate"]], reported.get(row["candidate"]))
        for row in leaderboard(look.session, look.record.id)
        if row["candidate"] in texts
    ]
    by = "tokens" if any(row["cost"] is None for row in rows) else "cost"
    time = "seconds" if any(row["latency"] is None for row in rows) else "latency"
    left = [row for row in rows if row["estimate"] is not None and row["status"] not in OUT]
    return [
        {**row, "pareto": row in left and not any(_beats(other, row, by, time) for other in left)}
        for row in rows
    ]


def reported_of(look: Look) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of the costs that agents reported; none in campaigns without agents."""
    return reported_by_candidate(look.session, look.record.id) if reporting_models(look.record.spec) else {}


def _row(
    campaign: CampaignRecord, row: Row, texts: CandidateTexts, reported: tuple[float, float] | None
) -> Row:
    weights = price_weights(campaign, texts.model)
    cost = None if weights is None else (texts.mean(*weights), texts.deviation(*weights))
    cost = cost or reported
    latency, latency_sd = texts.latency or (None, None)
    return {
        **{name: row[name] for name in ("candidate", "status", "estimate", "lower", "upper")},
        "texts": texts.texts,
        "tokens": texts.mean(1.0, 1.0),
        "tokens_sd": texts.deviation(1.0, 1.0),
        "seconds": texts.mean(0.0, 0.0, 1.0),
        "seconds_sd": texts.deviation(0.0, 0.0, 1.0),
        "latency": latency,
        "latency_sd": latency_sd,
        "cost": None if cost is None else TEXTS * cost[0],
        "cost_sd": None if cost is None else TEXTS * cost[1],
    }


def _beats(one: Row, other: Row, by: str, time: str) -> bool:
    spent = [_compared(one, other, name) for name in (by, time)]
    is_higher = one["estimate"] > other["estimate"]
    return one["estimate"] >= other["estimate"] and max(spent) <= 0 and (is_higher or min(spent) < 0)


def _compared(one: Row, other: Row, name: str) -> int:
    """The sign of the difference of two candidates' means; 0 if it is within the noise of these means."""
    difference: float = one[name] - other[name]
    error = math.hypot(*(row[f"{name}_sd"] / math.sqrt(row["texts"]) for row in (one, other)))
    if abs(difference) <= NOISE * error:
        return 0
    return 1 if difference > 0 else -1
