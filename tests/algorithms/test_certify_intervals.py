import numpy as np
import pytest
from literal_e_values import literal_losses
from selector_worlds import CertifyWorld

from winnow.algorithms.certify.e_values import GRID_POINTS, EValues, UpperEnds
from winnow.algorithms.protocols import Batch
from winnow.algorithms.registry import create_selector

FACTORS = np.array([0.0, 0.5, 1.0])
ALPHA, LEVEL = 0.3, 0.05
RULES = ["star", "up", "wsr", "mixture"]


def bets_on(losses, betting, alpha=ALPHA, level=LEVEL):
    """The bets of a test on losses of shape (n, S)."""
    bets = np.empty((1, *losses.shape))
    EValues(1, FACTORS, alpha, betting=betting, level=level, horizon=len(losses)).update(
        slice(None), losses[np.newaxis], bets
    )
    return bets[0]


def literal_upper_end(losses, bets, alpha, level):
    """The least grid point that is refuted as too high at some time, by one product for each."""
    angles = np.linspace(np.arccos(1.0 - 2.0 * alpha), np.pi, GRID_POINTS)
    for m in (1.0 - np.cos(angles)) / 2.0:
        capital = np.cumprod(1.0 - bets * (losses - m), axis=0).mean(axis=1)
        if capital.max() >= 1.0 / level:
            return m
    return 1.0


def upper_ends(losses, bets, size=25):
    """Of three arms, of which the second is told losses of shape (n, S) in parts."""
    ends = UpperEnds(3, len(FACTORS), ALPHA, LEVEL)
    for start in range(0, len(losses), size):
        ends.update(1, losses[start : start + size], bets[start : start + size])
    return ends.ends


@pytest.mark.parametrize("betting", RULES)
@pytest.mark.parametrize("risk", [0.0, 0.28, 0.45, 1.0])
def test_an_end_is_the_least_risk_that_the_tests_bets_refute(risk, betting):
    losses = np.array(literal_losses(CertifyWorld((risk,), 90).losses[0], FACTORS))
    bets = bets_on(losses, betting)
    found = upper_ends(losses, bets)
    assert found[1] == pytest.approx(literal_upper_end(losses, bets, ALPHA, LEVEL), abs=1e-12)
    assert found[1] >= max(risk, ALPHA)
    np.testing.assert_array_equal(found[[0, 2]], 1.0)


def told(name, losses, **params):
    """The decision of a selector of as many arms as there are losses, shape (K, n, 3), told all of them."""
    n_arms, n_examples = len(losses), len(losses[0])
    selector = create_selector(name, n_arms=n_arms, n_examples=n_examples, **{"alpha": ALPHA, **params})
    arms, examples = np.divmod(np.arange(n_arms * n_examples), n_examples)
    selector.tell(Batch(arms, examples), np.reshape(losses, (-1, np.shape(losses)[-1])))
    return selector.decision()


@pytest.mark.parametrize("betting", RULES)
@pytest.mark.parametrize("procedure", ["fixed-sequence", "bonferroni"])
def test_intervals_say_what_certificates_and_refutations_say(procedure, betting):
    risks = (0.02, 0.15, 0.1, 0.27, 0.1, 0.9, 0.35)
    for seed in range(5):
        world = CertifyWorld(risks, 80, seed=seed)
        decision = told("r-autoeval-plus", world.losses, procedure=procedure, betting=betting)
        status = np.array(decision.status)
        assert {"certified", "refuted", "active"} <= set(status)
        np.testing.assert_array_equal(decision.upper[status == "certified"], ALPHA)
        np.testing.assert_array_equal(decision.lower[status == "refuted"], ALPHA)
        assert (decision.lower[status != "refuted"] < ALPHA).all()
        if procedure == "bonferroni":
            assert (decision.upper[status != "certified"] > ALPHA).all()
        else:  # nothing is said of arms behind the first that is not certified
            first = int(np.argmax(status != "certified"))
            assert decision.upper[first] > ALPHA
            np.testing.assert_array_equal(decision.upper[first + 1 :], 1.0)
        assert ((decision.lower <= decision.estimates) & (decision.estimates <= decision.upper)).all()


def test_an_estimate_outside_of_what_is_certified_is_moved_to_the_end_of_its_interval():
    # The autoevaluator says exactly how unlucky the labelled examples are: a plain mean of 0.32 is certified.
    rng = np.random.default_rng(0)
    human = (np.arange(100) % 25 < 8).astype(float)
    rng.shuffle(human)
    decision = told("r-autoeval-plus", [np.column_stack([human, human, np.full(100, 0.1)])])
    assert decision.status == ("certified",)
    assert decision.estimates[0] == decision.upper[0] == ALPHA


def test_intervals_only_shrink_and_close_in_on_the_risk():
    outcomes = CertifyWorld((0.35,), 3_000).losses[0]
    selector = create_selector("r-autoeval-plus", n_arms=1, n_examples=3_000, alpha=0.3, delta=0.1)
    ends = [(0.0, 1.0)]
    for start in range(0, 3_000, 100):
        batch = Batch(np.zeros(100, dtype=int), np.arange(start, start + 100))
        selector.tell(batch, outcomes[start : start + 100])
        decision = selector.decision()
        ends.append((decision.lower[0], decision.upper[0]))
    assert (np.diff(ends, axis=0) * [1.0, -1.0] >= 0.0).all()
    assert ends[-1][0] == 0.3
    assert 0.35 < ends[-1][1] < 0.42


def test_unscored_losses_widen_the_interval_on_both_sides():
    outcomes = CertifyWorld((0.28,), 200).losses[0]
    holes = outcomes.copy()
    holes[::10] = np.nan
    complete, lossy = told("r-autoeval-plus", [outcomes]), told("r-autoeval-plus", [holes])
    assert lossy.lower[0] < complete.lower[0]
    assert lossy.upper[0] > complete.upper[0]


def test_a_good_autoevaluator_narrows_the_interval_of_an_open_arm():
    outcomes = CertifyWorld((0.1,), 1_000, agreement=0.99, ratio=10).losses[0]
    plus, humans = (told(name, [outcomes], alpha=0.1, delta=0.01) for name in ("r-autoeval-plus", "r-eval"))
    assert plus.upper[0] - plus.lower[0] < 0.9 * (humans.upper[0] - humans.lower[0])
