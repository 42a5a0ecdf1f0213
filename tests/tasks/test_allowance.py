"""The limit of an algorithm that counts every pair, where only answered ones are spent."""

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector
from winnow.tasks.campaign.budget import Allowance

ARMS, EXAMPLES, BATCH, BUDGET = 5, 40, 8, 60


def test_the_limit_is_raised_by_what_cost_nothing_once_all_was_asked():
    allowance = Allowance(20)
    assert (allowance.add(8, 5), allowance.limit) == (False, 20)
    assert (allowance.add(12, 12), allowance.limit, allowance.answered) == (True, 23, 17)
    assert (allowance.add(3, 3), allowance.limit, allowance.answered) == (False, 23, 20)


def test_without_a_budget_there_is_no_limit_and_answers_are_counted_all_the_same():
    allowance = Allowance(None)
    assert (allowance.add(8, 5), allowance.limit, allowance.answered) == (False, None, 5)


@given(st.lists(st.integers(0, BATCH), min_size=1, max_size=40), st.integers(1, 100))
def test_exactly_the_budget_is_answered_however_many_are_not(answers, budget):
    """Each entry is how many of a round's pairs would be answered; in the end all of them are."""
    allowance = Allowance(budget)
    asked = 0
    for wanted in [*answers, *[BATCH] * 100]:
        room = min(BATCH, allowance.limit - asked)
        if room == 0:
            break
        asked += room
        allowance.add(room, min(wanted, room))
        assert allowance.answered <= budget
    assert allowance.answered == budget


def played(selector_name, dead, kills=()):
    """Rounds of a campaign on arms of which some cannot be loaded, and what was decided after each.

    After the rounds in `kills`, the process is another one: its selector is told what was stored.
    """
    rounds, decisions = [], []

    def fresh():
        allowance = Allowance(BUDGET)
        for batch, _, answered in rounds:
            allowance.add(len(batch), answered)
        return allowance, told(allowance.limit)

    def told(limit):
        selector = create_selector(
            selector_name, n_arms=ARMS, n_examples=EXAMPLES, batch_size=BATCH, budget=limit
        )
        for batch, scores, _ in rounds:
            selector.tell(batch, scores)
        return selector

    allowance, selector = fresh()
    while len(batch := selector.ask(round_rng(3, len(rounds)))):
        is_dead = np.isin(batch.arms, dead)
        scores = np.where(is_dead, np.nan, ((batch.arms * 7 + batch.examples) % 3 == 0).astype(float))
        answered = int((~is_dead).sum())
        if allowance.add(len(batch), answered):
            selector = told(allowance.limit)
        selector.tell(batch, scores)
        rounds.append((batch, scores, answered))
        decisions.append(selector.decision())
        if len(rounds) in kills:
            allowance, selector = fresh()
    return rounds, decisions


@pytest.mark.parametrize("selector", ["row-mean", "ucb-e", "pulse"])
def test_models_that_cannot_be_loaded_spend_nothing_and_a_killed_campaign_asks_the_same(selector):
    rounds, decisions = played(selector, dead=[1, 4])
    assert sum(answered for *_, answered in rounds) == BUDGET
    assert sum(len(batch) for batch, *_ in rounds) > BUDGET
    assert decisions[-1].reason == "budget"
    told = np.bincount(np.concatenate([batch.arms for batch, *_ in rounds]), minlength=ARMS)
    assert (told[[1, 4]] >= 8).all()
    again, decided = played(selector, dead=[1, 4], kills=range(1, 100))
    assert [batch for batch, *_ in again] == [batch for batch, *_ in rounds]
    assert decided == decisions


def test_where_no_model_can_be_loaded_nothing_is_spent():
    rounds, decisions = played("row-mean", dead=range(ARMS))
    assert sum(answered for *_, answered in rounds) == 0
    assert decisions[-1].reason == "all-dropped"


def test_the_check_catches_an_algorithm_whose_limit_is_never_raised(monkeypatch):
    monkeypatch.setattr(Allowance, "add", lambda self, asked, answered: False)
    rounds, _ = played("row-mean", dead=[1, 4])
    spent = list(accumulate(answered for *_, answered in rounds))
    assert spent[-1] < BUDGET
