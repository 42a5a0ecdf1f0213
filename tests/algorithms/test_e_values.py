import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from literal_e_values import (
    angular_grid,
    even_grid,
    literal_log_e_values,
    portfolio_bet,
    published_grid,
    star_bet,
    wsr_bet,
)
from property_settings import tries
from scipy.special import betaln, hyp2f1

from winnow.algorithms.bounds.betting import nodes_for
from winnow.algorithms.certify.e_values import EValues
from winnow.algorithms.certify.label_record import effective_losses

FACTORS = np.array([0.0, 0.4, 1.0])
LEVEL, HORIZON = 0.05, 400  # so far off that bets are seldom capped
RNG = np.random.default_rng(0)
OUTCOMES = {
    "random": RNG.random((40, 3)),
    "binary": (RNG.random((40, 3)) < 0.2).astype(float),
    "all perfect": np.zeros((40, 3)),
    "all wrong": np.ones((40, 3)),
    "autoevaluator always wrong": np.tile([0.0, 1.0, 0.0], (40, 1)),
    "highest effective losses": np.tile([1.0, 0.0, 1.0], (40, 1)),
    "perfect, then wrong": np.repeat([[0.0, 0.0, 0.0], [1.0, 0.0, 1.0]], 20, axis=0),
}
RISKS = (0.001, 0.12, 0.5, 0.999)

fractions = st.floats(0.0, 1.0) | st.sampled_from([0.0, 1.0])
outcomes_of = arrays(np.float64, st.tuples(st.integers(1, 25), st.just(3)), elements=fractions)
risks = st.floats(0.001, 0.999)
RULES = ["star", "up", "wsr", "mixture"]
betting_rules = st.sampled_from(RULES)


def e_values(factors=FACTORS, alpha=0.1, betting="up", **others):
    others = {"level": LEVEL, "horizon": HORIZON, **others}
    return EValues(1, np.asarray(factors, dtype=float), alpha, betting=betting, **others)


def path(outcomes, factors=FACTORS, alpha=0.1, betting="up", **others):
    """The logarithms of the e-values, shape (n,), and the weights, shape (S,)."""
    evidence = e_values(factors, alpha, betting, **others)
    logs = evidence.update(slice(None), effective_losses(outcomes, np.asarray(factors))[np.newaxis])
    return logs[0], evidence.weights[0]


@pytest.mark.parametrize("alpha", RISKS)
@pytest.mark.parametrize("name", OUTCOMES)
def test_wsr_e_values_are_those_of_the_published_algorithm(name, alpha):
    logs, weights = path(OUTCOMES[name], alpha=alpha, betting="wsr")
    expected, expected_weights = literal_log_e_values(
        OUTCOMES[name], FACTORS, alpha, lambda losses, most, _: wsr_bet(losses, most, alpha, LEVEL, HORIZON)
    )
    np.testing.assert_allclose(np.expm1(logs - expected), 0.0, atol=1e-9)
    np.testing.assert_allclose(weights, expected_weights, rtol=1e-9)


@pytest.mark.parametrize("horizon", [25, 400])  # 25 of 40 losses: it ends before they do
@pytest.mark.parametrize("alpha", RISKS)
@pytest.mark.parametrize("name", OUTCOMES)
def test_star_e_values_are_those_of_the_rule_written_out(name, alpha, horizon):
    logs, weights = path(OUTCOMES[name], alpha=alpha, betting="star", horizon=horizon)
    expected, expected_weights = literal_log_e_values(
        OUTCOMES[name],
        FACTORS,
        alpha,
        lambda losses, most, log_e_value: star_bet(losses, most, log_e_value, alpha, LEVEL, horizon),
    )
    np.testing.assert_allclose(np.expm1(logs - expected), 0.0, atol=1e-9)
    np.testing.assert_allclose(weights, expected_weights, rtol=1e-9)


@pytest.mark.parametrize("alpha", RISKS)
@pytest.mark.parametrize("name", OUTCOMES)
def test_mixture_e_values_are_seven_tenths_of_star_and_three_of_the_portfolio(name, alpha):
    logs, weights = path(OUTCOMES[name], alpha=alpha, betting="mixture", horizon=40)
    outcomes, level = OUTCOMES[name], 0.7 * LEVEL
    star, star_weights = literal_log_e_values(
        outcomes,
        FACTORS,
        alpha,
        lambda losses, most, log_e_value: star_bet(losses, most, log_e_value, alpha, level, 40),
    )
    up, up_weights = literal_portfolio(outcomes, alpha, angular_grid(nodes_for(40)))
    expected = np.logaddexp(np.log(0.7) + star, np.log(0.3) + up)
    np.testing.assert_allclose(np.expm1(logs - expected), 0.0, atol=1e-9)
    shares = np.array([0.7, 0.3]) * np.exp(np.array([star[-1], up[-1]]) - expected[-1])
    np.testing.assert_allclose(weights, shares @ np.stack([star_weights, up_weights]), rtol=1e-9)


@tries(60)
@given(outcomes_of, risks)
def test_a_mixture_certifies_whatever_seven_tenths_of_star_certify_alone(outcomes, alpha):
    others = {"alpha": alpha, "horizon": len(outcomes)}
    mixture, _ = path(outcomes, betting="mixture", **others)
    star, _ = path(outcomes, betting="star", level=0.7 * LEVEL, **others)
    assert (mixture >= np.log(0.7) + star - 1e-9).all()
    assert mixture.max() >= -np.log(LEVEL) - 1e-9 or star.max() < -np.log(0.7 * LEVEL)


@tries(60)
@given(outcomes_of, risks)
def test_star_stakes_nothing_more_once_it_has_what_it_needs(outcomes, alpha):
    logs, _ = path(outcomes, alpha=alpha, betting="star", horizon=len(outcomes))
    reached = logs >= -np.log(LEVEL)
    if reached.any():
        np.testing.assert_array_equal(logs[reached.argmax() :], logs[reached.argmax()])


@tries(60)
@given(outcomes_of, risks, betting_rules, st.data())
def test_bets_are_functions_of_the_losses_before_and_make_the_e_values(outcomes, alpha, betting, data):
    losses = effective_losses(outcomes, FACTORS)[np.newaxis]
    bets, changed_bets = np.empty_like(losses), np.empty_like(losses)
    evidence = e_values(alpha=alpha, betting=betting)
    logs = evidence.update(slice(None), losses, bets)
    wealth = np.cumprod(1.0 - bets * (losses - alpha), axis=1).mean(axis=-1)
    np.testing.assert_allclose(logs, np.log(wealth), atol=1e-6)
    assert ((bets >= 0.0) & (bets < 1.0 / (1.0 + FACTORS - alpha))).all()
    now = data.draw(st.integers(0, len(outcomes) - 1))
    changed = losses.copy()
    changed[:, now:] = 1.0 - changed[:, now:]
    e_values(alpha=alpha, betting=betting).update(slice(None), changed, changed_bets)
    np.testing.assert_allclose(changed_bets[:, : now + 1], bets[:, : now + 1], rtol=1e-12)


def literal_portfolio(outcomes, alpha, grid):
    return literal_log_e_values(
        outcomes, FACTORS, alpha, lambda losses, most, _: portfolio_bet(losses, most, alpha, *grid)
    )


@pytest.mark.parametrize("name", OUTCOMES)
def test_portfolio_e_values_are_those_of_the_published_algorithm_on_10_000_points(name):
    outcomes, grid = OUTCOMES[name][::2], even_grid(10_000)
    for alpha in (0.12, 0.5):
        logs, weights = path(outcomes, alpha=alpha)
        expected, expected_weights = literal_portfolio(outcomes, alpha, grid)
        np.testing.assert_allclose(np.expm1(logs - expected), 0.0, atol=1e-6)
        np.testing.assert_allclose(weights, expected_weights, rtol=1e-6)


@pytest.mark.parametrize("alpha", [0.001, 0.999])
def test_portfolio_e_values_hold_against_10_000_points_of_equal_mass_where_an_even_grid_is_too_coarse(alpha):
    for outcomes in OUTCOMES.values():
        expected, _ = literal_portfolio(outcomes[::2], alpha, angular_grid(10_000))
        np.testing.assert_allclose(np.expm1(path(outcomes[::2], alpha=alpha)[0] - expected), 0.0, atol=1e-9)


@pytest.mark.parametrize(("wrong", "right"), [(0, 300), (10, 90), (30, 269), (150, 150), (300, 0)])
@pytest.mark.parametrize("alpha", [0.05, 0.5])
def test_the_portfolio_integral_of_binary_losses_is_exact(wrong, right, alpha):
    # With k losses of 1 and m of 0 it is B(1/2, k + 1/2) / pi * 2F1(-m, 1/2; k + 1; -alpha / (1 - alpha)).
    losses = np.repeat([1.0, 0.0], [wrong, right])
    outcomes = np.column_stack([losses, losses, losses])
    logs, _ = path(outcomes, factors=[0.0], alpha=alpha)
    series = np.log(hyp2f1(-right, 0.5, wrong + 1, -alpha / (1.0 - alpha)))
    assert logs[-1] == pytest.approx(betaln(0.5, wrong + 0.5) - np.log(np.pi) + series, abs=1e-9)


def test_the_authors_grid_puts_a_fifth_of_the_prior_on_either_end():
    points, masses = published_grid(10_000)
    assert (points[0], points[-1]) == (1e-8, 1.0 - 1e-8)
    np.testing.assert_allclose([masses[0], masses[-1]], 0.195, atol=0.005)


@tries(60)
@given(outcomes_of, risks, betting_rules, st.integers(1, 24))
def test_losses_told_in_parts_are_worth_the_same_as_together(outcomes, alpha, betting, size):
    whole, parts = e_values(alpha=alpha, betting=betting), e_values(alpha=alpha, betting=betting)
    losses = effective_losses(outcomes, FACTORS)[np.newaxis]
    whole.update(slice(None), losses)
    for start in range(0, len(outcomes), size):
        parts.update(slice(None), losses[:, start : start + size])
    np.testing.assert_allclose(parts.logs, whole.logs, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(parts.log_peaks, whole.log_peaks, rtol=1e-9, atol=1e-9)


@tries(60)
@given(outcomes_of, risks, st.sampled_from(["up", "wsr"]))  # whose strategies know nothing of each other
def test_the_e_value_is_the_average_over_strategies_alone(outcomes, alpha, betting):
    logs, weights = path(outcomes, alpha=alpha, betting=betting)
    alone = np.array([path(outcomes, [rho], alpha, betting)[0] for rho in FACTORS])
    np.testing.assert_allclose(logs, np.logaddexp.reduce(alone, axis=0) - np.log(3), rtol=1e-9, atol=1e-9)
    assert weights.sum() == pytest.approx(1.0)
    assert (logs >= alone.max(axis=0) - np.log(3) - 1e-9).all()


@tries(60)
@given(outcomes_of, risks, st.randoms(use_true_random=False))
def test_a_portfolio_does_not_depend_on_the_order_of_losses(outcomes, alpha, random):
    order = list(range(len(outcomes)))
    random.shuffle(order)
    assert path(outcomes, alpha=alpha)[0][-1] == pytest.approx(
        path(outcomes[order], alpha=alpha)[0][-1], abs=1e-8
    )


@tries(60)
@given(outcomes_of, risks, st.data())
def test_unscored_losses_are_never_worth_more_to_a_portfolio_than_any_scores(outcomes, alpha, data):
    lost = data.draw(arrays(np.bool_, outcomes.shape))
    holes = np.where(lost, np.nan, outcomes)
    worst, best = (effective_losses(holes, FACTORS, end) for end in ("worst", "best"))
    complete = effective_losses(outcomes, FACTORS)
    assert (worst >= complete - 1e-12).all()
    assert (best <= complete + 1e-12).all()
    assert path(holes, alpha=alpha)[0][-1] <= path(outcomes, alpha=alpha)[0][-1] + 1e-9


@tries(60)
@given(arrays(np.float64, st.tuples(st.just(5), st.integers(1, 6)), elements=fractions), st.data())
def test_unlabelled_losses_that_are_missing_count_one_by_one(block, data):
    # Each at its own worst, which is what all of them are with 1 in their place, and no more.
    known = data.draw(arrays(np.bool_, block.shape))
    ends = {}
    for end, filling in (("worst", 1.0), ("best", 0.0)):
        filled = np.where(known, block, filling).mean(axis=1)
        with np.errstate(invalid="ignore"):
            told = np.where(known, block, 0.0).sum(axis=1) / known.sum(axis=1)
        told = np.column_stack([np.full(5, 0.5), np.full(5, 0.25), told, (~known).mean(axis=1)])
        ends[end] = effective_losses(told, FACTORS, end)
        expected = np.column_stack([np.full(5, 0.5), np.full(5, 0.25), filled])
        np.testing.assert_allclose(ends[end], effective_losses(expected, FACTORS), atol=1e-12)
    assert (ends["best"] <= ends["worst"] + 1e-12).all()


@tries(60)
@given(outcomes_of, st.floats(0.0, 1.0))
def test_effective_losses_are_the_published_ones_within_their_range(outcomes, rho):
    losses = effective_losses(outcomes, np.array([rho]))[:, 0]
    human, auto, unlabelled = outcomes.T
    np.testing.assert_allclose(losses, rho * unlabelled + human - rho * auto, atol=1e-15)
    assert ((losses >= -rho - 1e-12) & (losses <= 1.0 + rho + 1e-12)).all()


def test_losses_equal_to_the_level_prove_nothing():
    for betting in RULES:
        logs, weights = path(np.full((30, 3), 0.25), alpha=0.25, betting=betting)
        np.testing.assert_allclose(logs, 0.0, atol=1e-12)
        np.testing.assert_allclose(weights, 1 / 3)


# "star" stakes nothing once it has what it needs; a portfolio soon stakes next to nothing on losses of 1.
@pytest.mark.parametrize(
    ("betting", "loss", "parts"), [("up", 0.0, 4), ("up", 1.0, 20), ("wsr", 0.0, 4), ("wsr", 1.0, 4)]
)
def test_up_to_a_million_extreme_losses_neither_overflow_nor_underflow(betting, loss, parts):
    evidence = e_values([0.0, 1.0], alpha=0.5, betting=betting, horizon=10**6, nodes=20)
    for _ in range(parts):
        evidence.update(slice(None), np.full((1, 50_000, 2), loss))
    assert np.isfinite([evidence.logs, evidence.log_peaks]).all()
    assert abs(evidence.logs[0]) > 400.0
    assert evidence.weights.sum() == pytest.approx(1.0)
