"""Quality, cost and time of candidates side by side, and which candidates others dominate in these.

Quality is what the campaign proves or estimates; cost and time are plain means over the stored outputs, with
their standard deviations. Nothing of the latter two is certified, and no selector is told of them.
"""

from winnow.storage.json_types import Row
from winnow.storage.queries.campaign_views import leaderboard
from winnow.storage.queries.costs import CandidateTexts, texts_by_candidate
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.budget import price_weights
from winnow.tasks.campaign.look import Look

TEXTS = 1_000
"""Texts that a price is of."""

Place = tuple[float, float, float]


def pareto(look: Look) -> list[Row]:
    """One row per candidate that has texts, best estimate first.

    `tokens`, `seconds`, `latency` and `cost` are means of a text, each with its standard deviation behind it:
    tokens read and written; the engine's time, which texts of one batch share; the time from a request to its
    answer, null if no engine told it; and the price of a thousand texts, null if nobody said what the model
    costs. `pareto` says that no other candidate has at least as high an estimate, as low a cost (where prices
    are not all known: as few tokens) and as low a latency (where these are not all known: as few seconds),
    and is better in one of the three. It compares these numbers as they are, and is nothing that was proved.
    """
    texts = texts_by_candidate(look.session, look.record.id)
    rows = [
        _row(look.record, row, texts[row["candidate"]])
        for row in leaderboard(look.session, look.record.id)
        if row["candidate"] in texts
    ]
    by = "tokens" if any(row["cost"] is None for row in rows) else "cost"
    time = "seconds" if any(row["latency"] is None for row in rows) else "latency"
    places = [_place(row, by, time) for row in rows]
    known = {place for place in places if place is not None}
    unbeaten = {place for place in known if not any(_beats(other, place) for other in known)}
    return [{**row, "pareto": place in unbeaten} for row, place in zip(rows, places, strict=True)]


def _row(campaign: CampaignRecord, row: Row, texts: CandidateTexts) -> Row:
    weights = price_weights(campaign, texts.model)
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
        "cost": None if weights is None else TEXTS * texts.mean(*weights),
        "cost_sd": None if weights is None else TEXTS * texts.deviation(*weights),
    }


def _place(row: Row, by: str, time: str) -> Place | None:
    """Estimate, cost and time, each better where it is higher; None without an estimate."""
    return None if row["estimate"] is None else (row["estimate"], -row[by], -row[time])


def _beats(one: Place, other: Place) -> bool:
    return one != other and one[0] >= other[0] and one[1] >= other[1] and one[2] >= other[2]
