"""export: write a campaign to files for other tools, or to an experiment tracker."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.algorithms.state.plugin_registry import object_at
from winnow.flows.cli.options import DEFAULT_STORAGE, CampaignName, Json, ReadStorage
from winnow.flows.reports.default_database import reading
from winnow.tasks.campaign.look import Look
from winnow.tasks.errors import SpecError

if TYPE_CHECKING:
    from winnow.flows.reports.rows.writer import FileFormat


TRACKER_RUNS = "winnow.flows.reports.export.trackers.tracker_runs:write_runs"
"""Import path of the function that writes runs to experiment trackers."""


class FormatChoice(StrEnum):
    """File formats of the exported tables."""

    csv = "csv"
    jsonl = "jsonl"
    parquet = "parquet"


def export(
    name: CampaignName,
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="New or empty folder to write to.")
    ] = None,
    format_: Annotated[
        FormatChoice, typer.Option("--format", help="File format of the tables.")
    ] = FormatChoice.csv,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="PART", help="Part to export, such as a view; repeatable. Default: all."),
    ] = None,
    spreadsheet: Annotated[
        bool,
        typer.Option(
            "--spreadsheet",
            help="Put an apostrophe before csv values that Excel would read as formulas.",
        ),
    ] = False,
    mlflow: Annotated[
        str | None,
        typer.Option(metavar="URI", help="Write a run to MLflow: URI of its server, or sqlite:///FILE."),
    ] = None,
    experiment: Annotated[
        str, typer.Option(metavar="NAME", help="With --mlflow: name of the experiment.")
    ] = "winnow",
    wandb: Annotated[
        str | None,
        typer.Option(
            metavar="PROJECT",
            help="Write a run to Weights & Biases: PROJECT or ENTITY/PROJECT; with WANDB_MODE=offline, to a "
            "folder.",
        ),
    ] = None,
    storage: ReadStorage = DEFAULT_STORAGE,
    json: Json = False,
) -> None:
    """Write all results of a campaign to a folder, one file per view, or to an experiment tracker.

    Duels are also written as battles of LMArena, and scores as logs of Inspect. Outputs are written
    unchanged: if you open csv files of untrusted models in a spreadsheet, export them with --spreadsheet. A
    tracker receives the definition, metrics over rounds, the answer, the leaderboard and the report, but no
    outputs except the few in the report. If a campaign is exported again, the same run of the tracker is
    continued.
    """
    if folder is None and mlflow is None and wandb is None:
        raise SpecError("name a folder to write to, --mlflow URI or --wandb PROJECT")
    chosen: FileFormat = format_.value
    if spreadsheet and chosen != "csv":
        raise SpecError(f"--spreadsheet is for csv only: remove --spreadsheet or --format {chosen}")
    if folder is not None:
        _write_folder(name, folder, chosen, only or (), storage, spreadsheet=spreadsheet, json=json)
    if mlflow is not None or wandb is not None:
        object_at(TRACKER_RUNS)(name, storage, mlflow=mlflow, experiment=experiment, wandb=wandb)


def _write_folder(
    name: str,
    folder: Path,
    format_: "FileFormat",
    only: Sequence[str],
    storage: str,
    *,
    spreadsheet: bool,
    json: bool,
) -> None:
    from dataclasses import asdict

    from winnow.flows.reports.export.exporting import export as write_export
    from winnow.flows.reports.output import print_json
    from winnow.storage.records import campaigns as campaign_records

    with reading(storage) as session:
        campaign = campaign_records.get_campaign(session, name)
        parts = write_export(
            Look(session, campaign), folder, format_=format_, only=only, spreadsheet=spreadsheet
        )
    if json:
        print_json([asdict(part) for part in parts])
        return
    for part in parts:
        print(f"  {part.rows:>10,}  {part.file or part.note or f'no rows of {part.name}'}")
    print(f"wrote {folder}")
