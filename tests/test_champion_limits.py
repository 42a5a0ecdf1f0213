"""What the champion benchmark states and keeps: its limits against slow counts and against real campaigns."""

from itertools import combinations

import numpy as np
import pytest

from tests.benchmarks.champion import bounds
from tests.benchmarks.champion.runs import ENTRANTS, fill, keep, read
from tests.benchmarks.champion.worlds import Table
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector


def test_the_least_is_that_of_the_definition():
    n_cells, moved, delta = 7, 2, 0.1
    missed = []
    for seen in range(n_cells):
        moves = list(combinations(range(n_cells), moved))
        missed.append(sum(min(move) >= seen for move in moves) / len(moves))
    after = next(k for k, share in enumerate(missed) if share <= delta / (1 - delta))
    high, low = missed[after - 1], missed[after]
    exact = (1 - delta) * (after - 1 + (high - delta / (1 - delta)) / (high - low))
    assert bounds._seen(n_cells, moved, delta) == pytest.approx(exact, rel=1e-12)


def test_cells_that_lack_little_count_for_less():
    whole, half = np.array([1.0] * 10 + [0.0] * 10), np.array([0.5] * 10 + [0.0] * 10)
    assert bounds._least(whole, 2.0, 0.05) == bounds._seen(10, 3, 0.05)
    assert bounds._least(half, 2.0, 0.05) == bounds._seen(10, 5, 0.05)
    assert bounds._least(half, 6.0, 0.05) == 0.0


def test_champion_needs_more_than_the_least_and_the_oracle_does_too():
    rng = np.random.default_rng(5)
    scores = (rng.random((6, 120)) < np.linspace(0.8, 0.3, 6)[:, np.newaxis]).astype(float)
    limits = bounds.limits_of(scores, 0.05)
    asked = []
    for seed in range(5):
        selector = create_selector("champion", n_arms=6, n_examples=120, delta=0.05, batch_size=8)
        asked.append(0)
        while len(batch := selector.ask(round_rng(seed, asked[-1]))):
            selector.tell(batch, scores[batch.arms, batch.examples])
            asked[-1] += len(batch)
    assert 0.0 < limits.least < limits.oracle < 100.0 * np.mean(asked) / scores.size


def test_campaigns_that_are_kept_go_on_and_those_of_other_code_or_cut_off_do_not_count(tmp_path):
    file, kept = tmp_path / "champion.csv", tmp_path / "kept.csv"
    scores = (np.random.default_rng(6).random((3, 100)) < [[0.9], [0.5], [0.1]]).astype(float)
    table, entrants = Table("three", scores), ENTRANTS[:1]
    fill(file, [table], entrants, seeds=2, minutes=60.0)
    played = read(file)
    other = file.read_text().replace(played[0].code, "of other code")
    file.write_text(other + file.read_text() + played[0].code)
    keep(file, kept)
    assert read(kept) == sorted(played)
    assert "of other code" not in kept.read_text()
    fill(kept, [table], entrants, seeds=3, minutes=60.0)
    assert [run.seed for run in read(kept)] == [0, 1, 2]
