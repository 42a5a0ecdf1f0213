"""`winnow.propose`: run a campaign, and add prompts that are written after seeing its results."""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TypeAlias

from winnow.flows.api.results import Campaign
from winnow.flows.api.run import run
from winnow.flows.reports.default_database import reading
from winnow.storage.errors import StorageError
from winnow.storage.json_types import JsonView
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.typed_spec import TypedSpec
from winnow.tasks.spec.sections.prompts import PromptSpec

Proposals: TypeAlias = Iterable[str | Mapping[str, object] | PromptSpec]
"""Templates, or prompts with the keys of a campaign's file; names of prompts are replaced."""

WITH_ADDITIONS = ("champion", "race")

EXPECTED = {"additions": "expected"}
"""Selector parameter that keeps the error probability, whatever decides how often prompts are added."""

NAME = "proposal-{}-{}"
NAMED = re.compile(NAME.format("([0-9]+)", "[0-9]+"))


def propose(
    spec: TypedSpec,
    generator: Callable[[Campaign], Proposals],
    *,
    times: int = 3,
    progress: bool = False,
    trust: bool = False,
) -> Campaign:
    """Run a campaign, and let a generator add prompts to it, up to `times` times.

    Proposals do not raise the error probability of the answer about all prompts. This holds however the
    generator makes them and whenever it stops; see docs/how-to/add-candidates.md. The answer claims nothing
    about proposals on new examples, because they were written after seeing results on the campaign's
    examples. After an interruption, the same call continues; proposals added before count towards `times`.

    Args:
        spec: The campaign and its first prompts. Its selector must be champion or race. A budget covers all
            rounds of proposals together; without a budget, the number of comparisons is unlimited.
        generator: Function that receives the campaign so far, such as its `leaderboard()` and
            `comparisons()`, and returns a list of templates or prompts. They are named by list and position:
            `proposal-1-2` is the second prompt of the first list. Prompts that the campaign already has are
            left out. The call ends when a list has no new prompt.
        times: Maximum number of lists of proposals.
        progress: See `winnow.run`.
        trust: See `winnow.run`.

    Returns:
        The campaign with its answer.

    Raises:
        SpecError: If the selector accepts no added candidates, or a proposal is not a prompt.
    """
    spec, done = _resumed(_expecting(spec))
    campaign = run(spec, progress=progress, trust=trust)
    for number in range(done + 1, times + 1):
        new = _new(generator(campaign), spec.prompts, number)
        if not new:
            break
        spec = spec.replace(prompts=[*spec.prompts, *new])
        campaign = run(spec, progress=progress, trust=trust)
    return campaign


def _expecting(spec: TypedSpec) -> TypedSpec:
    """The spec, with its selector set to expect added candidates.

    Raises:
        SpecError: If this is not a `winnow.Spec`, or its selector accepts no added candidates.
    """
    if not isinstance(spec, TypedSpec):
        raise SpecError(
            f"spec is {type(spec).__name__}; give a winnow.Spec, such as winnow.Spec.from_file(path)"
        )
    if spec.selector.name not in WITH_ADDITIONS:
        raise SpecError(
            f"selector {spec.selector.name} accepts no added prompts; use {' or '.join(WITH_ADDITIONS)}"
        )
    params = {**EXPECTED, **spec.selector.params}
    return spec.replace(selector={"name": spec.selector.name, "params": params})


def _resumed(spec: TypedSpec) -> tuple[TypedSpec, int]:
    """The spec with the proposals of its stored campaign, and the number of their last list (0 if none)."""
    stored: list[JsonView] = []
    with suppress(StorageError), reading(spec.storage) as session:  # `run` reports the error
        stored = campaign_records.get_campaign(session, spec.name).spec["prompts"]
    added = [(found, each) for each in stored if (found := NAMED.fullmatch(each["name"]))]
    mine = {each.name for each in spec.prompts}
    prompts = [PromptSpec.model_validate(_set_keys(each)) for _, each in added if each["name"] not in mine]
    done = max((int(found[1]) for found, _ in added), default=0)
    return spec.replace(prompts=[*spec.prompts, *prompts]) if prompts else spec, done


def _new(proposals: Proposals, prompts: list[PromptSpec], number: int) -> list[PromptSpec]:
    """The proposals of a list that the campaign does not have, with names for the list's number.

    Raises:
        SpecError: If a proposal is not a prompt.
    """
    texts = [_unnamed(each) for each in prompts]
    found: list[PromptSpec] = []
    if isinstance(proposals, str | Mapping):
        raise SpecError("the generator returned one prompt; return a list of prompts")
    if not isinstance(proposals, Iterable):
        raise SpecError(f"the generator returned {type(proposals).__name__}; return a list of prompts")
    for position, each in enumerate(proposals, 1):
        given = {"template": each} if isinstance(each, str) else each
        values = given.model_dump() if isinstance(given, PromptSpec) else given
        if not isinstance(values, Mapping):
            raise SpecError(
                f"the generator proposed {type(each).__name__}; return templates or winnow.Prompt"
            )
        try:
            prompt = PromptSpec.model_validate({**_set_keys(values), "name": NAME.format(number, position)})
        except ValueError as error:
            raise SpecError(f"the generator proposed an invalid prompt: {error}") from error
        if _unnamed(prompt) not in texts:
            texts.append(_unnamed(prompt))
            found.append(prompt)
    return found


def _set_keys(prompt: JsonView) -> dict[str, object]:
    """The keys of a prompt whose value is not None."""
    return {key: value for key, value in prompt.items() if value is not None}


def _unnamed(prompt: PromptSpec) -> dict[str, object]:
    return prompt.model_dump(exclude={"name"})
