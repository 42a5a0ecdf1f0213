"""Write a campaign's report as one self-contained HTML page that needs no network access."""

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import yaml
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup
from plotly.io import to_json
from plotly.offline import get_plotlyjs

from winnow.flows.reports.html.browser_output import as_pdf, pictures
from winnow.flows.reports.html.figures.labels import readable, sentence
from winnow.flows.reports.html.figures.theme import narrow_script, themes
from winnow.flows.reports.html.model import Section
from winnow.flows.reports.html.sections.standard import sections_of
from winnow.flows.reports.output import atomic_replacement
from winnow.flows.reports.rows.text_table import column_of
from winnow.flows.reports.summary import lines_in_two, nothing_yet
from winnow.storage.json_types import JsonView, Row
from winnow.storage.plain_files import make_folder
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.record_types import CampaignRecord, NewCandidate
from winnow.tasks.answer.model import Answer
from winnow.tasks.answer.sentences.answer_lines import badge, headline, outcome_words
from winnow.tasks.answer.sentences.clauses import Line
from winnow.tasks.answer.status_lines import named_winner
from winnow.tasks.campaign.look import Look
from winnow.tasks.errors import WinnowError
from winnow.tasks.queries.factors import sampling_words
from winnow.tasks.queries.held_out import scored_words
from winnow.tasks.queries.status import CampaignStatus, campaign_status
from winnow.tasks.queries.views import ask
from winnow.tasks.text.phrases import rounded, span

UNKNOWN = "–"

LONGEST_BESIDE_DETAILS = 40
"""Maximum characters of candidates' names for which columns with parts of the names are also shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell of the leaderboard."""

    text: str
    worth: float | None = None
    """The number by which the page sorts the column; None for texts and unknown numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the leaderboard."""

    heading: str
    is_number: bool = False
    is_detail: bool = False
    """Whether the column's values are parts of candidates' names.

    A narrow page omits such a column, and every page does if all candidates have the same value."""


COLUMNS = (
    Column(heading="rank", is_number=True),
    Column(heading="candidate"),
    Column(heading="model", is_detail=True),
    Column(heading="prompt", is_detail=True),
    Column(heading="sampling", is_detail=True),
    Column(heading="estimate", is_number=True),
    Column(heading="interval", is_number=True),
    Column(heading="scored", is_number=True),
    Column(heading="status"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaderboard:
    """The leaderboard as a table, without columns that carry no information."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    best: Sequence[bool]
    """For each row, whether its candidate is the leader."""


def leaderboard(look: Look) -> Leaderboard | None:
    """A campaign's leaderboard, highest estimate or lowest risk first; None before the first round."""
    found = list(ask(look, "leaderboard"))
    if not any(row["scored"] or row["unscored"] for row in found):
        return None
    candidates = {each.name: each for each in campaign_records.candidates(look.session, look.record.id)}
    rows = [_cells(rank, row, candidates[row["candidate"]]) for rank, row in enumerate(found, 1)]
    has_room = max(len(row["candidate"]) for row in found) <= LONGEST_BESIDE_DETAILS
    kept = [
        number
        for number, column in enumerate(COLUMNS)
        if any(row[number].text.strip(UNKNOWN) for row in rows)
        and (not column.is_detail or (has_room and len({row[number].text for row in rows}) > 1))
    ]
    return Leaderboard(
        columns=[COLUMNS[number] for number in kept],
        rows=[[row[number] for number in kept] for row in rows],
        best=[row["best"] for row in found],
    )


def _cells(rank: int, row: JsonView, candidate: NewCandidate) -> list[Cell]:
    guardrail = candidate.prompt.get("guardrail")
    prompt = [candidate.prompt.get("name"), None if guardrail is None else guardrail.get("name")]
    has_estimate = row["estimate"] is not None
    has_interval = has_estimate and row["lower"] is not None and row["upper"] is not None
    total = row["scored"] + row["unscored"]
    return [
        Cell(text=str(rank) if has_estimate else UNKNOWN, worth=float(rank)),
        Cell(text=readable(row["candidate"])),
        Cell(text=readable(str(candidate.model.get("name", "")))),
        Cell(text=readable(" in ".join(each for each in prompt if each))),
        Cell(text=sampling_words(candidate.sampling)),
        Cell(text=rounded(row["estimate"]) if has_estimate else UNKNOWN, worth=row["estimate"]),
        Cell(
            text=span(row["lower"], row["upper"]) if has_interval else UNKNOWN,
            worth=row["lower"] if has_interval else None,
        ),
        Cell(
            text=scored_words(row) + (f" of {total:,}" if row["unscored"] else ""),
            worth=float(row["scored"]),
        ),
        Cell(text=row["status"]),
    ]


RESOURCES = files("winnow.flows.reports.html")


def page(
    campaign: CampaignRecord,
    status: CampaignStatus,
    board: Leaderboard | None,
    sections: Sequence[Section],
) -> str:
    """Render the whole page as HTML.

    The template escapes every text. As a second protection, the page's Content-Security-Policy permits only
    its own two scripts and no requests. The larger script, Plotly, is compressed to a third of its size.
    """
    answer, (packed, plotly_source) = status.answer, _packed_plotly()
    first, further = lines_in_two(status)
    script = narrow_script() + (RESOURCES / "page.js").read_text("utf-8")
    return _template().render(
        campaign=campaign,
        status=status,
        headline=headline(answer, status.state),
        outcome=outcome_words(answer, status.state),
        sentences=[sentence(each) for each in status.headline_sentences()],
        badge=badge(answer),
        answer=_around_names(answer, first),
        further=_around_names(answer, further),
        board=board,
        sections=sections,
        nothing_yet=readable(nothing_yet(status)),
        definition=readable(yaml.safe_dump(dict(campaign.spec), sort_keys=False, allow_unicode=True)),
        versions=", ".join(f"{name} {version}" for name, version in campaign.versions.items()),
        themes=themes(),
        style=Markup((RESOURCES / "page.css").read_text("utf-8")),
        packed=packed,
        script=Markup(script),
        script_sources=f"{plotly_source} {_source(script)}",
    )


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"cells": cells, "as_json": _as_json, "figure_json": _figure_json}
    return environment.from_string((RESOURCES / "page.html.j2").read_text("utf-8"))


@cache
def _packed_plotly() -> tuple[Markup, str]:
    """Plotly's script, compressed and in base64, and its source in the Content-Security-Policy.

    The result is cached, because compression takes longer than the rest of a page.
    """
    plotly = get_plotlyjs()
    packed = base64.b64encode(gzip.compress(plotly.encode("utf-8"), mtime=0))
    return Markup(packed.decode()), _source(plotly)


def _around_names(answer: Answer, lines: Sequence[Line]) -> list[tuple[str, str, str]]:
    return [(word, *_around(named_winner(answer, (word, said)), said)) for word, said in lines]


def _around(name: str | None, said: str) -> tuple[str, str]:
    """Split a sentence into the name at its beginning (empty for None) and the rest, both printable."""
    start = 0 if name is None else len(name)
    return readable(said[:start]), sentence(said[start:])


def cells(rows: Sequence[Row]) -> list[list[tuple[str, bool]]]:
    """A table's values by row, formatted as in a terminal, each with whether it is a number."""
    columns = [column_of(name, rows, names_rows=False) for name in rows[0]]
    return [
        [(each.texts[number], each.is_number and bool(each.texts[number])) for each in columns]
        for number in range(len(rows))
    ]


def _as_json(value: object) -> Markup:
    return _inert(json.dumps(value))


def _figure_json(section: Section) -> Markup:
    assert section.figure is not None
    return _inert(to_json(section.figure, validate=False, engine="json"))


def _inert(text: str) -> Markup:
    """Escape JSON text, so that it cannot end the HTML element that contains it."""
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _source(script: str) -> str:
    """The Content-Security-Policy source that permits one of the page's own scripts."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def write_report(
    look: Look,
    *,
    html: Path | None = None,
    png: Path | None = None,
    pdf: Path | None = None,
) -> list[Path]:
    """Write a report as a page, pictures and a PDF, and return the written files.

    Existing files are replaced. All contents are complete before the first file is written.

    Args:
        look: The campaign of the report.
        html: File of the page; None writes no page.
        png: Folder of the pictures, created if missing; None writes no pictures.
        pdf: File of the PDF; None writes no PDF.

    Raises:
        WinnowError: If the browser cannot draw pictures or print the page, or a file cannot be written.
    """
    sections, made = sections_of(look), {}
    status = campaign_status(look, in_full=html is not None or pdf is not None)
    if png is not None:
        title = f"{status.name}: {status.headline_sentences()[0]}"
        made = {png / name: drawn for name, drawn in pictures(sections, title).items()}
    if html is not None or pdf is not None:
        board = leaderboard(look)
        whole = page(look.record, status, board, sections).encode("utf-8")
        made |= {} if html is None else {html: whole}
        made |= {} if pdf is None else {pdf: as_pdf(whole)}
    if png is not None:
        try:
            make_folder(png)
        except OSError as error:
            raise WinnowError(f"{png}: {error.strerror}; name a writable path") from error
    write_files(made)
    return list(made)


def write_files(made: Mapping[Path, bytes]) -> None:
    """Write files from path to content, replacing existing files.

    Raises:
        WinnowError: If a file cannot be written.
    """
    for path, content in made.items():
        with atomic_replacement(path) as beside:
            beside.write_bytes(content)
