"""Contents of a campaign's Prefect artifacts, with candidates' names escaped."""

import json
import os
import re
from collections.abc import Callable
from hashlib import sha256
from urllib.parse import urlencode

from sqlalchemy.orm import Session

from winnow.flows.reports.summary import resume_command
from winnow.storage.engine.database import storage_option
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.answer.sentences.answer_lines import headline, subject
from winnow.tasks.answer.sentences.margin import leaves_margin
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.held_out import scored_words
from winnow.tasks.queries.status import CampaignStatus, campaign_status
from winnow.tasks.queries.views import ask
from winnow.tasks.text.phrases import list_of, rounded
from winnow.tasks.text.printable import escaped, one_line

VIEW_VARIABLE = "WINNOW_VIEW_URL"
"""Holds the address of `winnow view`, for links to it."""

MOST_ROWS = 50
"""Maximum number of candidates in the table; `winnow query NAME leaderboard` shows all."""

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
    """The key of a campaign's artifact, of lowercase letters, digits and dashes only, as Prefect requires."""
    slug = re.sub(r"[^a-z0-9]+", "-", campaign.lower())
    # Two names may have one slug: what was lost of a name goes into a digest.
    mark = "" if slug == campaign else f"-{sha256(campaign.encode()).hexdigest()[:6]}"
    return f"winnow-{slug.strip('-')}{mark}-{what}"


def ending(look: Look, storage: str) -> str:
    """The status of a campaign after its flow run, and commands that show more; one sentence per line.

    `storage` is the URL of its database, without a password.
    """
    status = campaign_status(look, in_full=True)
    lines = [_said(status), one_line(" ".join(status.headline_sentences()))]
    if page := page_address(look.record.name):
        lines.append(f"page: {page}")
    lines.append(
        f"report: winnow report {look.record.name} --html {look.record.name}.html {storage_option(storage)}"
    )
    if (resume := resume_command(status, storage)) is not None:
        lines.append(f"continue: {resume}")
    return "\n".join(lines)


def standing(look: Look) -> str:
    """The status of a campaign, in one line of plain text."""
    return _said(campaign_status(look))


def page_address(campaign: str) -> str | None:
    """The address of a campaign's page; None if the address of `winnow view` is not set."""
    base = os.environ.get(VIEW_VARIABLE, "").rstrip("/")
    return f"{base}/campaign?{urlencode({'campaign': campaign})}" if base else None


def progress(session: Session, campaign: CampaignRecord) -> tuple[float, str]:
    """The percentage of the budget spent (100 once the campaign has ended), and the status line."""
    status = campaign_status(Look(session, campaign))
    grid = status.totals["grid"]
    shares = [each.share for each in status.budgets]
    if status.budget is None and grid:
        shares.append(status.totals["comparisons"] / grid)
    has_ended = status.is_settled and status.state != "waiting"
    percent = 100.0 if has_ended else min(100.0 * max(shares, default=0.0), 100.0)
    return percent, _said(status, escaped)


def leaderboard(look: Look) -> tuple[str, str, dict[str, str]]:
    """The leading candidates as a JSON table, a text on its contents, and unescaped names by row.

    Prefect's pages interpret cells as Markdown: names are escaped in the table and unescaped in the metadata.
    """
    found = list(ask(look, "leaderboard"))
    rows = [_row(row) for row in found[:MOST_ROWS]]
    decision = outcome_records.latest_decision(look.session, look.record.id)
    finished = 0 if decision is None else decision.round_number + 1
    cut = f"; the first {MOST_ROWS} of {len(found)} candidates" if len(found) > MOST_ROWS else ""
    names = {f"candidate {number}": row["candidate"] for number, row in enumerate(found[:MOST_ROWS], 1)}
    return json.dumps(rows), f"{escaped(look.record.name)} after {finished} rounds{cut}", names


def _row(row: dict[str, object]) -> dict[str, object]:
    shown = {name: _cell(row[name]) for name in _COLUMNS}
    if row.get("held_out"):  # its estimate is not of these
        shown["scored"] = scored_words(row)
    return {"best": "best" if row["best"] else "", **shown}


def _cell(value: object) -> object:
    if isinstance(value, str):
        return escaped(value)  # cells are markdown to Prefect's pages
    return float(rounded(value)) if isinstance(value, float) else value


def _said(status: CampaignStatus, shown: Callable[[str], str] = one_line) -> str:
    """The status of a campaign, with names replaced as in `shown`."""
    leader = status.answer.of_best
    is_nobody = status.answer.outcome == "none" and status.answer.constraints
    nobody = "no candidate meets the constraints" if is_nobody else "nothing known yet"
    word = "named" if leaves_margin(status.answer) else "best"
    best = nobody if leader is None else f"{word} {shown(list_of(status.answer.listed))}"
    if status.answer.baseline is not None:
        best = shown(subject(status.answer))
    elif status.answer.listed_estimate is not None:
        best += f" {rounded(status.answer.listed_estimate)}"
    if status.answer.listed_held_out is not None:
        best += f" (held out {rounded(status.answer.listed_held_out)})"
    budgets = ", ".join(str(each) for each in status.budgets)
    return f"{shown(status.name)}: {headline(status.answer, status.state)}, {best}; {budgets}"
