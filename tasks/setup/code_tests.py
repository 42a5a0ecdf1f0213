"""Rendering the tests that programs are run against before anything runs; see `tasks.judges.code`."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import partial

from winnow.storage.json_types import JsonView
from winnow.tasks.candidates.template_grammar import TARGET
from winnow.tasks.data.datasets import Example
from winnow.tasks.errors import SpecError, TemplateError
from winnow.tasks.judges.code.judge import CodeJudge
from winnow.tasks.objectives.resolved import ResolvedCampaign
from winnow.tasks.setup.trial_renders import try_templates

_PARAMETERS = frozenset(each.name for each in fields(CodeJudge) if each.init)


def check_tests(checked: ResolvedCampaign) -> None:
    """Refuse a judge `code` whose templates fail on an example, or which has no tests for any.

    Raises:
        SpecError: With the example and what is wrong.
    """
    spec = checked.spec
    for place, params in _code_judges("judge", {"type": spec.judge.type, **spec.judge.params}):
        judge = CodeJudge(**{key: value for key, value in params.items() if key in _PARAMETERS})
        seen: list[str] = []
        try_templates([partial(_render, judge, place, seen)], checked.dataset.examples)
        are_labels = spec.objective == "certify" and TARGET in judge.variables
        if not any(seen) and not are_labels:
            raise SpecError(
                "none of the examples has tests; name the field that holds them", f"{place}.tests"
            )


def _render(judge: CodeJudge, place: str, seen: list[str], example: Example) -> None:
    try:
        seen.append(judge.rendered(example.fields, example.targets, example.key)["tests"].strip())
    except TemplateError as error:
        raise SpecError(error.message, (error.path or "judge").replace("judge", place, 1)) from error


def _code_judges(place: str, value: object) -> Iterator[tuple[str, JsonView]]:
    """The judges `code` of a judge's spec with their places, those within it too."""
    if isinstance(value, Mapping):
        if value.get("type") == "code":
            yield place, value
        for key, inner in value.items():
            yield from _code_judges(f"{place}.{key}", inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _code_judges(f"{place}[{index}]", inner)
