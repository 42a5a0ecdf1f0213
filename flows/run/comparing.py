"""Define a campaign by models, prompts and data; guess omitted settings from the data."""

import json
import os.path
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from winnow.flows.reports.output import tell
from winnow.storage.json_types import JsonObject, JsonView
from winnow.storage.objectives import OBJECTIVES
from winnow.storage.plain_files import read_text
from winnow.tasks.engines.chat import own_template
from winnow.tasks.errors import SpecError
from winnow.tasks.plugins.extras import missing_for
from winnow.tasks.setup.auto_epsilon import AUTO
from winnow.tasks.setup.guesses import columns_of, first_rows, judge_for, look_swapped, prompt_for, targets_in
from winnow.tasks.spec.shorthands import (
    DELTA,
    are_agents,
    crossed,
    is_openai,
    judge_of,
    models_of,
    short_name,
)

SMALLEST_ROUND = 32
"""Smallest batch size, unless the budget is smaller."""


@dataclass(frozen=True, kw_only=True)
class Examples:
    """The examples of a comparison, and guesses from them."""

    path: str
    fields: JsonObject
    targets: Sequence[Sequence[str]]
    images: Sequence[str] = ()
    """Columns whose images models are shown."""
    guessed: tuple[str, ...] = ()
    written: Path | None = None
    """File that examples of the command line were written to; None if no file was written."""


def examples_in(data: str, input_: str | None, target: str | None, images: Sequence[str] = ()) -> Examples:
    """Read the examples of a file; an input or target that is None is guessed.

    Args:
        data: Path of the file.
        input_: Name of the input column, or None.
        target: Name of the target column, or None.
        images: Names of columns with images.

    Raises:
        SpecError: If the file cannot be read, or a column does not exist or cannot be guessed.
    """
    rows = first_rows(data)
    columns = columns_of(rows, data, input_, target, images)
    guessed = []
    if input_ is None:
        guessed.append(f"input   the column {columns.input} (--input COLUMN)")
    if target is None:
        guessed.append(f"target  the column {columns.target} (--target COLUMN)")
    if look_swapped(rows, columns):
        tell(
            f"check: {columns.input} has few short values, and {columns.target} long texts that all differ; "
            f"if input and target are swapped, give --input {columns.target} --target {columns.input}"
        )
    return Examples(
        path=data,
        fields=columns.fields(),
        targets=targets_in(rows, columns.target),
        images=images,
        guessed=tuple(guessed),
    )


Part = str | JsonView
"""A model, a prompt or a judge: a text as on the command line, or its keys in a campaign's file."""


def campaign_values(
    asked: Examples,
    models: Sequence[Part],
    prompts: Sequence[Part],
    judge: Part | None,
    *,
    name: str,
    budget: int | None,
    storage: str | None,
) -> tuple[JsonObject, Examples]:
    """Values of a campaign's file that compares models and prompts, and the examples with all guesses.

    Args:
        asked: The examples.
        models: The models.
        prompts: Prompts, each a template, `@FILE` for a file with a template, or keys; if empty, a prompt is
            guessed.
        judge: The judge; guessed if None.
        name: Name of the campaign.
        budget: Maximum number of evaluations; None allows every candidate on every example.
        storage: URL of the results database; None uses the default.

    Raises:
        SpecError: If there is only one candidate, a model has an unknown form, or a prompt uses no column.
    """
    guessed = list(asked.guessed)
    written_models, written_prompts = _models(models), _prompts(prompts)
    if not written_prompts and not are_agents(written_models):
        template = prompt_for(str(asked.fields["input"]), asked.targets)
        written_prompts = [{"name": "prompt-1", "template": template}]
        guessed.append(f"prompt  {json.dumps(template, ensure_ascii=False)} (--prompt TEMPLATE)")
    if not asked.images:
        _require_a_column(written_prompts, str(asked.fields["input"]))
    n_models = sum(len(crossed(each)) for each in written_models)
    if n_models * max(1, len(written_prompts)) < 2:
        raise SpecError("only one candidate to compare; give a second --model or --prompt")
    if judge is None:
        judge, why = judge_for(asked.targets)
        guessed.append(f"judge   {judge}: {why} (--judge JUDGE)")
    values = {
        "name": name,
        "objective": OBJECTIVES[0],
        **({} if storage is None else {"storage": storage}),
        "models": written_models,
        **({"prompts": written_prompts} if written_prompts else {}),
        "dataset": {
            "path": asked.path,
            "fields": asked.fields,
            **({"images": list(asked.images)} if asked.images else {}),
        },
        "judge": _judge(judge),
        "selector": {"name": "champion"},
        **({"batch_size": budget} if budget is not None and budget < SMALLEST_ROUND else {}),
        "stopping": {"delta": DELTA, "epsilon": AUTO, **({} if budget is None else {"budget": budget})},
    }
    return values, replace(asked, guessed=tuple(guessed))


def _models(given: Sequence[Part]) -> list[JsonObject]:
    """The models as keys of a file; models that run on this machine get an engine that is installed."""
    try:
        found = models_of(list(given))
    except ValueError as error:
        raise SpecError(f"--model {error}") from None
    assert isinstance(found, list)
    for each, written in zip(found, given, strict=True):
        if not isinstance(written, str):
            continue
        _require_known_form(written)
        if "provider" not in each:
            each["provider"] = "transformers" if missing_for("vllm", "vLLM") else "vllm"
        if "model_base_url" not in each and "model" in each and os.path.isdir(each["model"]):
            each["chat"] = own_template(Path(each["model"])) is not None
    order = ("name", "provider", "model")
    return [{**{key: each[key] for key in order if key in each}, **each} for each in found]


def _require_known_form(model: str) -> None:
    """Refuse a single word that is not a folder, because it does not say where the model is.

    Raises:
        SpecError: If the word is refused; the message lists the valid forms.
    """
    if any(mark in model for mark in "/:") or is_openai(model) or os.path.isdir(model):
        return
    raise SpecError(
        f"--model {model}: there is no folder {model}; write openai:{model} (OpenAI's server), "
        f"http://HOST/v1#{model} (another server), a checkpoint's folder with its path, or "
        f"OWNER/{model} (Hugging Face)"
    )


def _prompts(given: Sequence[Part]) -> list[JsonObject]:
    """The prompts as keys of a file; a prompt from a file has the file's name, others have numbers."""
    found: list[JsonObject] = []
    for number, each in enumerate(given, 1):
        if isinstance(each, Mapping):
            found.append(dict(each))
            continue
        name, template = f"prompt-{number}", each
        if each.startswith("@"):
            path = Path(each[1:])
            try:
                name, template = short_name(path.stem), read_text(path).removesuffix("\n")
            except (OSError, UnicodeDecodeError) as error:
                why = getattr(error, "strerror", None) or "it is not UTF-8 text"
                raise SpecError(f"--prompt {each}: the file cannot be read: {why}") from None
        taken = {prompt["name"] for prompt in found}
        found.append({"name": name if name not in taken else f"{name}-{number}", "template": template})
    return found


def _require_a_column(prompts: Sequence[JsonObject], input_: str) -> None:
    """Refuse a template that is the same for every example.

    Raises:
        SpecError: If a template uses no column; the message says how a template refers to the input.
    """
    for each in prompts:
        if "template" in each and not any(mark in each["template"] for mark in ("{{", "{%")):
            raise SpecError(
                f"{each['name']} uses no column, so every example would get the same prompt: "
                f"{reprlib.repr(each['template'])}; write {{{{ {input_} }}}} where the input belongs"
            )


def _judge(given: Part) -> object:
    """The judge: a shorthand, or its type and parameters as a campaign's file has them."""
    if isinstance(given, Mapping) or not given.lstrip().startswith("{"):
        return judge_of(given)
    try:
        found = yaml.safe_load(given)
    except yaml.YAMLError:
        found = None
    if not isinstance(found, dict):
        raise SpecError(
            f"--judge {given}: write a name, FILE.py:FUNCTION, or a mapping such as '{{type: exact}}'"
        )
    return found
