"""What Prefect's pages show of a campaign. Names of candidates are text there, whatever they look like."""

import json
import re
from hashlib import sha256

from sqlalchemy.orm import Session

from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.values import CampaignRecord
from winnow.tasks.answer.words import headline, subject
from winnow.tasks.queries.printable import escaped
from winnow.tasks.queries.status import CampaignStatus, campaign_status
from winnow.tasks.queries.views import ask

MOST_ROWS = 50
"""Candidates in the table; `winnow query NAME leaderboard` has all."""

_COLUMNS = (
    "candidate",
    "status",
    "estimate",
    "lower",
    "upper",
    "scored",
    "unscored",
    "output_tokens",
    "seconds",
)


def artifact_key(campaign: str, what: str) -> str:
    """The key of a campaign's artifact, of lowercase letters, digits and dashes alone, as Prefect asks."""
    slug = re.sub(r"[^a-z0-9]+", "-", campaign.lower())
    # Two names may have one slug: what was lost of a name goes into a digest.
    mark = "" if slug == campaign else f"-{sha256(campaign.encode()).hexdigest()[:6]}"
    return f"winnow-{slug.strip('-')}{mark}-{what}"


def progress(session: Session, campaign: CampaignRecord) -> tuple[float, str]:
    """How much of the budget is spent, in percent (100 once the campaign has ended), and where it stands."""
    status = campaign_status(session, campaign)
    grid = status.totals["grid"]
    shares = [each.share for each in status.budgets]
    if status.budget is None and grid:
        shares.append(status.totals["comparisons"] / grid)
    has_ended = status.is_settled and status.state != "waiting"
    percent = 100.0 if has_ended else min(100.0 * max(shares, default=0.0), 100.0)
    return percent, _standing(status)


def leaderboard(session: Session, campaign: CampaignRecord) -> tuple[str, str]:
    """The table of the leading candidates, as JSON, and what it shows."""
    found = list(ask(session, campaign, "leaderboard"))
    rows = [_row(row) for row in found[:MOST_ROWS]]
    decision = outcome_records.latest_decision(session, campaign.id)
    finished = 0 if decision is None else decision.round_number + 1
    cut = f"; the first {MOST_ROWS} of {len(found)} candidates" if len(found) > MOST_ROWS else ""
    return json.dumps(rows), f"{escaped(campaign.name)} after {finished} rounds{cut}"


def _row(row: dict[str, object]) -> dict[str, object]:
    shown = {name: _cell(row[name]) for name in _COLUMNS}
    return {"best": "*" if row["best"] else "", **shown}


def _cell(value: object) -> object:
    if isinstance(value, str):
        return escaped(value)  # cells are markdown to Prefect's pages
    return round(value, 4) if isinstance(value, float) else value


def _standing(status: CampaignStatus) -> str:
    leader = status.answer.of_best
    best = "nothing known yet" if leader is None else f"best {escaped(leader.name)}"
    if status.answer.baseline is not None:
        best = escaped(subject(status.answer))
    elif leader is not None and leader.estimate is not None:
        best += f" {leader.estimate:.3f}"
    if status.answer.held_out_mean is not None:
        best += f" (held out {status.answer.held_out_mean:.3f})"
    budgets = ", ".join(str(each) for each in status.budgets)
    return f"{escaped(status.name)}: {headline(status.answer, status.state)}, {best}; {budgets}"
