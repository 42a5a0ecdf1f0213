import numpy as np
import pytest

from winnow.algorithms.bounds.freedman import freedman_radius
from winnow.algorithms.errors import InvalidParameter


@pytest.mark.parametrize("pulls", [1, 7, 400])
@pytest.mark.parametrize("variance", [0.0, 3.0, 2_500.0])
def test_the_bound_of_theorem_1_at_the_radius_is_alpha(pulls, variance):
    n, alpha = 50, 0.05
    radius = freedman_radius(pulls, n, variance, alpha)
    exponent = radius**2 / (2 * (variance / (pulls * n**2) + 2 * radius / (3 * pulls)))
    assert 2 * np.exp(-exponent) == pytest.approx(alpha, rel=1e-9)


@pytest.mark.statistical
def test_the_interval_of_single_draws_misses_at_most_as_often_as_stated():
    # 2,000 paths of 30 pulls; the bound is loose, so an alarm at 1 miss in 100 is not a false one.
    rng, n, pulls = np.random.default_rng(0), 200, 30
    scores = np.repeat([0.0, 1.0], [60, 140])
    misses = 0
    for _ in range(2_000):
        drawn = rng.permutation(scores)[:pulls]
        before, left = drawn.cumsum() - drawn, n - np.arange(pulls)
        steps = (before + left * drawn) / n
        misses += abs(steps.mean() - 0.7) > freedman_radius(pulls, n, n**2 * 0.21, 0.05)
    assert misses <= 100


@pytest.mark.parametrize("wrong", [{"pulls": 0}, {"n_examples": 0}, {"variance": -1.0}, {"alpha": 1.0}])
def test_values_out_of_range_are_refused_by_name(wrong):
    values = {"pulls": 3, "n_examples": 50, "variance": 1.0, "alpha": 0.05, **wrong}
    with pytest.raises(InvalidParameter, match=f"^{next(iter(wrong))} must be"):
        freedman_radius(**values)
