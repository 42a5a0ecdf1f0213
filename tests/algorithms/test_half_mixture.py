from fractions import Fraction
from math import comb, log

import numpy as np
import pytest
from fair_duels import crossing_probability
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta

from winnow.algorithms.bounds import half_mixture
from winnow.algorithms.bounds.half_mixture import SCALES, HalfMixture, beta_parameters

HALF = HalfMixture(0.5)


def log_of(mixture, gains, losses):
    return float(mixture.log_value(np.array(float(gains)), np.array(float(losses))))


def exact_log(gains, losses, scale):
    """The mixture at 1/2 of one integer scale in rational numbers: an integral of q^x (1 - q)^y is a sum."""

    def above_half(x, y):
        # Of x + y + 1 fair coins at most x fall heads exactly as often as a Beta(x + 1, y + 1) is above 1/2.
        n = x + y + 1
        return Fraction(sum(comb(n, k) for k in range(x + 1)), 2**n) / (comb(x + y, x) * n)

    whole = above_half(gains + scale - 1, losses + scale - 1) / above_half(scale - 1, scale - 1)
    value = whole * 2 ** (gains + losses)
    return log(value.numerator) - log(value.denominator)


@pytest.mark.parametrize("scale", [4, 32, 256])
@pytest.mark.parametrize(
    ("gains", "losses"), [(0, 0), (1, 0), (0, 1), (7, 2), (2, 7), (300, 250), (40, 400), (900, 20)]
)
def test_a_part_of_the_mixture_is_exact(monkeypatch, gains, losses, scale):
    monkeypatch.setattr(half_mixture, "SCALES", (float(scale),))
    assert log_of(HalfMixture(0.5), gains, losses) == pytest.approx(
        exact_log(gains, losses, scale), rel=1e-9, abs=1e-9
    )


@pytest.mark.parametrize("least", [0.5, 0.45, 0.3])
@pytest.mark.parametrize(("gains", "losses"), [(1, 0), (0, 3), (8.5, 3.5), (60, 45.5), (30, 70)])
def test_the_mixture_is_the_mean_of_integrals_over_what_is_above_the_least_preference(least, gains, losses):
    def integrand(q, up, down):
        ratio = (q / least) ** gains * ((1 - q) / (1 - least)) ** losses
        return ratio * beta.pdf(q, up, down) / beta.sf(least, up, down)

    parts = [quad(integrand, least, 1, parameters, limit=200)[0] for parameters in beta_parameters(least)]
    assert log_of(HalfMixture(least), gains, losses) == pytest.approx(np.log(np.mean(parts)), abs=1e-5)


def test_at_one_half_the_distributions_are_symmetric():
    assert beta_parameters(0.5) == [(scale, scale) for scale in SCALES]


@pytest.mark.parametrize("least", [0.5, 0.1])
def test_counts_however_large_or_lopsided_give_a_number(least):
    mixture = HalfMixture(least)
    counts = 10.0 ** np.arange(0, 10)
    up, down = mixture.log_value(counts, np.zeros(10)), mixture.log_value(np.zeros(10), counts)
    assert not np.isnan([up, down]).any()
    assert (np.diff(up) > 0.0).all()
    assert (down < 0.0).all()
    # All won: the best likelihood ratio, less what the mixture spends.
    assert (np.abs(up + counts * np.log(least)) < np.log(counts) + 3.0).all()
    even = mixture.log_value(counts * least, counts * (1.0 - least))
    assert (even < 0.0).all()
    assert (even > -0.5 * np.log(counts) - 8.0).all()


NUMBERS = st.integers(0, 400)
LEAST = st.sampled_from([0.5, 0.48, 0.35])


@given(NUMBERS, NUMBERS, LEAST, st.floats(0.0, 1.0))
def test_a_duel_of_at_most_the_least_preference_does_not_raise_it_on_average(gains, losses, least, share):
    mixture = HalfMixture(least)
    won, lost = (log_of(mixture, gains + x, losses + 1 - x) for x in (1, 0))
    before = log_of(mixture, gains, losses)
    after = np.logaddexp(np.log(least) + won, np.log1p(-least) + lost)
    assert after == pytest.approx(before, abs=1e-8)
    assert won > lost  # so that a lower mean leads to less
    # An outcome between 0 and 1 leads to no more than the chance of a win that has its mean.
    between = log_of(mixture, gains + share, losses + 1 - share)
    chord = np.log(share * np.exp(won - before) + (1 - share) * np.exp(lost - before)) + before
    assert between <= chord + 1e-9


@pytest.mark.parametrize("level", [0.3, 0.05])
def test_fair_duels_ever_reach_the_level_with_at_most_its_probability(level):
    def reached(gains, losses):
        return log_of(HALF, gains, losses) >= log(1 / level)

    assert 0.2 * level < crossing_probability(reached, 120) <= level


def test_mixing_over_all_preferences_would_take_losses_for_evidence(monkeypatch):
    def whole(gains, losses):
        above = log_of(HALF, gains, losses)
        below = log_of(HALF, losses, gains)
        return np.logaddexp(above, below) - log(2) >= log(20)

    def half(gains, losses):
        return log_of(HALF, gains, losses) >= log(20)

    assert crossing_probability(half, 120, chance=0.3) < 0.01
    assert crossing_probability(whole, 120, chance=0.3) > 0.5
