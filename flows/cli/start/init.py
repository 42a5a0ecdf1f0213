"""init: a campaign's file to start from."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from winnow.flows.cli.options import ObjectiveChoice
from winnow.tasks.errors import SpecError


def init(
    spec: Annotated[Path, typer.Argument(metavar="[SPEC]", help="The file to write.")] = Path(
        "campaign.yaml"
    ),
    objective: Annotated[
        ObjectiveChoice, typer.Option(help="The question to ask.")
    ] = ObjectiveChoice.best_mean,
) -> None:
    """Write a campaign's file to start from."""
    try:
        with spec.open("x", encoding="utf-8") as file:
            file.write(starter(objective))
    except FileExistsError:
        raise SpecError(f"{spec} is there already; name another file, or remove it first") from None
    except OSError as error:
        raise SpecError(f"{spec} cannot be written: {error.strerror}") from error
    print(f"wrote {spec}; name your models, prompts and data there, then: winnow validate {spec}")


def starter(objective: str) -> str:
    """Return the text of the campaign's file in examples/ that asks this question."""
    return (files("winnow") / "examples" / f"{objective}.yaml").read_text("utf-8")
