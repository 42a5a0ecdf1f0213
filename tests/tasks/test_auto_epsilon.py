"""`epsilon: auto` is a number that follows from the number of examples, before the campaign is stored."""

import json
from pathlib import Path

import numpy as np
import pytest

import winnow
from winnow.flows.cli.start.specs import starter
from winnow.tasks.errors import SpecError
from winnow.tasks.setup import auto_epsilon as module
from winnow.tasks.setup.auto_epsilon import auto_epsilon
from winnow.tasks.setup.load import check_campaign_file

AUTO = ("delta: 0.05", "delta: 0.05, epsilon: auto")
A, B = "small/plain/greedy", "smaller/plain/greedy"


@pytest.mark.parametrize(
    ("n_examples", "epsilon"),
    [
        *((n, 0.05) for n in (1, 10, 100, 160, 197)),
        *((300, 0.04), (500, 0.03), (1000, 0.02), (2000, 0.01), (4000, 0.01), (100_000, 0.01)),
    ],
)
def test_epsilon_is_the_resolution_of_the_benchmark(n_examples, epsilon):
    assert auto_epsilon(n_examples) == epsilon


def test_it_never_rises_with_the_number_of_examples():
    found = [auto_epsilon(n) for n in range(1, 6000)]
    assert found == sorted(found, reverse=True)
    assert all(each == round(each, 2) for each in found)


def test_what_is_checked_and_stored_holds_the_number(campaign_file):
    checked = check_campaign_file(campaign_file(*AUTO))
    number = check_campaign_file(campaign_file("delta: 0.05", "delta: 0.05, epsilon: 0.05"))
    assert (checked.spec.stopping.epsilon, checked.has_auto_epsilon) == (0.05, True)
    assert "epsilon: auto is 0.05" in checked.size
    assert "auto" not in number.size
    assert json.dumps(checked.identity()) == json.dumps(number.identity())


def test_held_out_examples_count_and_a_file_without_epsilon_stays_at_0(campaign_file, monkeypatch):
    asked = []
    monkeypatch.setattr(module, "auto_epsilon", lambda n: asked.append(n) or 0.02)
    checked = check_campaign_file(campaign_file(*AUTO, add="holdout: 0.4\n"))
    assert (checked.n_selection_examples, asked, checked.epsilon) == (4, [6], 0.02)
    assert check_campaign_file(campaign_file()).epsilon == 0.0
    assert len(asked) == 1


def test_a_campaign_that_began_by_another_formula_keeps_its_number(campaign_file, monkeypatch):
    stored = check_campaign_file(campaign_file(*AUTO)).identity()
    monkeypatch.setattr(module, "auto_epsilon", lambda n: 0.03)
    resumed = check_campaign_file(campaign_file(*AUTO)).begun_as(stored)
    assert resumed.identity() == stored
    assert resumed.epsilon == 0.05
    assert resumed.tried == []  # its selector has another epsilon
    # A number in the file is what the file says.
    written = check_campaign_file(campaign_file("delta: 0.05", "delta: 0.05, epsilon: 0.02"))
    assert written.begun_as(stored).epsilon == 0.02


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"{name: ucb-e, params: {a: 1.0}}": f"{{name: gate, params: {{baseline: {A}}}}}"},
            "does not apply to a gate, where it is how much worse than the baseline passes; write a number",
        ),
        (
            {"{name: ucb-e, params: {a: 1.0}}": "{name: champion, params: {prefer: cost, costs: {}}}"},
            "does not apply to prefer: cost, where it is how much worse a cheaper candidate may be; write "
            "a number",
        ),
        (
            {"best-mean": "best-duel", "{name: ucb-e, params: {a: 1.0}}": "{name: round-robin}"},
            "is only for best-mean, and best-duel compares preferences; write a number, such",
        ),
        (
            {"best-mean": "route", "{name: ucb-e, params: {a: 1.0}}": "{name: lin-ucb}"},
            "epsilon does not apply to route; remove epsilon",
        ),
    ],
)
def test_other_questions_need_a_number(campaign_file, changes, said):
    path = Path(campaign_file(*AUTO))
    text = path.read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        check_campaign_file(str(path))
    assert said in str(caught.value)
    assert "stopping" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("Auto", "write auto, in small letters"),
        ("5%", "must be a number (got '5%'); write 0.05"),
        ("automatic", "must be a number (got 'automatic')"),
        ("1.0", "must be less than 1"),
        ("-0.1", "must be at least 0"),
        ("true", "must be a number"),
        ("[auto]", "must be a number"),
        (".nan", "must be a finite number"),
    ],
)
def test_another_word_or_number_is_refused_in_one_sentence(campaign_file, given, said):
    with pytest.raises(SpecError) as caught:
        check_campaign_file(campaign_file("delta: 0.05", f"delta: 0.05, epsilon: {given}"))
    assert said in str(caught.value)
    assert "stopping.epsilon" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_the_file_that_init_writes_asks_for_it():
    assert "epsilon: auto" in starter("best-mean")
    for objective in ("best-duel", "certify", "route"):
        assert "epsilon" not in starter(objective)


def played(epsilon, **settings):
    """A selection among three functions of numbers on 100 examples, and the epsilon it was made with."""
    scores = np.random.default_rng(0).random((3, 100)) < np.array([[0.7], [0.68], [0.4]])

    def score(candidate, example):
        return float(scores[candidate, example])

    return winnow.select(score, range(3), range(100), epsilon=epsilon, **settings)


@pytest.mark.parametrize("stored", [False, True])
def test_select_takes_the_resolution_of_its_examples(tmp_path, stored):
    settings = {"storage": f"sqlite:///{tmp_path / 'w.db'}"} if stored else {}
    found = played("auto", **settings)
    number = played(0.05, **settings)  # goes on with the same campaign where it is stored
    assert (found.epsilon, number.epsilon) == (0.05, 0.05)
    assert (found.comparisons, found.best, found.claim) == (number.comparisons, number.best, number.claim)
    assert "to within 0.05" in str(found)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"selector": "gate", "baseline": 0}, "does not apply to a gate"),
        ({"prefer": "cost", "costs": [1, 2, 3]}, "does not apply to prefer: cost"),
    ],
)
def test_select_asks_for_a_number_where_somebody_has_to_choose_it(settings, why):
    with pytest.raises(SpecError, match=f"epsilon: auto {why}.*; give a number, such as epsilon=0.02"):
        played("auto", **settings)
