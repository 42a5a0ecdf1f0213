"""init, selectors, judges, schema: write a campaign's starter file, and list what it can contain."""

import os.path
import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from winnow.flows.cli.options import FIRST_OBJECTIVE, Json, ObjectiveChoice
from winnow.flows.reports.output import can_ask
from winnow.storage.json_types import JsonObject
from winnow.storage.objectives import OBJECTIVES, traits_of
from winnow.storage.plain_files import refuse_link_elsewhere
from winnow.tasks.errors import SpecError, WinnowError, unknown_name


def init(
    spec: Annotated[Path, typer.Argument(metavar="[SPEC]", help="The file to write.")] = Path(
        "campaign.yaml"
    ),
    objective: Annotated[
        ObjectiveChoice,
        typer.Option(metavar="OBJECTIVE", help=f"Objective of the campaign: {', '.join(ObjectiveChoice)}."),
    ] = FIRST_OBJECTIVE,
    provider: Annotated[
        str | None,
        typer.Option(
            metavar="PROVIDER",
            help="Provider of your models: openai, vllm, transformers, litellm, command, http, python.",
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Your examples; columns and judge are guessed from this file."),
    ] = None,
) -> None:
    """Write a starter file for a campaign; ask for missing options in a terminal."""
    if os.path.exists(spec):  # unlike `Path`'s, no error for a name that is too long
        raise SpecError(f"{spec} exists already; name another file, or remove it first")
    text = _starter(objective, provider, data, spec)
    try:
        refuse_link_elsewhere(spec)
        with spec.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise SpecError(f"{spec} exists already; name another file, or remove it first") from None
    except OSError as error:
        raise SpecError(f"{spec} cannot be written: {error.strerror}") from error
    print(f"wrote {spec}; name your models, prompts and data there, then: winnow validate {spec}")


def _starter(objective: str, provider: str | None, data: str | None, spec: Path) -> str:
    """Text of the starter file: for the user's models and data, or of an example if none are named."""
    asked: list[JsonObject] = []
    is_first = objective == FIRST_OBJECTIVE
    if is_first and provider is None and data is None and can_ask(sys.stdout):
        provider = typer.prompt(
            "Provider of your models (openai, vllm, transformers, litellm, command, http, python)?",
            default="openai",
        )
        asked = _asked_models(provider)
        data = typer.prompt(
            "Your examples (a .csv, .jsonl, .json or .parquet file; Enter for none)?", default=""
        )
    if provider is None and not data:
        return starter(objective)
    if not is_first:
        raise SpecError(f"--provider and --data apply only to objective {FIRST_OBJECTIVE.value}; remove them")
    from winnow.tasks.setup.starter_files import MODELS, starter_text

    provider = provider or next(iter(MODELS))
    if provider not in MODELS:
        raise SpecError(unknown_name("provider", provider, list(MODELS)))
    return starter_text(provider, data or None, str(spec), asked)


SERVED = "openai"
"""The provider whose models run on a server with a URL."""


def _asked_models(provider: str) -> list[JsonObject]:
    """Ask for the names and the server of the user's models; empty without names, and for agents."""
    from winnow.tasks.engines.known_providers import AGENTS
    from winnow.tasks.setup.starter_files import models_named

    if provider in AGENTS:
        return []
    server = ""
    if provider == SERVED:
        server = typer.prompt(
            "Server (its URL, http://HOST/v1, or openai for OpenAI's own)?",
            default="http://127.0.0.1:8000/v1",
        )
    names = typer.prompt("Your models, separated by commas (Enter for none)?", default="")
    return models_named(provider, [each.strip() for each in names.split(",") if each.strip()], server)


def starter(objective: str) -> str:
    """Text of the example campaign for this objective, from examples/."""
    return (files("winnow") / "examples" / f"{objective}.yaml").read_text("utf-8")


AllSelectors = Annotated[bool, typer.Option("--all", help="Also list baselines from papers.")]


def selectors(all_: AllSelectors = False, json: Json = False) -> None:
    """List the selectors (algorithms) that a campaign can use, with their parameters."""
    from winnow.algorithms.errors import AlgorithmError
    from winnow.algorithms.registry import describe, selector_names

    rows: list[Mapping[str, str]] = []
    for name in selector_names(baselines=all_):
        try:
            entry = describe(name)
        except AlgorithmError as error:  # of another package
            rows.append({"selector": name, "summary": str(error)})
            continue
        parameters = ", ".join(f"{each.name}={each.default}" for each in entry.parameters)
        rows.append(
            {
                "selector": name,
                "objective": entry.objective,
                "summary": entry.summary,
                "source": entry.source,
                "parameters": parameters,
            }
        )
    _print(rows, json)


def judges(json: Json = False) -> None:
    """List the judges that a campaign can use, with their parameters."""
    from winnow.tasks.judges import registry

    of_pairs = [each for each in OBJECTIVES if traits_of(each).compares_pairs]
    of_outputs = ", ".join(each for each in OBJECTIVES if each not in of_pairs)
    entries = [(of_outputs, registry.describe, name) for name in registry.judge_names()]
    entries += [
        (", ".join(of_pairs), registry.describe_pair_judge, name) for name in registry.pair_judge_names()
    ]
    rows: list[Mapping[str, str]] = []
    for objective, describe, name in entries:
        try:
            entry = describe(name)
        except WinnowError as error:  # of another package
            rows.append({"judge": name, "objective": objective, "summary": str(error)})
            continue
        parameters = ", ".join(
            each.name if each.required else f"{each.name}={each.default}" for each in entry.parameters
        )
        row = {"judge": entry.name, "objective": objective, "summary": entry.summary}
        if entry.scale is not None:
            row |= {"unit": entry.scale.unit, "score": entry.scale.formula}
        rows.append({**row, "parameters": parameters})
    _print(rows, json)


def _print(rows: Sequence[Mapping[str, str]], json: bool) -> None:
    from winnow.flows.reports.output import print_json, terminal_width
    from winnow.flows.reports.summary import hanging

    if json:
        print_json(rows)
        return
    width = terminal_width(sys.stdout)
    for row in rows:
        (_, name), *facts = row.items()
        print(name)
        for key, value in facts:
            if value:
                print("\n".join(hanging(f"  {key:<10} ", value, width)))


def schema(all_: AllSelectors = False) -> None:
    """Print the JSON schema of a campaign's file, for editors that complete and check YAML."""
    from winnow.algorithms.registry import selector_names
    from winnow.flows.reports.output import print_json
    from winnow.tasks.engines.providers import provider_names
    from winnow.tasks.judges.registry import judge_names, pair_judge_names
    from winnow.tasks.setup.json_schema import campaign_schema

    judges = sorted({*judge_names(), *pair_judge_names()})
    names = selector_names(baselines=all_)
    print_json(campaign_schema(selectors=names, judges=judges, providers=provider_names()))
