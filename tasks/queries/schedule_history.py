"""Campaigns over time, of one schedule or on the same data: did the winner change, and at what cost?"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from winnow.storage.json_types import Row
from winnow.storage.queries import history as history_views
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.values import CampaignRecord
from winnow.tasks.queries.status import CampaignStatus, campaign_status
from winnow.tasks.queries.views import ask

COLUMNS = (
    "campaign",
    "created_at",
    "state",
    "outcome",
    "claim",
    "best",
    "estimate",
    "lower",
    "upper",
    "changed",
    "comparisons",
    "generated",
    "reused",
)


def is_another(before: frozenset[str], now: frozenset[str]) -> bool:
    """Whether whoever took a winner of before would take another one now.

    One who shares the first place now, or shared it then, has won both times.
    """
    return bool(before and now) and not (before <= now or now <= before)


def previous_winner(session: Session, campaign: CampaignRecord) -> CampaignStatus | None:
    """The last campaign of the same schedule, begun before this one, that ended with a winner."""
    if campaign.series is None:
        return None
    earlier = [
        record
        for record in campaign_records.campaigns(session)
        if record.series == campaign.series
        and (record.created_at, record.id) < (campaign.created_at, campaign.id)
    ]
    statuses = (campaign_status(session, record) for record in reversed(earlier))
    return next((status for status in statuses if status.answer.winners), None)


def series_rows(session: Session, series: str) -> list[dict[str, object]]:
    """One row per campaign of a series, oldest first.

    `changed` says whether the winner is another one than in the last campaign before it that had a winner,
    and is null where there is nothing to compare, as where the question was left open. `generated` counts the
    texts that were made anew, `reused` those that were taken from earlier campaigns.

    Raises:
        SeriesNotFound: If there is no such series; the error lists those there are.
    """
    rows: list[dict[str, object]] = []
    before: frozenset[str] = frozenset()
    for row in history_views.series(session, series):
        record = campaign_records.get_campaign(session, row["campaign"])
        generated, reused = history_views.texts(session, record.id)
        status = campaign_status(session, record)
        now = status.answer.winners
        ended = {
            "changed": is_another(before, now) if before and now else None,
            "state": status.state,
            "outcome": status.answer.outcome,
            "claim": status.answer.claim.kind,
        }
        standing = {**row, **ended, "generated": generated, "reused": reused}
        rows.append({name: standing[name] for name in COLUMNS})
        before = now or before
    return rows


MOST_CAMPAIGNS = 60
"""That are shown of a series, the last ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Campaigns that ask the same again."""

    title: str
    campaigns: Sequence[CampaignRecord]
    """Oldest first."""


def all_series(session: Session) -> list[Series]:
    """The schedules of a database, then campaigns of one objective on the same data, two or more.

    What is estimated is the same in all of them: those that compare groups of examples are by themselves.
    """
    records = campaign_records.campaigns(session)
    scheduled: dict[str, list[CampaignRecord]] = {}
    alike: dict[tuple[int, str, str], list[CampaignRecord]] = {}
    for record in records:
        if record.series is not None:
            scheduled.setdefault(record.series, []).append(record)
        groups = json.dumps(record.spec.get("groups"), sort_keys=True)
        alike.setdefault((record.dataset_id, record.objective, groups), []).append(record)
    found = [Series(title=f"schedule {name}", campaigns=some) for name, some in scheduled.items()]
    found += [
        Series(title=f"{objective} on the data of {some[-1].name}", campaigns=some)
        for (_, objective, _), some in alike.items()
        if len(some) > 1 and len({record.series for record in some} - {None}) != 1
    ]
    return found


def over_time(session: Session, series: Series) -> list[Row]:
    """One row per campaign of a series, oldest first: how it ended, and what it cost.

    `changed` says whether another candidate leads than in the last campaign before it that had a leader.
    """
    rows, before = [], None
    for record in series.campaigns[-MOST_CAMPAIGNS:]:
        status = campaign_status(session, record)
        answer, best = status.answer, status.answer.of_best
        generated, reused = history_views.texts(session, record.id)
        rows.append(
            {
                "campaign": record.name,
                "created_at": record.created_at,
                "outcome": answer.outcome or status.state,
                "claim": answer.claim.kind,
                "best": answer.best,
                "estimate": best and best.estimate,
                "lower": best and best.lower,
                "upper": best and best.upper,
                "changed": answer.best != before if answer.best and before else None,
                "comparisons": status.totals["answered"],
                "generated": generated,
                "reused": reused,
                "tokens": status.totals["input_tokens"] + status.totals["output_tokens"],
                "engine_seconds": status.totals["engine_seconds"],
                "load_seconds": status.totals["load_seconds"],
            }
        )
        before = answer.best or before
    return rows


def tracks(session: Session, series: Series, names: Sequence[str]) -> dict[str, list[Row]]:
    """The estimates of some candidates in each campaign of a series that has them, oldest first.

    Args:
        session: Reads the results.
        series: The campaigns.
        names: Of the candidates.
    """
    found: dict[str, list[Row]] = {name: [] for name in names}
    for record in series.campaigns[-MOST_CAMPAIGNS:]:
        for row in ask(session, record, "leaderboard"):
            if row["candidate"] in found and row["estimate"] is not None:
                kept = {key: row[key] for key in ("estimate", "lower", "upper")}
                found[row["candidate"]].append({"campaign": record.name, "at": record.created_at, **kept})
    return found
