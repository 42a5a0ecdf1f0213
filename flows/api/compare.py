"""`winnow.compare`: compare models and prompts on a data file, without a campaign's file."""

import reprlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from winnow.flows.api.call_checks import require_count, require_text
from winnow.flows.api.run import run
from winnow.flows.api.spec import Spec
from winnow.storage.json_types import JsonView
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.campaign import JudgeSpec
from winnow.tasks.spec.sections.models import ModelSpec
from winnow.tasks.spec.sections.prompts import PromptSpec
from winnow.tasks.spec.shorthands import short_name
from winnow.tasks.spec.stored_spec import DEFAULT_STORAGE

if TYPE_CHECKING:
    from winnow.flows.api.results import Campaign


def compare(
    *,
    data: str | Path,
    models: Sequence[str | ModelSpec] | str,
    prompts: Sequence[str | PromptSpec] | str = (),
    input: str | None = None,
    target: str | None = None,
    images: Sequence[str] | str = (),
    judge: str | JudgeSpec | None = None,
    budget: int | None = None,
    name: str | None = None,
    storage: str = DEFAULT_STORAGE,
    progress: bool = False,
    trust: bool = False,
) -> "Campaign":
    """Compare models and prompts on your examples, and find the best candidate.

    Columns, prompt and judge are guessed from the data if omitted, as in `winnow compare`. The same call
    again continues the campaign, or reads its answer if it has ended.

    Args:
        data: Path of the examples: a .csv, .jsonl, .json or .parquet file.
        models: Models, each "openai:NAME", "http://HOST/v1#SERVED-NAME", the folder of a checkpoint, a model
            id of the Hugging Face hub, or a `winnow.Model`.
        prompts: Prompts, each a template in which {{ COLUMN }} is replaced by a column's value, "@FILE" for a
            file with a template, or a `winnow.Prompt`.
        input: Name of the input column.
        target: Name of the column with the right answer.
        images: Names of columns with images that models are shown.
        judge: Name of a judge, or a `winnow.Judge`.
        budget: Maximum number of evaluations; None allows every candidate on every example.
        name: Name of the campaign; None uses the name of the data file.
        storage: URL of the results database.
        progress: Whether to write the guesses, and one line per round, to standard error.
        trust: See `winnow.run`.

    Returns:
        The campaign with its answer.

    Raises:
        SpecError: If an omitted argument cannot be guessed, an argument is invalid, or a campaign of this
            name began with another definition.
        WinnowError: If the campaign cannot continue.
        StorageError: If the database cannot be used, or another process runs the campaign.
    """
    from winnow.flows.reports.output import tell
    from winnow.flows.run.comparing import campaign_values, examples_in

    require_text("data", data, "the path of a .csv, .jsonl, .json or .parquet file")
    if budget is not None:
        require_count("budget", budget, at_least=1)
    columns = [images] if isinstance(images, str) else images
    asked = examples_in(str(data), input, target, columns)
    values, asked = campaign_values(
        asked,
        _parts("models", models),
        _parts("prompts", prompts),
        None if judge is None else _part("judge", judge),
        name=name or short_name(Path(data).name.partition(".")[0]),
        budget=budget,
        storage=storage,
    )
    if progress:
        for each in asked.guessed:
            tell(f"guessed {each}")
    return run(Spec(**values), progress=progress, trust=trust)


def _parts(what: str, given: Sequence[str | ModelSpec | PromptSpec] | str) -> list[str | JsonView]:
    if isinstance(given, str):
        return [given]
    if not isinstance(given, list | tuple):
        raise SpecError(f"{what} is {reprlib.repr(given)}; give a list")
    return [_part(f"{what}[{number}]", each) for number, each in enumerate(given)]


def _part(what: str, given: str | ModelSpec | PromptSpec | JudgeSpec) -> str | JsonView:
    from winnow.tasks.setup.written_files import as_in_a_file

    if isinstance(given, str):
        return given
    written = as_in_a_file(given)
    if not isinstance(written, dict):
        raise SpecError(f"{what} is {reprlib.repr(given)}; give a str, or winnow's class for it")
    return written
