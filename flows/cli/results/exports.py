"""export: a campaign as files for other tools."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.flows.cli.options import DEFAULT_STORAGE, CampaignName, Json, ReadStorage
from winnow.flows.reports.open_readonly import reading
from winnow.tasks.errors import SpecError

if TYPE_CHECKING:
    from winnow.flows.reports.rows.writer import FileFormat


class FormatChoice(StrEnum):
    """Formats of tables in files."""

    csv = "csv"
    jsonl = "jsonl"
    parquet = "parquet"


def export(
    name: CampaignName,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is new or empty.")],
    format_: Annotated[FormatChoice, typer.Option("--format", help="Of the tables.")] = FormatChoice.csv,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="PART", help="A view, battles or inspect; may be repeated. All without it."),
    ] = None,
    spreadsheet: Annotated[
        bool,
        typer.Option(
            "--spreadsheet",
            help="Put an apostrophe before texts of csv that Excel and others would take for formulas.",
        ),
    ] = False,
    storage: ReadStorage = DEFAULT_STORAGE,
    json: Json = False,
) -> None:
    """Write everything a campaign found into a folder, one file for each view.

    Duels are written as battles of LMArena too, scores as logs of Inspect. Texts are written as models gave
    them: open csv of models you do not trust in a spreadsheet only with --spreadsheet.
    """
    from dataclasses import asdict

    from winnow.flows.reports.export.exporting import export as write_export
    from winnow.flows.reports.output import print_json
    from winnow.storage.records import campaigns as campaign_records

    chosen: FileFormat = format_.value
    if spreadsheet and chosen != "csv":
        raise SpecError(f"--spreadsheet is for csv, and {chosen} holds no formulas: leave one of them out")
    with reading(storage) as session:
        campaign = campaign_records.get_campaign(session, name)
        parts = write_export(
            session, campaign, folder, format_=chosen, only=only or (), spreadsheet=spreadsheet
        )
    if json:
        print_json([asdict(part) for part in parts])
        return
    for part in parts:
        print(f"  {part.rows:>10,}  {part.file or part.note or f'no rows of {part.name}'}")
    print(f"wrote {folder}")
