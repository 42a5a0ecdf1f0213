"""Rendering the tests of programs before anything runs: what fails does so at once."""

from functools import partial
from typing import TYPE_CHECKING, cast

from winnow.storage.objectives import traits_of
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.data.datasets import Example
from winnow.tasks.data.template_grammar import TARGET
from winnow.tasks.data.trial_renders import try_templates
from winnow.tasks.errors import SpecError, TemplateError
from winnow.tasks.judges.registry import create_judge, within

if TYPE_CHECKING:
    from winnow.tasks.judges.code.judge import CodeJudge

CODE = "code"
"""The type of the judge that runs programs."""


def check_tests(checked: ResolvedCampaign) -> None:
    """Refuse a judge `code` whose templates fail on an example, or which has no tests for any.

    Raises:
        SpecError: With the example and what is wrong.
    """
    spec = checked.spec
    for node in spec.judge.tree().walk():
        if node.type != CODE:
            continue
        place = node.place
        judge = cast("CodeJudge", within(node.params, place, create_judge).parts[0])
        seen: list[str] = []
        try_templates([partial(_render, judge, place, seen)], checked.dataset.examples)
        are_labels = traits_of(spec.objective).measures_risk and TARGET in judge.variables
        if not any(seen) and not are_labels:
            raise SpecError(
                "none of the examples has tests; name the field that holds them", f"{place}.tests"
            )


def _render(judge: "CodeJudge", place: str, seen: list[str], example: Example) -> None:
    try:
        seen.append(judge.rendered(example.fields, example.targets, example.key)["tests"].strip())
    except TemplateError as error:
        raise SpecError(error.message, (error.path or "judge").replace("judge", place, 1)) from error
