import numpy as np
import pytest
from selector_worlds import CertifyWorld

from tests.benchmarks.sample_complexity import growth_rates, labels_needed
from winnow.algorithms.certify.config import CertifyConfig
from winnow.algorithms.certify.e_values import EValues
from winnow.algorithms.certify.label_record import effective_losses
from winnow.algorithms.claims import HEURISTIC, NOTHING_CLAIMED, Claim
from winnow.algorithms.errors import InvalidParameter, MalformedBatch, OutcomeOutOfRange
from winnow.algorithms.protocols import Batch, round_rng
from winnow.algorithms.registry import create_selector

RELIABLE = ("r-eval", "r-autoeval", "r-autoeval-plus")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alpha": 0.0}, r"alpha must be in \(0, 1\), got 0.0"),
        ({"alpha": 1.0}, r"alpha must be in \(0, 1\), got 1.0"),
        ({"alpha": float("nan")}, r"alpha must be in \(0, 1\), got nan"),
        ({"delta": 1.0}, r"delta must be in \(0, 1\), got 1.0"),
        ({"delta": None}, "delta must be a number, got None"),
        ({"betting": "ons"}, "betting must be 'auto' or 'star' or 'up' or 'wsr' or 'mixture', got 'ons'"),
        ({"procedure": "holm"}, "procedure must be 'fixed-sequence' or 'bonferroni', got 'holm'"),
        ({"budget": 0}, "budget must be at least 1 or None, got 0"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"max_unscored": 1.5}, r"max_unscored must be in \[0, 1\], got 1.5"),
        ({"strategies": 1}, r"strategies must be at least 2 \(the factors 0 and 1\), got 1"),
        ({"n_arms": 0}, "n_arms must be at least 1, got 0"),
        ({"n_examples": 0}, "n_examples must be at least 1, got 0"),
    ],
)
def test_a_bad_value_is_refused_early_and_shown(params, message):
    with pytest.raises(InvalidParameter, match=f"^{message}$"):
        create_selector("r-autoeval-plus", **{"n_arms": 3, "n_examples": 4, **params})


def test_a_loss_out_of_range_is_named():
    with pytest.raises(OutcomeOutOfRange, match=r"\(arm 1, example 2\) must be losses in \[0, 1\] .* -0.5$"):
        CertifyWorld().selector("r-eval").tell(
            Batch([0, 1], [2, 2]), [[np.nan, np.nan, np.nan], [0.1, 0.2, -0.5]]
        )


JUST_OUTSIDE = (1.0 + 2e-9, -2e-9, 2.0, np.inf, -np.inf)
HOSTILE = {
    **{str(value): ([[0.0] * 3, [0.5, np.nan, value]], OutcomeOutOfRange) for value in JUST_OUTSIDE},
    "words": ([[0.0] * 3, [0.5, 0.5, "low"]], MalformedBatch),
    "rows of different lengths": ([[0.0] * 3, [0.5]], MalformedBatch),
    "imaginary": ([[0.0] * 3, [0.5, 0.5, 1j]], MalformedBatch),
    "one pair too many": ([[0.0] * 3] * 3, MalformedBatch),
}


def belief(selector):
    return [
        selector.decision(),
        selector.n_labels,
        selector.certified.tolist(),
        selector.log_e_values.tolist(),
        selector.log_peaks.tolist(),
        selector.weights.tolist(),
    ]


@pytest.mark.parametrize("betting", ["star", "up", "wsr", "mixture"])
@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_losses_among_good_ones_are_refused_and_leave_the_evidence_as_it_was(case, betting):
    world = CertifyWorld((0.1, 0.2), 30)
    selector, untouched = (world.selector("r-autoeval-plus", alpha=0.3, betting=betting) for _ in range(2))
    for each in (selector, untouched):
        each.tell(Batch([0] * 10, np.arange(10)), world.losses[0, :10])
    before = belief(selector)
    losses, error = HOSTILE[case]
    with pytest.raises(error):
        selector.tell(Batch([0, 1], [10, 10]), losses)
    assert belief(selector) == before
    for each in (selector, untouched):
        for _ in world.rounds(each):
            pass
    assert belief(selector) == belief(untouched) != before


def test_losses_of_0_and_1_and_missing_ones_are_no_errors():
    selector = told("r-autoeval-plus", [[0.0, -0.0, 1.0], [1.0, 0.0, 1.0], [None, np.nan, 0.5], [np.nan] * 3])
    assert np.isfinite(selector.log_e_values).all()
    assert selector.decision().estimates.tolist() == [0.5]


@pytest.mark.parametrize("betting", ["star", "up", "wsr", "mixture"])
@pytest.mark.parametrize("alpha", [5e-324, 1e-300, np.nextafter(1.0, 0.0)])
@pytest.mark.parametrize("loss", [0.0, 1.0])
def test_every_alpha_between_0_and_1_gives_finite_evidence(alpha, loss, betting):
    selector = told("r-autoeval-plus", np.full((300, 3), loss), alpha=alpha, betting=betting)
    assert np.isfinite(selector.log_e_values).all()
    assert selector.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("betting", ["star", "up", "wsr", "mixture"])
def test_arms_that_are_told_together_have_the_evidence_they_have_alone(betting):
    world = CertifyWorld((0.1, 0.3, 0.2), 40)
    pairs = [(arm, example) for arm, number in enumerate((12, 12, 30)) for example in range(number)]
    arms, examples = np.random.default_rng(0).permutation(pairs).T
    params = {"alpha": 0.3, "delta": 0.9, "betting": betting, "procedure": "bonferroni"}
    together = world.selector("r-autoeval-plus", **params)
    together.tell(Batch(arms, examples), world.losses[arms, examples])
    for arm in range(3):
        alone = world.selector("r-autoeval-plus", **params)
        own = Batch(arms[arms == arm], examples[arms == arm])
        alone.tell(own, world.losses[own.arms, own.examples])
        np.testing.assert_allclose(together.log_e_values[arm], alone.log_e_values[arm], rtol=1e-9)
        np.testing.assert_allclose(together.weights[arm], alone.weights[arm], rtol=1e-9)
        assert together.decision().lower[arm] == alone.decision().lower[arm]
        assert together.decision().upper[arm] == alone.decision().upper[arm] < 1.0


def told(name, losses, alpha=0.3, **params):
    """A selector of one arm that was told these losses in one batch."""
    selector = create_selector(name, n_arms=1, n_examples=len(losses), alpha=alpha, **params)
    selector.tell(Batch(np.zeros(len(losses), dtype=int), np.arange(len(losses))), losses)
    return selector


@pytest.mark.parametrize("betting", ["star", "up", "wsr", "mixture"])
@pytest.mark.parametrize(
    ("name", "factors"),
    [("r-eval", [0.0]), ("r-autoeval", [1.0]), ("r-autoeval-plus", np.linspace(0.0, 1.0, 10))],
)
def test_a_selector_shows_the_e_values_and_weights_of_its_factors(name, factors, betting):
    losses = CertifyWorld((0.1,), 50).losses[0]
    selector = told(name, losses, betting=betting)
    alone = EValues(1, np.asarray(factors), 0.3, betting=betting, level=0.1, horizon=50)
    path = alone.update(slice(None), effective_losses(losses, np.asarray(factors))[np.newaxis])
    np.testing.assert_array_equal(selector.factors, factors)
    np.testing.assert_allclose(selector.log_e_values, path[:, -1], rtol=1e-12)
    np.testing.assert_allclose(selector.log_peaks, [path.max()], rtol=1e-12)
    np.testing.assert_allclose(selector.weights, alone.weights, rtol=1e-12)


def test_a_certificate_once_given_stays_when_the_e_value_falls():
    losses = np.repeat([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], [15, 9], axis=0)
    selector = told("r-autoeval-plus", losses, betting="up")
    assert selector.log_e_values[0] < 0.0
    assert selector.log_peaks[0] > -np.log(0.1)
    assert (selector.decision().best, selector.decision().reason) == (0, "certified")


@pytest.mark.parametrize("name", RELIABLE)
def test_a_bonferroni_certificate_takes_k_times_the_e_value_of_a_sequence(name):
    losses = np.zeros((7, 3))
    for procedure, bar in (("fixed-sequence", 10.0), ("bonferroni", 50.0)):
        selector = create_selector(name, n_arms=5, n_examples=200, alpha=0.4, procedure=procedure)
        told = 0
        while not selector.certified[0]:
            assert selector.log_peaks[0] < np.log(bar)
            selector.tell(Batch(np.zeros(1, dtype=int), [told]), losses[:1])
            told += 1
        assert selector.log_peaks[0] >= np.log(bar)


def test_an_arm_out_of_turn_is_not_certified_before_the_arms_ahead_of_it():
    selector = create_selector("r-eval", n_arms=2, n_examples=60, alpha=0.3)
    examples = np.arange(60)
    selector.tell(Batch(np.ones(60, dtype=int), examples), np.zeros((60, 3)))
    assert selector.decision().best is None
    selector.tell(Batch(np.zeros(60, dtype=int), examples), np.zeros((60, 3)))
    assert selector.decision().best == 1


def test_r_eval_needs_no_autoevaluator_and_autoeval_no_humans():
    losses = CertifyWorld((0.05,), 60).losses[0]
    humans_only, machine_only = losses.copy(), losses.copy()
    humans_only[:, 1:] = np.nan
    machine_only[:, :2] = np.nan
    assert told("r-eval", humans_only).decision() == told("r-eval", losses).decision()
    assert told("autoeval", machine_only).decision() == told("autoeval", losses).decision()


@pytest.mark.parametrize("name", RELIABLE)
def test_unscored_losses_count_at_their_worst_and_are_left_out_of_estimates(name):
    losses = CertifyWorld((0.1,), 60).losses[0]
    holes = losses.copy()
    holes[::5] = np.nan
    filled = holes.copy()
    filled[::5] = [1.0, 0.0, 1.0]
    selector = told(name, holes)
    np.testing.assert_array_equal(selector.log_e_values, told(name, filled).log_e_values)
    assert selector.decision().estimates[0] == pytest.approx(np.nanmean(holes[:, 0]))
    assert selector.n_labels == 60


@pytest.mark.parametrize(("name", "column"), [("eval", 0), ("autoeval", 2)])
def test_the_naive_methods_compare_a_mean_with_alpha_once_all_labels_are_told(name, column):
    world = CertifyWorld((0.2,), 50)
    mean = world.losses[0, :, column].mean()
    for alpha, reason in ((mean + 1e-8, "passed"), (mean - 1e-8, "none-certified")):
        selector = world.selector(name, alpha=alpha)
        for _ in world.rounds(selector):
            assert selector.decision().stop == (selector.n_labels == 50)
        assert selector.decision().reason == reason
        assert selector.decision().estimates[0] == pytest.approx(mean)
        assert np.isnan(selector.decision().lower).all()


@pytest.mark.parametrize("order", [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.2, 0.1, 0.3]])
def test_a_mean_that_is_alpha_passes_however_its_sum_was_rounded(order):
    # 0.1 + 0.2 + 0.3 is above 3 * 0.2, and 0.3 + 0.2 + 0.1 is not.
    selector = told("eval", [[loss, 0.0, 0.0] for loss in order], alpha=0.2)
    assert selector.certified.tolist() == [True]


def test_an_arm_that_is_certified_early_saves_the_rest_of_its_labels():
    world = CertifyWorld((0.0, 0.0), n_examples=500)
    selector = world.selector("r-eval", alpha=0.3, batch_size=1)
    for _ in world.rounds(selector):
        pass
    assert selector.decision().best == 1
    assert selector.n_labels < 20


def test_intervals_can_be_left_out():
    selector = told("r-autoeval-plus", np.zeros((30, 3)), intervals=False)
    assert np.isnan(selector.decision().upper).all()
    assert selector.decision().best == 0


def test_new_examples_are_drawn_uniformly():
    first = [
        int(
            create_selector("r-eval", n_arms=1, n_examples=10, batch_size=1)
            .ask(round_rng(seed, 0))
            .examples[0]
        )
        for seed in range(500)
    ]
    assert np.bincount(first, minlength=10).min() > 25  # 50 expected; a seeded draw


def best_growth(losses, most, alpha):
    bets = np.linspace(0.0, 1.0 / (most - alpha), 4_001)[:-1]
    return max(np.log1p(-bet * (losses - alpha)).mean() for bet in bets)


def test_growth_rates_are_those_of_the_best_constant_bet():
    losses = CertifyWorld((0.1,), 2_000, agreement=0.95).losses[0]
    factors = np.array([0.0, 0.5, 1.0])
    expected = [
        best_growth(effective_losses(losses, np.array([rho]))[:, 0], 1.0 + rho, 0.15) for rho in factors
    ]
    rates = growth_rates(losses, factors, 0.15)
    np.testing.assert_allclose(rates, expected, rtol=1e-4)
    assert (rates >= np.array(expected) - 1e-12).all()
    assert labels_needed(losses, factors, 0.15, 0.05) == pytest.approx(np.log(20.0) / max(expected), rel=1e-4)


def test_a_risk_above_alpha_needs_infinitely_many_labels():
    losses = CertifyWorld((0.3,), 500).losses[0]
    assert labels_needed(losses, np.array([0.0, 1.0]), 0.2, 0.1) == np.inf


def test_an_arm_that_is_dropped_is_certified_no_more():
    selector = create_selector("r-eval", n_arms=1, n_examples=60, alpha=0.3)
    selector.tell(Batch(np.zeros(20, dtype=int), np.arange(20)), np.zeros((20, 3)))
    assert selector.certified.tolist() == [True]
    selector.tell(Batch(np.zeros(30, dtype=int), np.arange(20, 50)), np.full((30, 3), np.nan))
    assert selector.certified.tolist() == [False]
    assert selector.decision().reason == "all-dropped"


@pytest.mark.parametrize(
    ("n_labels", "rule"), [(1, "star"), (300, "star"), (301, "mixture"), (5_000, "mixture")]
)
def test_the_betting_rule_follows_from_the_number_of_labels_unless_it_is_chosen(n_labels, rule):
    assert CertifyConfig(n_arms=1, n_examples=10_000, budget=n_labels).rule == rule
    assert CertifyConfig(n_arms=1, n_examples=n_labels).rule == rule
    assert CertifyConfig(n_arms=1, n_examples=n_labels, betting="wsr").rule == "wsr"


def played(world, name="r-autoeval-plus", **params):
    """A selector that has asked all it wants."""
    selector = world.selector(name, **params)
    for _ in world.rounds(selector):
        pass
    return selector


def test_all_tests_end_once_the_cheapest_arm_that_can_be_certified_is():
    # The third arm settles it; the first two would go on for ever, and the last is shown to be too risky.
    world = CertifyWorld((0.1, 0.1, 0.0, 0.6), n_examples=400, agreement=0.95)
    selector = played(world, alpha=0.1, procedure="bonferroni", batch_size=4)
    decision = selector.decision()
    assert (decision.best, decision.reason) == (2, "certified")
    assert decision.status == ("active", "active", "certified", "refuted")
    assert selector.n_labels < 100


def test_a_dearer_arm_is_asked_for_nothing_more_once_a_cheaper_one_is_certified():
    selector = create_selector("r-eval", n_arms=3, n_examples=200, alpha=0.3, procedure="bonferroni")
    selector.tell(Batch(np.ones(60, dtype=int), np.arange(60)), np.zeros((60, 3)))
    assert set(selector.ask(round_rng(0, 0)).arms.tolist()) == {2}
    assert selector.decision().status == ("active", "certified", "active")


def test_a_fixed_sequence_ends_with_the_first_arm_that_is_refuted():
    world = CertifyWorld((0.0, 0.7, 0.0), n_examples=200)
    selector = played(world, alpha=0.2, batch_size=1)
    decision = selector.decision()
    assert (decision.best, decision.reason) == (0, "certified")
    assert decision.status == ("certified", "refuted", "untested")
    assert selector.n_labels < 54
    assert decision.claim == Claim(kind="proven", delta=0.1, assumptions=("random-labels",))


def test_a_hopeless_first_arm_ends_a_campaign_without_a_certificate_or_a_claim():
    selector = played(CertifyWorld((0.7, 0.0), n_examples=200), alpha=0.2, batch_size=1)
    decision = selector.decision()
    assert (decision.best, decision.reason) == (None, "none-certified")
    assert decision.status == ("refuted", "untested")
    assert decision.claim == NOTHING_CLAIMED
    assert selector.n_labels < 54


def test_an_arm_whose_labels_run_out_stays_open_and_those_behind_it_untested():
    decision = played(CertifyWorld((0.2, 0.0), n_examples=30), alpha=0.2).decision()
    assert (decision.reason, decision.status) == ("none-certified", ("active", "untested"))


def test_a_certificate_is_claimed_as_soon_as_it_is_there_and_nothing_is_untested_while_tests_go_on():
    selector = create_selector("r-eval", n_arms=2, n_examples=60, alpha=0.3)
    selector.tell(Batch(np.zeros(40, dtype=int), np.arange(40)), np.zeros((40, 3)))
    decision = selector.decision()
    assert (decision.best, decision.status) == (0, ("certified", "active"))
    assert (decision.stop, decision.claim.kind, decision.claim.delta) == (False, "proven", 0.1)


@pytest.mark.parametrize("name", ["eval", "autoeval"])
def test_a_mean_that_passes_is_a_heuristic_and_one_that_does_not_is_no_refutation(name):
    decision = played(CertifyWorld((0.0, 0.9), n_examples=50, agreement=1.0), name, alpha=0.3).decision()
    assert (decision.status, decision.reason) == (("passed", "active"), "passed")
    assert decision.claim == HEURISTIC


def test_a_dropped_arm_ends_a_fixed_sequence_as_one_that_is_not_certified_does():
    world = CertifyWorld((0.0, 0.0, 0.0), n_examples=60, broken=(1,))
    decision = played(world, alpha=0.3).decision()
    assert decision.status == ("certified", "dropped", "untested")
    assert decision.claim.delta == 0.1


def test_a_refuted_arm_is_not_certified_even_if_it_passed():
    losses = np.repeat([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], [15, 60], axis=0)
    selector = told("r-autoeval-plus", losses, betting="up")
    assert selector.log_peaks[0] > -np.log(0.1)
    assert selector.decision().status == ("refuted",)
    assert selector.certified.tolist() == [False]


def blocks_with_failures(share, seed, n=200, r=9):
    """Outcomes of a good arm that lacks some of its unlabelled losses, counted one by one and by blocks."""
    rng = np.random.default_rng(seed)
    human = (rng.random((n, 1 + r)) < 0.02).astype(float)
    auto = np.where(rng.random(human.shape) < 0.95, human, 1.0 - human)
    missing = rng.random((n, r)) < share
    known = np.where(missing, np.nan, auto[:, 1:])
    mean = np.nanmean(known, axis=1)
    one_by_one = np.column_stack([human[:, 0], auto[:, 0], mean, missing.mean(axis=1)])
    all_or_none = np.column_stack([human[:, 0], auto[:, 0], np.where(missing.any(axis=1), np.nan, mean)])
    return one_by_one, all_or_none


def test_one_missing_loss_of_nine_does_not_cost_the_other_eight():
    certified = {"one by one": 0, "all or none": 0}
    for seed in range(25):
        for way, outcomes in zip(certified, blocks_with_failures(0.08, seed), strict=True):
            selector = create_selector("r-autoeval", n_arms=1, n_examples=200, alpha=0.3)
            selector.tell(Batch(np.zeros(200, dtype=int), np.arange(200)), outcomes)
            certified[way] += bool(selector.certified[0])
    assert certified == {"one by one": 25, "all or none": 0}
