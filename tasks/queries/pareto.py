"""Quality, cost and time of candidates, and which candidates are dominated.

Quality is what the campaign proves or estimates; cost and time are plain means over the stored outputs, with
their standard deviations. Cost and time are not certified, and no selector observes them.
"""

from winnow.storage.json_types import Row
from winnow.storage.queries.campaign_views import leaderboard
from winnow.storage.queries.costs import CandidateTexts, reported_by_candidate, texts_by_candidate
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.budget import price_weights, reporting_models
from winnow.tasks.campaign.look import Look

TEXTS = 1_000
"""Number of outputs that a price refers to."""

Place = tuple[float, float, float]


def pareto(look: Look) -> list[Row]:
    """One row per candidate with outputs, best estimate first.

    `tokens`, `seconds`, `latency` and `cost` are means per output, each followed by its standard deviation:
    input and output tokens; engine time, which outputs of one batch share; the time from a request to its
    answer, null if no engine reported it; and the price of a thousand outputs, null if a price is unknown.
    `pareto` is true if no other candidate has at least as high an estimate, as low a cost (or tokens, if not
    all prices are known) and as low a latency (or seconds, if not all latencies are known), and is better in
    one of the three. It compares these numbers without any proof.
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
    places = [_place(row, by, time) for row in rows]
    known = {place for place in places if place is not None}
    unbeaten = {place for place in known if not any(_beats(other, place) for other in known)}
    return [{**row, "pareto": place in unbeaten} for row, place in zip(rows, places, strict=True)]


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


def _place(row: Row, by: str, time: str) -> Place | None:
    """Estimate, cost and time, each with its sign set so that higher is better; None without an estimate."""
    return None if row["estimate"] is None else (row["estimate"], -row[by], -row[time])


def _beats(one: Place, other: Place) -> bool:
    return one != other and one[0] >= other[0] and one[1] >= other[1] and one[2] >= other[2]
