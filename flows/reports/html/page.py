"""The answer, the leaderboard and all sections as one self-contained HTML page, without network access."""

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

from winnow.flows.reports.html.browser_output import pictures, printed
from winnow.flows.reports.html.figures.labels import readable, sentence
from winnow.flows.reports.html.figures.theme import narrow_script, themes
from winnow.flows.reports.html.model import Section
from winnow.flows.reports.html.sections.standard import sections_of
from winnow.flows.reports.output import in_place_of
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
"""Maximum length of names, in characters, beside which columns that repeat parts of a name are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell of the table."""

    text: str
    worth: float | None = None
    """The number by which the column is sorted; None for texts and unknown numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the table."""

    heading: str
    is_number: bool = False
    is_detail: bool = False
    """Whether a narrow page omits the column, because candidates' names contain its values; so does every
    page if all candidates have the same."""


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
    """The leaderboard's table, without columns that carry no information."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    best: Sequence[bool]
    """For each row, whether it is the leader."""


def leaderboard(look: Look) -> Leaderboard | None:
    """The table of a campaign, sorted by best estimate or lowest risk; None before the first round."""
    found = list(ask(look, "leaderboard"))
    if not any(row["scored"] or row["unscored"] for row in found):
        return None
    made_of = {each.name: each for each in campaign_records.candidates(look.session, look.record.id)}
    rows = [_cells(rank, row, made_of[row["candidate"]]) for rank, row in enumerate(found, 1)]
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


def _cells(rank: int, row: JsonView, made_of: NewCandidate) -> list[Cell]:
    guardrail = made_of.prompt.get("guardrail")
    prompt = [made_of.prompt.get("name"), None if guardrail is None else guardrail.get("name")]
    known = row["estimate"] is not None
    has_interval = known and row["lower"] is not None and row["upper"] is not None
    asked = row["scored"] + row["unscored"]
    return [
        Cell(text=str(rank) if known else UNKNOWN, worth=float(rank)),
        Cell(text=readable(row["candidate"])),
        Cell(text=readable(str(made_of.model.get("name", "")))),
        Cell(text=readable(" in ".join(each for each in prompt if each))),
        Cell(text=sampling_words(made_of.sampling)),
        Cell(text=rounded(row["estimate"]) if known else UNKNOWN, worth=row["estimate"]),
        Cell(
            text=span(row["lower"], row["upper"]) if has_interval else UNKNOWN,
            worth=row["lower"] if has_interval else None,
        ),
        Cell(
            text=scored_words(row) + (f" of {asked:,}" if row["unscored"] else ""),
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
    """The whole page.

    The template escapes every text. As a second protection, the page's policy permits only its own two
    scripts and no requests. The larger script, which draws the figures, is compressed to a third of its size.
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
    """The compressed library that draws the figures, and its source in a page's policy.

    Both are cached, because compression takes longer than the rest of a page.
    """
    plotly = get_plotlyjs()
    packed = base64.b64encode(gzip.compress(plotly.encode("utf-8"), mtime=0))
    return Markup(packed.decode()), _source(plotly)


def _around_names(answer: Answer, lines: Sequence[Line]) -> list[tuple[str, str, str]]:
    return [(word, *_around(named_winner(answer, (word, said)), said)) for word, said in lines]


def _around(name: str | None, said: str) -> tuple[str, str]:
    """The name at the beginning of a sentence, and the rest of the sentence, both made printable."""
    start = 0 if name is None else len(name)
    return readable(said[:start]), sentence(said[start:])


def cells(rows: Sequence[Row]) -> list[list[tuple[str, bool]]]:
    """The formatted values of a table by row, each with whether it is a number; formats as in a terminal."""
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
    """JSON text that cannot end the HTML element that contains it."""
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
    """Write a page, pictures, a PDF, or several of these, replacing earlier ones; return the written files.

    All contents are complete before the first file is written.

    Args:
        look: The campaign of the report.
        html: File of the page.
        png: Folder of the pictures; is created if it is missing.
        pdf: File of the page as it is printed.

    Raises:
        WinnowError: If pictures cannot be drawn, the page cannot be printed, or a file cannot be written.
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
        made |= {} if pdf is None else {pdf: printed(whole)}
    if png is not None:
        try:
            make_folder(png)
        except OSError as error:
            raise WinnowError(f"{png}: {error.strerror}; name a writable path") from error
    write_files(made)
    return list(made)


def write_files(made: Mapping[Path, bytes]) -> None:
    """Write complete files, replacing earlier ones.

    Raises:
        WinnowError: If a file cannot be written.
    """
    for path, content in made.items():
        with in_place_of(path) as beside:
            beside.write_bytes(content)
