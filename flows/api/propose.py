"""`winnow.propose`: a campaign whose later prompts are written after seeing its results."""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TypeAlias

from winnow.flows.api.results import Campaign
from winnow.flows.api.run import run
from winnow.flows.reports.open_readonly import reading
from winnow.storage.errors import StorageError
from winnow.storage.json_types import JsonView
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.typed_spec import TypedSpec
from winnow.tasks.spec.sections.prompts import PromptSpec

Proposals: TypeAlias = Iterable[str | Mapping[str, object] | PromptSpec]
"""Templates, or prompts with the keys of a campaign's file, whose names are replaced."""

WITH_ADDITIONS = ("champion", "race")

EXPECTED = {"additions": "expected"}
"""With this parameter the error probability stays, whatever decides how often prompts are added."""

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

    Proposals do not raise the error probability of the answer about all prompts, however the generator makes
    them and whenever it stops; see docs/how-to/add-candidates.md. The answer claims nothing about
    proposals on new examples, because they were written after seeing results on these. Repeating the call
    continues after an interruption; proposals that joined before count.

    Args:
        spec: The campaign and its first prompts. Its selector is champion or race. A budget covers all rounds
            of proposals together; without one, comparisons are unlimited.
        generator: Receives the campaign so far, such as its `leaderboard()` and `comparisons()`, and returns
            templates or prompts. The second of the first list is named `proposal-1-2`. Proposals that the
            campaign already has are left out; the call ends when a list has no new one.
        times: Maximum number of lists of proposals.
        progress: Same as in `winnow.run`.
        trust: Same as in `winnow.run`.

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
    """The spec with a selector that expects additions.

    Raises:
        SpecError: If its selector accepts no added candidates.
    """
    if not isinstance(spec, TypedSpec):
        raise SpecError(
            f"spec is {type(spec).__name__}; give a winnow.Spec, such as winnow.Spec.from_file(path)"
        )
    if spec.selector.name not in WITH_ADDITIONS:
        raise SpecError(
            f"selector {spec.selector.name} takes no further prompts; use {' or '.join(WITH_ADDITIONS)}"
        )
    params = {**EXPECTED, **spec.selector.params}
    return spec.replace(selector={"name": spec.selector.name, "params": params})


def _resumed(spec: TypedSpec) -> tuple[TypedSpec, int]:
    """The spec with the proposals that its stored campaign has, and the number of their lists."""
    stored: list[JsonView] = []
    with suppress(StorageError), reading(spec.storage) as session:  # `run` says what is wrong
        stored = campaign_records.get_campaign(session, spec.name).spec["prompts"]
    joined = [(found, each) for each in stored if (found := NAMED.fullmatch(each["name"]))]
    mine = {each.name for each in spec.prompts}
    prompts = [PromptSpec.model_validate(_given(each)) for _, each in joined if each["name"] not in mine]
    done = max((int(found[1]) for found, _ in joined), default=0)
    return spec.replace(prompts=[*spec.prompts, *prompts]) if prompts else spec, done


def _new(proposals: Proposals, known: list[PromptSpec], number: int) -> list[PromptSpec]:
    """The proposals of a list that are not in use, named by its number.

    Raises:
        SpecError: If a proposal is not a prompt.
    """
    texts = [_unnamed(each) for each in known]
    found: list[PromptSpec] = []
    if isinstance(proposals, str | Mapping):
        raise SpecError("the generator returned one prompt; return a list of prompts")
    for position, each in enumerate(proposals, 1):
        given = {"template": each} if isinstance(each, str) else each
        values = given.model_dump() if isinstance(given, PromptSpec) else given
        if not isinstance(values, Mapping):
            raise SpecError(
                f"the generator proposed {type(each).__name__}; return templates or winnow.Prompt"
            )
        try:
            prompt = PromptSpec.model_validate({**_given(values), "name": NAME.format(number, position)})
        except ValueError as error:
            raise SpecError(f"the generator proposed no prompt: {error}") from error
        if _unnamed(prompt) not in texts:
            texts.append(_unnamed(prompt))
            found.append(prompt)
    return found


def _given(prompt: JsonView) -> dict[str, object]:
    """A prompt without the keys that are not set."""
    return {key: value for key, value in prompt.items() if value is not None}


def _unnamed(prompt: PromptSpec) -> dict[str, object]:
    return prompt.model_dump(exclude={"name"})
