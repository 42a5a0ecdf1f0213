import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from winnow.algorithms.best_duel.duel_record import ExampleDraws
from winnow.algorithms.protocols import round_rng


def test_every_example_is_drawn_once():
    draws, rng = ExampleDraws(50), round_rng(0, 0)
    assert sorted(draws.draw(rng) for _ in range(50)) == list(range(50))


@given(st.lists(st.integers(0, 19), max_size=19), st.integers(0, 100))
def test_the_draw_is_one_of_the_others_by_its_rank_whatever_the_order_of_the_taken(taken, seed):
    one, other = ExampleDraws(20), ExampleDraws(20)
    for example in taken:
        one.tell(example)
    for example in sorted(set(taken)):
        other.tell(example)
    free = [example for example in range(20) if example not in taken]
    expected = free[round_rng(seed, 0).integers(len(free))]
    assert one.draw(round_rng(seed, 0)) == other.draw(round_rng(seed, 0)) == expected


def test_what_was_drawn_and_then_told_is_taken_once():
    draws = ExampleDraws(3)
    example = draws.draw(round_rng(0, 0))
    assert not draws.is_told(example)
    draws.tell(example)
    assert draws.is_told(example)
    rest = [draws.draw(round_rng(1, t)) for t in range(2)]
    assert sorted([example, *rest]) == [0, 1, 2]


def test_draws_are_uniform_over_what_is_left():
    counts = np.zeros(6)
    for seed in range(3_000):
        draws = ExampleDraws(6)
        for example in (1, 4):
            draws.tell(example)
        counts[draws.draw(round_rng(seed, 0))] += 1
    assert counts[[1, 4]].tolist() == [0, 0]
    assert np.abs(counts[[0, 2, 3, 5]] - 750).max() < 120  # 5 standard deviations


def test_nothing_grows_with_the_number_of_examples():
    draws, rng = ExampleDraws(10**15), round_rng(0, 0)
    drawn = [draws.draw(rng) for _ in range(100)]
    assert len(set(drawn)) == 100
    assert max(drawn) > 10**13
