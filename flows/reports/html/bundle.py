"""Write reports of all campaigns of a database to a folder for a web server: pages and an index."""

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from sqlalchemy.orm import Session

from winnow.flows.reports.html.figures.labels import readable
from winnow.flows.reports.html.page import RESOURCES, UNKNOWN, write_files, write_report
from winnow.flows.reports.output import tell
from winnow.storage.plain_files import make_folder
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.answer.model import CandidateStanding
from winnow.tasks.answer.sentences.answer_lines import badge, outcome_words, subject
from winnow.tasks.campaign.look import Look
from winnow.tasks.errors import WinnowError
from winnow.tasks.queries.status import CampaignStatus, campaign_status, left_out
from winnow.tasks.text.phrases import amount, percentage, rounded, span

INDEX = "index.html"
MOST_LETTERS = 60
"""Maximum characters of a campaign's name in its file name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRow:
    """A campaign's row in the index, with formatted values."""

    file: str
    name: str
    objective: str
    series: str
    outcome: str
    badge: str
    best: str
    estimate: str
    interval: str
    comparisons: str
    share: str
    begun: str


def write_bundle(session: Session, folder: Path, made_at: dt.datetime) -> list[Path]:
    """Write a page for each campaign, then the index; existing files are overwritten.

    Args:
        session: Session on the results database.
        folder: Folder to write to, created if missing.
        made_at: Time shown in the index.

    Returns:
        Paths of the written files; the index is last.

    Raises:
        WinnowError: If the database has no campaign, or a file cannot be written.
    """
    records, unreadable = campaign_records.readable_campaigns(session)
    wrong = [str(each) for each in unreadable]
    if not records and not wrong:
        raise WinnowError("there is no campaign to report; start one: winnow run SPEC")
    try:
        make_folder(folder)
    except OSError as error:
        raise WinnowError(f"{folder}: {error.strerror}; name a writable folder") from error
    rows, written = [], []
    for record in sorted(records, key=lambda each: (each.created_at, each.id), reverse=True):
        file = file_of(record)
        try:
            written += write_report(Look(session, record), html=folder / file, png=None)
            rows.append(_row(record, campaign_status(Look(session, record)), file))
        except campaign_records.UNREADABLE as error:
            wrong.append(f"campaign '{record.name}' {left_out(error)}")
    write_files({folder / INDEX: index_page(rows, made_at).encode("utf-8")})
    for sentence in wrong:
        tell(f"winnow: {sentence}")
    return [*written, folder / INDEX]


def file_of(record: CampaignRecord) -> str:
    """A unique file name for a campaign's page, valid on every web server."""
    slug = re.sub(r"[^a-z0-9]+", "-", record.name.lower()).strip("-")[:MOST_LETTERS]
    return f"{record.id}-{slug}.html"


def index_page(rows: Sequence[IndexRow], made_at: dt.datetime) -> str:
    """Render the index as HTML without scripts; names are escaped."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string((RESOURCES / "index.html.j2").read_text("utf-8")).render(
        rows=rows, made_at=made_at, style=Markup((RESOURCES / "page.css").read_text("utf-8"))
    )


def _row(record: CampaignRecord, status: CampaignStatus, file: str) -> IndexRow:
    answer = status.answer
    # Show no estimate next to several names or a baseline, because it would be taken for theirs.
    best = answer.of_best if subject(answer) == answer.best else None
    return IndexRow(
        file=file,
        name=readable(status.name),
        objective=status.objective,
        series=readable(record.series or ""),
        outcome=outcome_words(answer, status.state),
        badge=badge(answer) or "",
        best=readable(subject(answer)),
        estimate=UNKNOWN if best is None or best.estimate is None else rounded(best.estimate),
        interval=_interval(best),
        comparisons=amount(status.totals["answered"]),
        share=percentage(status.share_of_grid) if status.totals["grid"] else UNKNOWN,
        begun=f"{record.created_at:%Y-%m-%d %H:%M}",
    )


def _interval(best: CandidateStanding | None) -> str:
    if best is None or best.lower is None or best.upper is None:
        return UNKNOWN
    return span(best.lower, best.upper)
