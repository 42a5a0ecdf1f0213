"""Rendering prompts and tests of programs before anything runs: what fails does so at once."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from winnow.storage.json_types import JsonView
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.data.datasets import Example
from winnow.tasks.data.template_grammar import TARGET
from winnow.tasks.errors import SpecError, TemplateError
from winnow.tasks.judges.nested import judges_in

if TYPE_CHECKING:
    from winnow.tasks.judges.code.judge import CodeJudge

MOST = 20_000
"""Prompts that are tried of all, beside those of each template's first, last and longest example."""

MOST_SECONDS = 5.0
"""Seconds after which no further one is tried."""

Render = Callable[[Example], object]


def try_templates(
    templates: Sequence[Render], examples: Sequence[Example], clock: Callable[[], float] = time.monotonic
) -> int:
    """Render a sample of all templates x examples, or all; return the number of prompts.

    Args:
        templates: Each renders its prompt of an example.
        examples: At least one.
        clock: Seconds of a monotonic clock.

    Raises:
        TemplateError: From the first prompt that cannot be rendered.
    """
    end = clock() + MOST_SECONDS
    tried = 0
    for template, example in _sample(len(templates), examples):
        templates[template](examples[example])
        tried += 1
        if clock() > end:
            break
    return tried


def _sample(n_templates: int, examples: Sequence[Example]) -> Iterator[tuple[int, int]]:
    n = len(examples)
    if n_templates * n <= MOST:
        yield from ((template, example) for template in range(n_templates) for example in range(n))
        return
    sizes = [sum(map(len, map(str, each.fields.values()))) for each in examples]
    for example in dict.fromkeys((int(np.argmax(sizes)), 0, n - 1)):
        yield from ((template, example) for template in range(n_templates))
    drawn = np.random.default_rng(0).choice(n_templates * n, size=MOST, replace=False, shuffle=False)
    yield from ((int(place) // n, int(place) % n) for place in drawn)


def check_tests(checked: ResolvedCampaign) -> None:
    """Refuse a judge `code` whose templates fail on an example, or which has no tests for any.

    Raises:
        SpecError: With the example and what is wrong.
    """
    spec = checked.spec
    for place, params in judges_in("judge", spec.judge):
        if params.get("type") != "code":
            continue
        judge = _code_judge(params)
        seen: list[str] = []
        try_templates([partial(_render, judge, place, seen)], checked.dataset.examples)
        are_labels = spec.objective == "certify" and TARGET in judge.variables
        if not any(seen) and not are_labels:
            raise SpecError(
                "none of the examples has tests; name the field that holds them", f"{place}.tests"
            )


def _code_judge(params: JsonView) -> "CodeJudge":
    from winnow.tasks.judges.code.judge import CodeJudge  # with its sandbox, which few campaigns have

    known = {each.name for each in fields(CodeJudge) if each.init}
    return CodeJudge(**{key: value for key, value in params.items() if key in known})


def _render(judge: "CodeJudge", place: str, seen: list[str], example: Example) -> None:
    try:
        seen.append(judge.rendered(example.fields, example.targets, example.key)["tests"].strip())
    except TemplateError as error:
        raise SpecError(error.message, (error.path or "judge").replace("judge", place, 1)) from error
