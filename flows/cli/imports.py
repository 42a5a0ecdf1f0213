"""import: store finished runs of other tools as campaigns."""

import json
import os.path
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.flows.cli.options import SpecStorage, Verbose
from winnow.tasks.errors import SpecError

if TYPE_CHECKING:
    from winnow.storage.json_types import JsonObject
    from winnow.tasks.finished_runs.gather import FinishedRun

app = typer.Typer(
    name="import",
    help="Read finished runs of other tools, and compare their candidates.",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def imports() -> None:
    """Read finished runs of other tools, and compare their candidates."""


@app.command()
def scores(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]FILE...",
            help="Files to read: samples of lm-eval, logs of Inspect (.eval, .json), results of promptfoo, "
            "exports of Langfuse, or tables (.csv, .jsonl, .parquet). NAME= names a file's candidate.",
        ),
    ],
    name: Annotated[str, typer.Option(help="Name of the campaign, and of the two files to write.")],
    metric: Annotated[str | None, typer.Option(help="Metric to read, if a file has several scores.")] = None,
    filter_: Annotated[
        str | None, typer.Option("--filter", help="Filter of lm-eval to read, if a file has several.")
    ] = None,
    candidate: Annotated[
        str | None, typer.Option(metavar="FIELD", help="Column or field that names the candidate.")
    ] = None,
    example: Annotated[
        str | None, typer.Option(metavar="FIELD", help="Column or field that names the example.")
    ] = None,
    range_: Annotated[
        str,
        typer.Option(
            "--range", metavar="LOW,HIGH", help="Lowest and highest possible score; scaled to 0 and 1."
        ),
    ] = "0,1",
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Format: lm-eval, inspect, promptfoo, langfuse or table. Default: recognised by content.",
        ),
    ] = None,
    storage: SpecStorage = None,
    verbose: Verbose = False,
) -> None:
    """Store outputs and scores of a finished run as a campaign, and print which candidate is best.

    Two files are written: NAME.jsonl has one example per line, with the outputs and scores of all candidates;
    NAME.yaml is the campaign's file, for other commands, such as winnow gate NAME.yaml --baseline CANDIDATE
    --fork NEW_NAME. No output is generated or judged.
    """
    from winnow.flows.run.launch import launching, run_stored_campaign
    from winnow.tasks.finished_runs.gather import read_run
    from winnow.tasks.finished_runs.scored_output import Choice
    from winnow.tasks.setup.load import check_campaign_file
    from winnow.tasks.setup.yaml_file import SpecFile, parse_spec

    data, spec = Path(f"{name}.jsonl"), Path(f"{name}.yaml")
    for path in (data, spec):
        if os.path.exists(path):
            raise SpecError(f"{path} is there already; give another --name, or run it with winnow run {spec}")
    choice = Choice(metric=metric, filter=filter_, candidate=candidate, example=example)
    run = read_run(files, choice, format_=format_, range_=_range(range_))
    values = run.spec(name, str(data), storage)
    parse_spec(SpecFile(spec, values))  # before a file is written
    _write(run, data, spec, values)
    print(_summary(run))
    with launching() as launch:
        checked = check_campaign_file(str(spec), [])
        raise typer.Exit(run_stored_campaign(launch.store(checked), is_brief=not verbose))


def _range(given: str) -> tuple[float, float]:
    try:
        low, high = map(float, given.split(","))
    except ValueError:
        raise SpecError(f"--range {given}: write two numbers, such as --range 1,5") from None
    if not low < high:
        raise SpecError(f"--range {given}: write the lowest score first, such as --range 1,5")
    if not isfinite(high - low):
        raise SpecError(f"--range {given}: write two finite numbers, such as --range 1,5")
    return low, high


def _write(run: "FinishedRun", data: Path, spec: Path, values: "JsonObject") -> None:
    import yaml

    try:
        with data.open("x", encoding="utf-8") as file:
            for row in run.rows():
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        with spec.open("x", encoding="utf-8") as file:
            yaml.safe_dump(values, file, sort_keys=False, allow_unicode=True)
    except OSError as error:
        raise SpecError(f"{error.filename} cannot be written: {error.strerror}") from error


def _summary(run: "FinishedRun") -> str:
    scored = sum(cell.score is not None for cell in run.cells.values())
    repeated = sum(len(cell.scores) > 1 for cell in run.cells.values())
    text = f"read {len(run.candidates)} candidates on {len(run.examples):,} examples: {scored:,} scores"
    if repeated:
        text += f", {repeated:,} of them means of repeated scores"
    if missing := len(run.candidates) * len(run.examples) - scored:
        text += f"; {missing:,} are missing"
    return "\n".join([text, *(f"{name} stands for candidate {each!r}" for each, name in run.renamed.items())])
