"""query: print rows of a campaign's views, or of a SQL query."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from winnow.flows.cli.options import DEFAULT_STORAGE, Json, OneCampaign, ReadStorage
from winnow.flows.reports.default_database import reading
from winnow.flows.reports.rows.writer import Format, print_rows
from winnow.flows.reports.sql_answers import MIB, Bounds, answered
from winnow.storage.json_types import Row
from winnow.tasks.campaign.look import Look
from winnow.tasks.errors import SpecError, unknown_name
from winnow.tasks.queries.views import VIEWS, ask, columns_of
from winnow.tasks.text.phrases import DIGEST, example_name

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

# mypy cannot infer the members of a StrEnum made by a call.
FormatChoice = StrEnum("FormatChoice", {name: name for name in get_args(Format)})  # type: ignore[misc]
FOR_PEOPLE = FormatChoice("table")
SHOWN_WITH_WARNINGS = ("leaderboard", "coverage")
"""Views below which a terminal shows warnings about candidates' outputs."""
SHOWN_BY = "--columns NAME,... or --format csv"
"""Options that show columns that do not fit into the terminal."""


def _require_view(context: typer.Context, view: str | None) -> str | None:
    if view is None or view in VIEWS:
        return view
    if (name := context.params.get("name")) in VIEWS:
        raise SpecError(f"the campaign comes before the view: winnow query {view} {name}")
    raise SpecError(unknown_name("view", view, VIEWS))


def query(
    name: OneCampaign = None,
    view: Annotated[
        str | None,
        typer.Argument(
            metavar="[VIEW]",
            help=f"View to print: {', '.join(VIEWS)}.",
            autocompletion=lambda: [*VIEWS],
            callback=_require_view,
        ),
    ] = None,
    sql: Annotated[
        str | None, typer.Option(metavar="SELECT", help="Run a read-only SQL query instead.")
    ] = None,
    series: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="List the campaigns of a schedule instead, with changes of the winner."
        ),
    ] = None,
    format_: Annotated[
        FormatChoice,
        typer.Option("--format", metavar="FORMAT", help=f"Output format: {', '.join(FormatChoice)}."),
    ] = FOR_PEOPLE,
    json: Json = False,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to a file.")] = None,
    columns: Annotated[
        str,
        typer.Option(metavar="NAME,...", help="Columns to show, in this order, however wide the table gets."),
    ] = "",
    candidate: Annotated[str | None, typer.Option(help="Show only this candidate's comparisons.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of comparisons.")] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="Time limit of --sql, in seconds.")] = 600.0,
    mebibytes: Annotated[int, typer.Option(min=1, help="Maximum size of a --sql result, in MiB.")] = 1024,
    storage: ReadStorage = DEFAULT_STORAGE,
) -> None:
    """Print a view of a campaign, such as its leaderboard, comparisons or costs, or run SQL.

    Views of all campaigns include outputs (the single outputs of comparisons that have several, with scores),
    reuse (outputs reused from other campaigns) and history (changes of the winner since the last campaign on
    the same dataset).

    best-duel campaigns also have head-to-head and strengths (which candidate beats which), and judgments,
    judges, verdicts and agreement (how the judges behave). certify campaigns also have e-values (evidence
    over time), weights (reliance on the autoevaluator), agreement (of the autoevaluator with humans) and
    labels (given and wanted). route campaigns also have picks (prompts routed to each candidate).

    --series prints one row per campaign of a schedule, with changes of the winner and the numbers of new and
    reused generations. SQL statements run in a separate process, limited by --seconds and --mebibytes.
    """
    from winnow.storage.records import campaigns as campaign_records

    chosen = "json" if json else cast("Format", format_.value)
    wanted = [each.strip() for each in columns.split(",") if each.strip()]
    tell = partial(print_rows, format_=chosen, output=output, columns=wanted, shown_by=SHOWN_BY)
    if (sql is not None) + (series is not None) + (name is not None) > 1:
        raise SpecError("give only one of NAME, --series and --sql")
    if series is not None:
        from winnow.tasks.queries.schedule_history import series_rows

        with reading(storage) as session:
            tell(series_rows(session, series), view="history")
        return
    if sql is not None:
        bounds = Bounds(seconds=seconds, bytes=mebibytes * MIB, memory=max(512, 2 * mebibytes) * MIB)
        with answered(storage, sql, bounds) as (names, found):
            unique = _unique(names)
            tell((dict(zip(unique, row, strict=True)) for row in found), heading=unique)
        return
    if name is None or view is None:
        raise SpecError(f"name a campaign and one of {', '.join(VIEWS)}, or give --series or --sql")
    with reading(storage) as session:
        campaign = campaign_records.get_campaign(session, name)
        with ExitStack() as leaving:
            rows = ask(Look(session, campaign), view, candidate=candidate, limit=limit)
            heading = columns_of(rows)
            if close := getattr(rows, "close", None):  # before the session ends, even if rows remain
                leaving.callback(close)
            if chosen == FOR_PEOPLE:
                rows = _with_example_names(rows, session, campaign.dataset_id)
            tell(rows, view=view, heading=heading)
        if view in SHOWN_WITH_WARNINGS and chosen == FOR_PEOPLE:
            _warn(Look(session, campaign))


def _with_example_names(rows: Iterable[Row], session: "Session", dataset_id: int) -> Iterator[Row]:
    """Replace the digests of examples without ids by their numbers in the dataset."""
    from winnow.storage.records.datasets import example_keys

    numbers: dict[str, int] | None = None
    for row in rows:
        key = row.get("example")
        if not isinstance(key, str) or not DIGEST.fullmatch(key):
            yield row
            continue
        if numbers is None:
            numbers = {key: n for n, key in enumerate(example_keys(session, dataset_id))}
        yield {**row, "example": example_name(key, numbers[key])} if key in numbers else row


def _warn(look: Look) -> None:
    """Print warnings about candidates' outputs below a table."""
    from winnow.flows.reports.output import tell, terminal_width
    from winnow.flows.reports.summary import check_lines
    from winnow.tasks.queries.status import campaign_status
    from winnow.tasks.queries.warnings.from_outputs import output_warnings

    has_ended = campaign_status(look).state == "ended"
    for warning in output_warnings(look, has_ended=has_ended):
        tell("\n".join(check_lines(warning.sentence, terminal_width(sys.stderr))))


def _unique(names: Sequence[str]) -> list[str]:
    """Column names, with a number appended to repeated names."""
    found: list[str] = []
    for name in names:
        new, number = name, 2
        while new in found:
            new, number = f"{name}_{number}", number + 1
        found.append(new)
    return found
