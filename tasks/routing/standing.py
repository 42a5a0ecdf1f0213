"""How well a campaign routes, from its rows alone."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from storage import arrivals, campaign_records, round_records, route_views, views
from storage.records import CampaignRecord

Row = dict[str, Any]

LATE = 0.25
"""The last share of the rounds, by when most has been learned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What choosing a candidate for each prompt has brought."""

    mean: float | None
    """Of the scores so far."""
    scored: int
    late_mean: float | None
    """Of the scores in the last rounds."""
    late_scored: int
    single_scored: int
    """Scores of the candidate whose own scores are best on average."""
    prompts: int
    """All there are to answer, those that arrived included."""
    unfinished: bool
    """Whether a round is planned and not finished."""


def standing_of(session: Session, campaign: CampaignRecord, best: str | None) -> Standing:
    """How a campaign that routes does at this moment.

    Args:
        session: Reads the results.
        campaign: One with the objective route.
        best: The candidate whose own scores are best on average.
    """
    n_rounds = round_records.next_round_number(session, campaign.id)
    overall = route_views.answered(session, campaign.id)
    late = route_views.answered(session, campaign.id, from_round=int(n_rounds * (1.0 - LATE)))
    scored = {row["candidate"]: row["scored"] for row in views.leaderboard(session, campaign.id)}
    return Standing(
        mean=overall.mean,
        scored=overall.count,
        late_mean=late.mean,
        late_scored=late.count,
        single_scored=scored.get(best, 0),
        prompts=arrivals.count_examples(session, campaign.id),
        unfinished=round_records.unfinished_round(session, campaign.id) is not None,
    )


def picks(session: Session, campaign: CampaignRecord) -> list[Row]:
    """Who was chosen how often, over time and by type of prompt; see `storage.route_views.picks`."""
    return route_views.picks(session, campaign.id, campaign.spec["prompt_type"])


def shares(session: Session, campaign: CampaignRecord) -> list[Row]:
    """For a terminal: one row per candidate, its share of the prompts of each type in the last rounds."""
    rows = picks(session, campaign)
    late = [row for row in rows if row["until"] > (1.0 - LATE) * max(row["until"] for row in rows)]
    untyped = "all prompts" if campaign.spec["prompt_type"] is None else "no type"
    totals: dict[str, int] = {}
    counts: dict[tuple[str, str], int] = {}
    for row in late:
        kind = row["prompt_type"] or untyped
        totals[kind] = totals.get(kind, 0) + row["picks"]
        counts[row["candidate"], kind] = counts.get((row["candidate"], kind), 0) + row["picks"]
    return [
        {"candidate": name, **{kind: counts.get((name, kind), 0) / totals[kind] for kind in sorted(totals)}}
        for name in campaign_records.candidate_names(session, campaign.id)
        if any(row["candidate"] == name for row in late)
    ]
