"""Quality, cost and time of candidates side by side, and who is beaten on all three.

Quality is what the campaign proves or estimates; cost and time are plain means over the stored texts, with
their standard deviations. Nothing of the latter two is certified, and no selector is told of them.
"""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from winnow.storage.json_types import JsonView, Row
from winnow.storage.queries.campaign_views import leaderboard
from winnow.storage.queries.rates import CandidateTexts, texts_by_candidate
from winnow.storage.records.values import CampaignRecord

TEXTS = 1_000
"""Texts that a price is of."""
TOKENS = 1_000_000
"""Tokens that a price in a spec is of."""
SECONDS_PER_HOUR = 3600.0


def pareto(session: Session, campaign: CampaignRecord) -> list[Row]:
    """One row per candidate that has texts, best estimate first.

    `tokens`, `seconds` and `cost` are means of a text, each with its standard deviation behind it: tokens
    read and written, the engine's time, which texts of one batch share, and the price of a thousand texts,
    null where nobody said what the model costs. `pareto` says that no other candidate has at least as high an
    estimate, as low a cost (where prices are not all known: as few tokens) and as few seconds, and is better
    in one of the three. It compares these numbers as they are, and is nothing that was proved.
    """
    execution = campaign.execution.get("execution", {})
    texts = texts_by_candidate(session, campaign.id)
    rows = [
        _row(row, texts[row["candidate"]], execution)
        for row in leaderboard(session, campaign.id)
        if row["candidate"] in texts
    ]
    by = "tokens" if any(row["cost"] is None for row in rows) else "cost"
    return [{**row, "pareto": _is_unbeaten(row, rows, by)} for row in rows]


def _row(row: Row, texts: CandidateTexts, execution: JsonView) -> Row:
    cost, cost_sd = _cost(texts, execution)
    return {
        **{name: row[name] for name in ("candidate", "status", "estimate", "lower", "upper")},
        "texts": texts.texts,
        "tokens": texts.mean(1.0, 1.0),
        "tokens_sd": texts.deviation(1.0, 1.0),
        "seconds": texts.mean(0.0, 0.0, 1.0),
        "seconds_sd": texts.deviation(0.0, 0.0, 1.0),
        "cost": cost,
        "cost_sd": cost_sd,
    }


def _cost(texts: CandidateTexts, execution: JsonView) -> tuple[float | None, float | None]:
    """Mean price of a thousand texts, and the standard deviation of one times a thousand."""
    price, hourly = execution.get("prices", {}).get(texts.model), execution.get("price_per_hour")
    if price is None and hourly is None:
        return None, None
    token = {"input": 0.0, "output": 0.0} if price is None else price
    weights = (token["input"] / TOKENS, token["output"] / TOKENS, (hourly or 0.0) / SECONDS_PER_HOUR)
    return TEXTS * texts.mean(*weights), TEXTS * texts.deviation(*weights)


def _is_unbeaten(row: Row, rows: Sequence[Row], by: str) -> bool:
    if row["estimate"] is None:
        return False
    mine = (row["estimate"], -row[by], -row["seconds"])
    others = [
        (each["estimate"], -each[by], -each["seconds"]) for each in rows if each["estimate"] is not None
    ]
    return not any(
        other != mine and all(theirs >= own for theirs, own in zip(other, mine, strict=True))
        for other in others
    )
