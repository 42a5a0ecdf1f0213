"""Targets that a file spells as nobody writes an answer count in the form that people write, too."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries

from winnow.tasks.judges.pairwise.protocol import Duel
from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge, create_pair_judge
from winnow.tasks.judges.target_forms import have_forms, other_forms, with_forms
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import open_campaign, reopen_campaign


@pytest.mark.parametrize(
    ("target", "form"),
    [
        ("5.0", "5"), ("-12.0", "-12"), ("0.0", "0"), ("-0.0", "0"), ("1e+22", "1" + "0" * 22),
        ("0.10000000149011612", "0.1"), ("-2.700000047683716", "-2.7"), ("99999.8984375", "99999.9"),
        ("1.1000000199601345e-07", "1.1e-07"), ("True", "true"), ("TRUE", "true"), ("False", "false"),
        ("FALSE", "false"),
    ],
)  # fmt: skip
def test_a_target_has_the_form_that_people_write(target, form):
    assert other_forms(target) == (form,)
    assert with_forms(["x", target, form]) == ("x", target, form)
    assert have_forms([(), ("x", target)])


@pytest.mark.parametrize(
    "target",
    [
        "", "x", "5", "5.", ".5", "5.00", "05.0", "+5.0", "5.0 ", "1.0e5", "1e5", "0.1", "0.5", "2.5",
        "3.14159265", "1e+40", "1e999", "nan", "inf", "1_0.0", "\u0665.0", "true", "tRue", "v5.0", "5.0.0",
        "0.30000000000000004", "1234567.125", "0.0009765625", "1e-07",
    ],
)  # fmt: skip
def test_other_targets_have_no_other_form(target):
    assert other_forms(target) == ()
    assert with_forms([target, target]) == (target,)


@tries(300)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-1e6, max_value=1e6))
def test_a_form_is_the_same_number_of_32_bits(value):
    for form in other_forms(str(value)):
        assert np.float32(form) == np.float32(value)
        assert len(form) < len(str(value))


@tries(300)
@given(st.text() | st.from_regex(r"-?[0-9]+\.?[0-9]*(e[+-][0-9]+)?", fullmatch=True))
def test_forms_are_made_of_any_text(text):
    assert all(form != text and other_forms(form) == () for form in other_forms(text))


def score(judge, output, targets, **known):
    params = {"choice": {"options": ["5", "6"]}, "regex": {"pattern": "^(.*)$"}}.get(judge, {})
    return create_judge(judge, **params).judge(Sample(output=output, targets=targets, **known)).score


TEXT = ["exact", "normalised", "contains", "regex", "f1", "squad"]


@pytest.mark.parametrize("judge", [*TEXT, "numeric", "choice"])
def test_judges_of_text_and_numbers_take_either_form(judge):
    assert score(judge, "5", ["5.0"], has_forms=True) == 1.0
    assert score(judge, "6", ["5.0"], has_forms=True) == 0.0
    if judge != "choice":
        assert score(judge, "5.0", ["5.0"], has_forms=True) == 1.0
        assert score(judge, "0.1", ["0.10000000149011612"], has_forms=True) == 1.0
    if judge in TEXT:
        assert score(judge, "true", ["True"], has_forms=True) == 1.0


def test_without_the_rule_verdicts_are_as_before():
    assert score("exact", "5", ["5.0"]) == 0.0
    assert score("choice", "5", ["5.0"]) is None


def test_a_choice_that_is_a_target_as_it_stands_is_the_only_one():
    for choices, right in ((["5", "5.0"], 0.0), (["5", "6"], 1.0)):
        weighed = Sample(
            output="", targets=["5.0"], choices=choices, loglikelihoods=[-1.0, -2.0], has_forms=True
        )
        assert create_judge("acc").judge(weighed).score == right


def test_where_all_targets_are_needed_no_form_is_needed_more():
    judge = create_judge("contains", match="all")
    assert judge.judge(Sample(output="True", targets=["True"], has_forms=True)).score == 1.0


def test_parts_of_judges_and_scorers_of_duels_have_the_rule_too():
    parts = create_judge("all", judges=[{"type": "exact"}, {"type": "numeric"}])
    assert parts.judge(Sample(output="5", targets=["5.0"], has_forms=True)).score == 1.0
    judge = create_pair_judge("rules", scorer={"type": "exact"}, both_wrong="tie")
    duel = Duel(question="", answer_a="5", answer_b="4", targets=["5.0"], seed=0)
    assert judge.judge(duel).score == 0.5
    assert judge.judge(replace(duel, has_forms=True)).score == 1.0


CAMPAIGN = ["dataset.path=numbers.jsonl", "models[0].generate_config={}"]


@pytest.mark.parametrize(("targets", "has_rule"), [((1.0, "x"), True), ((1, "x"), False)])
def test_a_campaign_keeps_the_rule_that_it_began_with(campaign_file, database, folder, targets, has_rule):
    rows = [{"id": f"e{i}", "input": "q", "target": target} for i, target in enumerate(targets)]
    (folder / "numbers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = campaign_file(add=f"storage: {database.url}\n")
    checked = check_campaign_file(path, CAMPAIGN)
    assert checked.dataset.examples[0].targets == (str(targets[0]),)  # as it is, whatever counts
    stored = open_campaign(database, checked)
    assert stored.spec.get("target_forms", False) is has_rule
    assert reopen_campaign(database, "letters", database.url)[1].has_target_forms is has_rule
    begun_before = {key: value for key, value in stored.spec.items() if key != "target_forms"}
    assert not checked.begun_as(begun_before).has_target_forms
    assert "target_forms" not in checked.begun_as(begun_before).identity()
