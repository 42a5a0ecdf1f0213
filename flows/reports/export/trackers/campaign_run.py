"""Convert a campaign to a tracker's run: parameters, metrics over rounds, tags and files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path

from winnow.flows.reports.export.exporting import export
from winnow.flows.reports.html.page import write_report
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.answer.sentences.answer_lines import headline
from winnow.tasks.answer.sentences.winner import estimated_lead
from winnow.tasks.answer.status_lines import status_lines
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.status import CampaignStatus, campaign_status
from winnow.tasks.queries.views import answered_by, ask
from winnow.tasks.text.printable import printable

Scalar = str | int | float | bool

TABLES = ("leaderboard", "rounds", "curve", "costs")
"""Views exported next to the report, if the campaign has them."""
REPORT = "report.html"
TAG, FINAL = "winnow.", "final/"
"""Prefix of tag names, and prefix of metrics that a later export may not have."""
LONGEST = 500
"""Maximum characters of a parameter or tag."""
KEY_DIGITS = 24
"""Length of a run's key; trackers' own keys are at least as long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRun:
    """A campaign's data for trackers."""

    key: str
    """Key of lowercase letters and digits; the same in every export of this campaign."""
    name: str
    group: str | None
    """Name of the campaign's series; None if no schedule began the campaign."""
    params: Mapping[str, Scalar]
    """Parameters of the campaign's definition, which never change."""
    steps: Sequence[Mapping[str, float]]
    """Metrics after each finished round."""
    summary: Mapping[str, float]
    """Current metrics of the whole campaign."""
    tags: Mapping[str, str]
    """Short texts about the current answer; each key begins with `TAG`."""
    has_ended: bool
    note: str
    """The lines of the answer."""
    leaderboard: Sequence[Mapping[str, object]]
    files: Sequence[Path]
    """Paths of the report, the tables and the definition."""


def campaign_run(look: Look, folder: Path) -> CampaignRun:
    """Collect a campaign's current data for a tracker; its files are written to an empty folder."""
    status = campaign_status(look, in_full=True)
    return CampaignRun(
        key=sha256(f"{look.record.created_at.isoformat()} {look.record.name}".encode()).hexdigest()[
            :KEY_DIGITS
        ],
        name=printable(look.record.name),
        group=look.record.series,
        params=_params(look.record),
        steps=_steps(look),
        summary=_summary(status),
        tags=_tags(status),
        has_ended=status.state == "ended",
        note="\n".join(
            printable(f"{word}: {said}") for word, said in status_lines(status.answer, status.totals)
        ),
        leaderboard=list(ask(look, "leaderboard")),
        files=_files(look, folder),
    )


def _params(campaign: CampaignRecord) -> dict[str, Scalar]:
    spec = campaign.spec
    found: dict[str, object] = {
        "objective": campaign.objective,
        "seed": campaign.seed,
        "dataset": spec.get("dataset", {}).get("path"),
        "models": ", ".join(each["name"] for each in spec.get("models", [])),
        "prompts": ", ".join(each["name"] for each in spec.get("prompts", [])),
        "judge": spec.get("judge", {}).get("type"),
        "selector": spec["selector"]["name"],
        "batch_size": spec.get("batch_size"),
        **{f"selector.{key}": value for key, value in spec["selector"]["params"].items()},
        **{f"stopping.{key}": value for key, value in spec["stopping"].items()},
        **{f"version.{key}": value for key, value in campaign.versions.items()},
    }
    return {key: _scalar(value) for key, value in found.items() if value not in (None, "")}


def _scalar(value: object) -> Scalar:
    return value if isinstance(value, int | float) else printable(str(value))[:LONGEST]


def _steps(look: Look) -> list[dict[str, float]]:
    """Metrics per finished round: comparisons, and the leader's estimate and interval."""
    led = ask(look, "curve")
    planned = ask(look, "rounds")
    return [
        _numbers(
            {
                "comparisons": row["comparisons"],
                "scored_in_round": made["scored"],
                "estimate": row["estimate"],
                "lower": row["lower"],
                "upper": row["upper"],
            }
        )
        for row, made in zip_longest(led, planned)
        if row is not None and made is not None
    ]


def _summary(status: CampaignStatus) -> dict[str, float]:
    answer, totals = status.answer, status.totals
    # Only if a single candidate is the answer: one interval would be taken for that of several.
    one = next((each for each in answer.candidates if (each.name,) == answer.listed), None)
    return _numbers(
        {
            "candidates": totals["candidates"],
            "examples": totals["examples"],
            f"{FINAL}estimate": answer.listed_estimate,
            f"{FINAL}lower": None if one is None else one.lower,
            f"{FINAL}upper": None if one is None else one.upper,
            f"{FINAL}held_out": answer.listed_held_out,
            f"{FINAL}lead": estimated_lead(answer),
            f"{FINAL}delta": answer.claim.delta,
            "spent/comparisons": totals["answered"],
            "spent/share_of_grid": status.share_of_grid if totals["grid"] else None,
            "spent/generations": totals["generations"],
            "spent/input_tokens": totals["input_tokens"],
            "spent/output_tokens": totals["output_tokens"],
            "spent/engine_seconds": totals["engine_seconds"],
            "spent/load_seconds": totals["load_seconds"],
        }
    )


def _numbers(found: Mapping[str, float | None]) -> dict[str, float]:
    return {key: float(value) for key, value in found.items() if value is not None}


def _tags(status: CampaignStatus) -> dict[str, str]:
    answer = status.answer
    found = {
        "state": status.state,
        "headline": headline(answer, status.state),
        "outcome": answer.outcome,
        "claim": answer.claim.kind,
        "best": ", ".join(answer.listed),
        "tied": ", ".join(answer.tied),
        "runner_up": answer.runner_up and answer.runner_up.name,
    }
    return {f"{TAG}{key}": printable(value)[:LONGEST] for key, value in found.items() if value}


def _files(look: Look, folder: Path) -> list[Path]:
    views = [view for view in TABLES if view in answered_by(look.record.objective)]
    tables = folder / "tables"
    export(look, tables, format_="csv", only=views)
    write_report(look, html=folder / REPORT, png=None)
    return [folder / REPORT, *sorted(tables.iterdir())]
