"""The expression that an output gives as its answer, as models write formulas and solutions."""

import json
from functools import cache
from pathlib import Path

import pytest

from winnow.tasks.judges.isolated.math import verifier
from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.rules.reading import formulas

ROWS = json.loads((Path(__file__).parent / "formulas_in_outputs.json").read_text())


@cache
def judge():
    return verifier("expression")


@pytest.mark.parametrize(("output", "target", "score"), ROWS)
def test_the_answer_of_an_output_is_compared_with_the_target(output, target, score):
    assert (judge()(Sample(output=output, targets=[target])).score or 0.0) == score


def test_joined_boxes_count_only_where_the_target_has_several_values():
    output = "\\boxed{3} and \\boxed{4}"
    assert formulas.answer(output, several=False) == ["4"]
    assert formulas.answer(output, several=True) == ["4", "3,4"]


def test_a_box_that_is_not_closed_ends_with_its_formula():
    assert formulas.answer("$\\boxed{\\frac{3}{4}$ and more", several=False) == ["\\frac{3}{4}"]
