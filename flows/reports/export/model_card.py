"""Write a section for a model card: a campaign's result, its confidence, and how to check it."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from winnow.flows.reports.output import atomic_replacement
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.answer.sentences.answer_lines import headline
from winnow.tasks.answer.sentences.clauses import estimated
from winnow.tasks.answer.status_lines import status_lines
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.held_out import scored_words
from winnow.tasks.queries.status import CampaignStatus, campaign_status
from winnow.tasks.queries.views import ask
from winnow.tasks.text.phrases import rounded, span
from winnow.tasks.text.printable import escaped

MOST_ROWS = 10
"""Maximum number of candidates in the table."""


def write_model_card(look: Look, path: Path) -> None:
    """Write a campaign's section of a model card to a file.

    Raises:
        WinnowError: If the file cannot be written, or is a database.
    """
    status = campaign_status(look, in_full=True)
    rows = list(ask(look, "leaderboard"))
    with atomic_replacement(path) as beside:
        beside.write_text(model_card(status, look.record, rows), encoding="utf-8")


def model_card(status: CampaignStatus, campaign: CampaignRecord, rows: list[dict[str, object]]) -> str:
    """A campaign's section of a model card in Markdown, with names escaped.

    Args:
        status: The campaign's status, in full.
        campaign: The campaign.
        rows: Rows of the campaign's leaderboard.
    """
    answer_lines = [
        f"- **{escaped(word)}**: {escaped(sentence)}"
        for word, sentence in status_lines(status.answer, status.totals)
    ]
    warnings = [f"- **check**: {escaped(warning.sentence)}" for warning in status.warnings]
    return "\n".join(
        [
            f"## Selection: {escaped(headline(status.answer, status.state))}",
            "",
            escaped(" ".join(status.headline_sentences())),
            "",
            f"From the {status.objective} campaign {escaped(status.name)} of Winnow, which compared "
            f"{status.totals['candidates']} candidates.",
            "",
            *answer_lines,
            *warnings,
            "",
            *_table(rows, f"estimated {estimated(status.answer)}"),
            "",
            "### How to check it",
            "",
            *_provenance(campaign),
            "",
        ]
    )


def _table(rows: list[dict[str, object]], value: str) -> list[str]:
    """Lines of the leaderboard as a Markdown table; `value` is the heading of the estimates."""
    lines = [
        f"| {escaped(str(row['candidate']))} | {_number(row['estimate'])} | {_interval(row)} "
        f"| {scored_words(row)} | {row['status']} |"
        for row in rows[:MOST_ROWS]
    ]
    rest = [f"\n{len(rows) - MOST_ROWS} more candidates are not shown."] if len(rows) > MOST_ROWS else []
    heading = f"| candidate | {value} | interval | scored | status |"
    return [heading, "|---|---|---|---|---|", *lines, *rest]


def _interval(row: Mapping[str, object]) -> str:
    lower, upper = row["lower"], row["upper"]
    return span(lower, upper) if isinstance(lower, float) and isinstance(upper, float) else "–"


def _number(value: object) -> str:
    return rounded(value) if isinstance(value, float | int) else "–"


def _provenance(campaign: CampaignRecord) -> list[str]:
    """List items with the facts that are needed to reproduce or check the decisions."""
    spec = dict(campaign.spec)
    digest = sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()
    versions = ", ".join(f"{name} {version}" for name, version in campaign.versions.items())
    dataset = spec.get("dataset", {}).get("path")
    facts = {
        "begun": f"{campaign.created_at:%Y-%m-%d} with seed {campaign.seed}",
        "dataset": dataset,
        "selector": spec["selector"]["name"],
        "judge": spec.get("judge", {}).get("type"),
        "definition": f"SHA-256 {digest} of its JSON with sorted keys, as winnow show {campaign.name} --json "
        "prints it under spec",
        "software": versions,
        "results": f"winnow db check verifies the stored rows; winnow report {campaign.name} shows the "
        "full report",
    }
    return [f"- {word}: {escaped(str(fact))}" for word, fact in facts.items() if fact]
