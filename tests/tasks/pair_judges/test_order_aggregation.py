"""Orders, repeats and judges, over every small combination."""

from fractions import Fraction
from itertools import product

import pytest
from scripted_judges import duel, outcome, panel, play

from winnow.tasks.judges.pairwise.llm import aggregate, aggregate_orders

VALUES = (0.0, 0.5, 1.0)
SAID = {1.0: "[[A]]", 0.0: "[[B]]", 0.5: "[[C]]", None: "no idea"}

WINS_BOTH_OR_TIES = {
    (1.0, 1.0): 1.0, (1.0, 0.5): 0.5, (1.0, 0.0): 0.5,
    (0.5, 1.0): 0.5, (0.5, 0.5): 0.5, (0.5, 0.0): 0.5,
    (0.0, 1.0): 0.5, (0.0, 0.5): 0.5, (0.0, 0.0): 0.0,
}  # fmt: skip


@pytest.mark.parametrize(("orders", "expected"), WINS_BOTH_OR_TIES.items())
def test_an_answer_wins_if_it_wins_in_both_orders_and_the_mean_splits_the_difference(orders, expected):
    assert aggregate_orders(orders, "tie") == expected
    assert aggregate_orders(orders, "mean") == sum(orders) / 2


def test_probabilities_come_to_their_mean_where_both_orders_prefer_the_same():
    assert aggregate_orders([0.8, 0.6], "tie") == pytest.approx(0.7)
    assert aggregate_orders([0.8, 0.4], "tie") == 0.5
    assert aggregate_orders([0.8, 0.4], "mean") == pytest.approx(0.6)


def by_counting(values):
    """The majority rule in exact arithmetic on counts of votes."""
    for_a, for_b = sum(v > 0.5 for v in values), sum(v < 0.5 for v in values)
    half = Fraction(len(values), 2)
    return 1.0 if for_a > half else 0.0 if for_b > half else 0.5


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_a_majority_is_more_than_half_of_all(count):
    for values in product(VALUES, repeat=count):
        assert aggregate(values, "majority") == by_counting(values)
        assert aggregate(values, "mean") == pytest.approx(sum(values) / count)


def test_a_single_value_stands_as_it_is():
    assert aggregate([0.7], "majority") == aggregate([0.7], "mean") == 0.7


def test_aggregation_does_not_care_which_answer_is_called_a():
    for values in product((0.0, 0.25, 0.5, 0.875, 1.0), repeat=3):
        mirrored = [1.0 - value for value in values]
        for rule in ("majority", "mean"):
            assert aggregate(mirrored, rule) == pytest.approx(1.0 - aggregate(values, rule))
        for rule in ("tie", "mean"):
            assert aggregate_orders(mirrored[:2], rule) == pytest.approx(
                1.0 - aggregate_orders(values[:2], rule)
            )


@pytest.mark.parametrize("order_aggregation", ["tie", "mean"])
@pytest.mark.parametrize("always", ["[[A]]", "[[B]]"])
def test_a_judge_that_always_prefers_a_place_makes_a_tie(order_aggregation, always):
    assert outcome(panel(order_aggregation=order_aggregation), duel(), lambda call: always) == 0.5


@pytest.mark.parametrize("always", ["[[A]]", "[[B]]"])
def test_without_a_swap_a_judges_place_is_taken_for_a_preference(always):
    assert outcome(panel(position_swap=False), duel(), lambda call: always) == float(always == "[[A]]")


@pytest.mark.parametrize("order_aggregation", ["tie", "mean"])
@pytest.mark.parametrize("aggregation", ["majority", "mean"])
@pytest.mark.parametrize("min_valid", [1, 2, 3])
def test_the_panel_aggregates_orders_then_judges(order_aggregation, aggregation, min_valid):
    judge = panel(
        *("j1", "j2", "j3"),
        order_aggregation=order_aggregation,
        aggregation=aggregation,
        min_valid_judges=min_valid,
        max_reasks=0,
    )
    for judgments in product([(1.0, 1.0), (1.0, 0.5), (0.0, 1.0), (0.0, 0.0), (1.0, None)], repeat=3):
        said = dict(zip(["j1", "j2", "j3"], judgments, strict=True))

        def say(call, said=said):
            original, swapped = said[call.judge]
            if call.presentation_order == "original" or swapped is None:
                return SAID[original if call.presentation_order == "original" else None]
            return SAID[1.0 - swapped]

        verdict, _ = play(judge, duel(), say)
        valid = [
            (WINS_BOTH_OR_TIES[pair] if order_aggregation == "tie" else sum(pair) / 2)
            for pair in judgments
            if None not in pair
        ]
        if len(valid) < min_valid:
            assert verdict.reason == "too_few_judges"
        elif aggregation == "mean" or len(valid) == 1:
            assert verdict.score == pytest.approx(sum(valid) / len(valid))
        else:
            assert verdict.score == by_counting(valid)
