"""Options shared by several commands, and their shell completions."""

import json
import os
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.flows.reports.default_database import to_read
from winnow.flows.run.log_format import LogFormat, LogLevel
from winnow.storage.objectives import OBJECTIVES
from winnow.storage.text import url_in_home
from winnow.tasks.spec.stored_spec import DEFAULT_STORAGE as DEFAULT_STORAGE


def campaign_names(context: typer.Context, incomplete: str) -> list[str]:
    """Shell completion: names of the database's campaigns that begin with `incomplete`.

    The list is empty if the database cannot be read; the command itself reports that error.
    """
    from winnow.flows.reports.default_database import last_used, reading
    from winnow.storage.errors import StorageError
    from winnow.storage.records import campaigns as campaign_records
    from winnow.tasks.errors import WinnowError

    named = url_in_home(context.params.get("storage") or os.environ.get("WINNOW_STORAGE") or DEFAULT_STORAGE)
    try:
        with reading(last_used(named)) as session:
            names = [each.name for each in campaign_records.readable_campaigns(session)[0]]
    except (StorageError, WinnowError):
        return []
    return [name for name in names if name.startswith(incomplete)]


def _database_to_read(context: typer.Context, storage: str) -> str:
    """URL of the database to read; during shell completion without messages."""
    return storage if context.resilient_parsing else to_read(url_in_home(storage))


def _database_of_spec(storage: str | None) -> str | None:
    return None if storage is None else url_in_home(storage)


Storage = Annotated[
    str,
    typer.Option(
        "--storage",
        envvar="WINNOW_STORAGE",
        help="URL of the results database.",
        show_default=True,
        callback=url_in_home,
    ),
]
ReadStorage = Annotated[
    str,
    typer.Option(
        "--storage",
        envvar="WINNOW_STORAGE",
        help="URL of the results database. If the default one does not exist, the last one used in this "
        "folder is read.",
        show_default=True,
        callback=_database_to_read,
    ),
]
SpecStorage = Annotated[
    str | None,
    typer.Option(
        "--storage",
        envvar="WINNOW_STORAGE",
        help="URL of the results database; overrides the file's.",
        callback=_database_of_spec,
    ),
]
Fork = Annotated[
    str | None,
    typer.Option(metavar="NEW_NAME", help="Run as a new campaign of this name; stored outputs are reused."),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Number of processes; default: one per core.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
CampaignName = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of a campaign.", autocompletion=campaign_names)
]
OneCampaign = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="Name of a campaign.", autocompletion=campaign_names)
]
SpecPath = Annotated[str, typer.Argument(metavar="SPEC", help="A campaign's YAML file.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the file; repeatable."),
]
TrustOption = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Grant permissions without asking: send keys or notifications to new servers, run code of a "
        "model, judge or task, run model-written programs, read files outside the working folder.",
    ),
]

Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="Show all lines of the answer in a terminal, as winnow status does."
    ),
]

AllowMissing = Annotated[
    bool,
    typer.Option(
        "--allow-missing",
        help="Start without models that are unreachable. The other models keep the whole delta, and missing "
        "models can join later (execution.allow_missing).",
    ),
]

LogFormatOption = Annotated[
    LogFormat,
    typer.Option(
        "--log-format",
        envvar="WINNOW_LOG_FORMAT",
        help="Format of log lines on standard error; json is for programs.",
    ),
]
LogLevelOption = Annotated[
    LogLevel | None,
    typer.Option(
        "--log-level",
        envvar="WINNOW_LOG_LEVEL",
        metavar="LEVEL",
        help=f"Lowest level to log: {', '.join(LogLevel)}. Default: warning as text, info as json.",
    ),
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="NAME",
        help="Also accept requests for this host name, for example behind a proxy; repeatable.",
    ),
]
TokenOption = Annotated[
    bool,
    typer.Option("--token/--no-token", help="Require a token from readers (WINNOW_TOKEN, or a new one)."),
]

AllowAllZero = Annotated[
    bool,
    typer.Option(
        "--allow-all-zero",
        help="Accept an answer even if every score is 0, for very hard benchmarks "
        "(execution.allow_all_zero).",
    ),
]


def overrides_of(
    given: list[str] | None,
    *,
    fork: str | None = None,
    storage: str | None = None,
    allow_missing: bool = False,
    allow_all_zero: bool = False,
) -> list[str]:
    """Overrides of a file's keys as KEY=VALUE: those of --set, then those of options for one key."""
    options = (
        ("name", fork),
        ("storage", storage),
        ("execution.allow_missing", allow_missing or None),
        ("execution.allow_all_zero", allow_all_zero or None),
    )
    named = {key: value for key, value in options if value is not None}
    # Quoted, because YAML would read the name 2024 as a number.
    quoted = (f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in named.items())
    return [*(given or []), *quoted]


if TYPE_CHECKING:

    class ObjectiveChoice(StrEnum):
        """The objectives of campaigns."""
else:
    ObjectiveChoice = StrEnum("ObjectiveChoice", {each: each for each in OBJECTIVES})

FIRST_OBJECTIVE = ObjectiveChoice(OBJECTIVES[0])
