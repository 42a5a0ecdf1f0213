import numpy as np
import pytest
from literal_e_values import literal_losses
from selector_worlds import CertifyWorld

from algorithms.certify.intervals import GRID_POINTS, RiskIntervals

FACTORS = np.array([0.0, 0.5, 1.0])
GRID = (1.0 - np.cos(np.linspace(0.0, np.pi, GRID_POINTS))) / 2.0


def literal_upper_end(losses, level, horizon):
    """The least grid point that is refuted as too high at some time, by one product for each."""
    bets = np.empty_like(losses)
    for s, rho in enumerate(FACTORS):
        for i in range(len(losses)):
            means = [(0.5 + losses[: j + 1, s].sum()) / (j + 2) for j in range(i)]
            variance = (0.25 + ((losses[:i, s] - means) ** 2).sum()) / (i + 1)
            bets[i, s] = min(
                1.0 / (1.0 + 2.0 * rho), np.sqrt(2.0 * np.log(1.0 / level) / (horizon * variance))
            )
    for m in GRID[1:]:
        capital = np.cumprod(1.0 - bets * (losses - m), axis=0).mean(axis=1)
        if capital.max() >= 1.0 / level:
            return m
    return 1.0


@pytest.mark.parametrize("risk", [0.0, 0.1, 0.6, 1.0])
def test_the_ends_invert_the_published_test(risk):
    outcomes = CertifyWorld((risk,), 90).losses[0]
    intervals = RiskIntervals(3, FACTORS, 0.1, 90)
    for start in range(0, 90, 25):
        intervals.update(1, outcomes[start : start + 25])
    losses = np.array(literal_losses(outcomes, FACTORS))
    assert intervals.upper[1] == pytest.approx(literal_upper_end(losses, 0.1 / 6, 90), abs=1e-12)
    assert intervals.lower[1] == pytest.approx(1.0 - literal_upper_end(1.0 - losses, 0.1 / 6, 90), abs=1e-12)
    assert intervals.lower[1] <= risk <= intervals.upper[1]
    np.testing.assert_array_equal(intervals.upper[[0, 2]], 1.0)
    np.testing.assert_array_equal(intervals.lower[[0, 2]], 0.0)


def test_intervals_only_shrink_and_close_in_on_the_risk():
    outcomes = CertifyWorld((0.2,), 3_000).losses[0]
    intervals = RiskIntervals(1, FACTORS, 0.1, 3_000)
    ends = [(0.0, 1.0)]
    for start in range(0, 3_000, 100):
        intervals.update(0, outcomes[start : start + 100])
        ends.append((intervals.lower[0], intervals.upper[0]))
    assert (np.diff(ends, axis=0) * [1.0, -1.0] >= 0.0).all()
    assert ends[-1][0] < 0.2 < ends[-1][1] < ends[-1][0] + 0.08


def test_unscored_losses_widen_the_interval_on_both_sides():
    outcomes = CertifyWorld((0.3,), 200).losses[0]
    holes = outcomes.copy()
    holes[::10] = np.nan
    complete, lossy = RiskIntervals(1, FACTORS, 0.1, 200), RiskIntervals(1, FACTORS, 0.1, 200)
    complete.update(0, outcomes)
    lossy.update(0, holes)
    assert lossy.lower[0] < complete.lower[0]
    assert lossy.upper[0] > complete.upper[0]


def test_a_good_autoevaluator_narrows_the_interval_and_a_bad_one_hardly_widens_it():
    widths = {}
    for agreement in (0.99, 0.7):
        outcomes = CertifyWorld((0.1,), 1_000, agreement=agreement, ratio=10).losses[0]
        for name, factors in (("plus", np.linspace(0.0, 1.0, 10)), ("humans", np.zeros(1))):
            intervals = RiskIntervals(1, factors, 0.001, 1_000)
            intervals.update(0, outcomes)
            widths[name, agreement] = float(intervals.upper[0] - intervals.lower[0])
    assert widths["plus", 0.99] < 0.75 * widths["humans", 0.99]
    assert widths["plus", 0.7] < 1.1 * widths["humans", 0.7]
