"""Judges that compare outputs with targets, and datasets that lack them."""

import json
import re

import pytest

from winnow.tasks.errors import SpecError
from winnow.tasks.setup.check import without_targets
from winnow.tasks.setup.load import check_campaign_file


@pytest.fixture
def checked(campaign_file, folder):
    """Check the campaign with a judge, the examples of these places without a target."""

    def check(judge, lacking):
        rows = [json.loads(line) for line in (folder / "letters.jsonl").read_text().splitlines()]
        for place, row in enumerate(rows):
            row["target"] = [] if place in lacking else row["target"]
        (folder / "letters.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return check_campaign_file(campaign_file("judge: {type: contains}", f"judge: {judge}"))

    return check


@pytest.fixture
def with_targets(campaign_file, folder):
    """Check the campaign with a judge and these targets of its examples."""

    def check(judge, targets):
        rows = [json.loads(line) for line in (folder / "letters.jsonl").read_text().splitlines()]
        lines = [json.dumps({**row, "target": each}) for row, each in zip(rows, targets, strict=True)]
        (folder / "letters.jsonl").write_text("\n".join(lines))
        return check_campaign_file(campaign_file("judge: {type: contains}", f"judge: {judge}"))

    return check


COMPARING = [
    "{type: exact}",
    "{type: contains}",
    "{type: numeric, extract: '[0-9]+'}",
    "{type: regex, pattern: 'a+'}",
    "{type: f1}",
    "{type: math}",
    "{type: chrf}",
    "{type: similarity}",
]


@pytest.mark.parametrize("judge", COMPARING)
def test_where_no_example_has_a_target_nothing_is_begun(checked, judge):
    said = "dataset.fields.target: judge .* compares outputs with targets, and no example has one"
    with pytest.raises(SpecError, match=said):
        checked(judge, range(6))


def test_the_examples_without_one_are_named_where_others_have_one(checked):
    assert without_targets(checked("{type: exact}", [])) == ()
    assert [each.key for each in without_targets(checked("{type: exact}", [1, 4]))] == ["e1", "e4"]


@pytest.mark.parametrize(
    ("judge", "targets", "said"),
    [
        (
            "{type: choice, options: ['yes', 'no']}",
            ["bug", "billing", "feature", "bug", "billing", "feature"],
            "can read no target, such as 'bug' of example 'e0', and would score no output: it is none of "
            "the options; set judge.options: [bug, billing, feature]",
        ),
        ("{type: choice}", ["yes", "No", "no", "yes", "yes", "no"], "set judge.options: ['yes', 'No']"),
        ("{type: choice}", ["x1", "x2", "x3", "x4", "x5", "x6"], "add it to judge.options"),
        ("{type: numeric, extract: '[0-9]+'}", ["bug"] * 6, "it contains no number; choose exact or choice"),
        ("{type: math}", ["$$"] * 6, "no mathematics that math-verify reads; write it in LaTeX"),
        ("{type: math, target_format: text}", ["x^2"] * 6, "set judge.target_format: expression"),
    ],
)
def test_where_the_judge_can_read_no_target_nothing_is_begun(with_targets, judge, targets, said):
    with pytest.raises(SpecError, match=rf":17: judge: judge .*{re.escape(said)}"):
        with_targets(judge, targets)


@pytest.mark.parametrize(
    ("judge", "targets"),
    [
        ("{type: choice, options: ['yes', 'no']}", ["bug", "bug", "bug", "bug", "bug", "yes"]),
        ("{type: choice}", [["Paris", "B"]] * 6),
        ("{type: numeric}", ["bug", "bug", "bug", "bug", "bug", "12 bugs"]),
        ("{type: contains}", ["bug"] * 6),
    ],
)
def test_where_it_can_read_one_it_is_begun(with_targets, judge, targets):
    assert with_targets(judge, targets).dataset.examples


def test_a_judge_that_needs_none_is_content(checked):
    assert without_targets(checked("{type: json-schema, schema: {type: object}}", range(6))) == ()


def test_a_judge_that_may_run_code_or_ask_models_is_not_tried(checked):
    assert without_targets(checked("{type: all, judges: [{type: exact}]}", range(6))) == ()
