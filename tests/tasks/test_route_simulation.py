"""Streams of prompts whose scores are all known: what the one-arm oracle and routers come to, by hand."""

import numpy as np
import pytest

from winnow.algorithms.protocols import Batch
from winnow.algorithms.registry import create_selector
from winnow.algorithms.route.metrics import outscore_the_best
from winnow.tasks.errors import SpecError
from winnow.tasks.simulation.results import measure_by, metric_for
from winnow.tasks.simulation.routes import RouteEnvironment, average_picks, one_arm_oracle, parts, picks_by
from winnow.tasks.simulation.simulate import compared_selector, replay, simulate

METRICS = ("outscore-the-best", "optimal-pick-ratio", "regret")
TYPES = np.arange(120) % 2


def two_types(**changes):
    """An expert for each of two types, and an arm that scores 0.75 on everything: it is best on average."""
    scores = np.array([TYPES == 0, TYPES == 1, np.full(120, 0.75)], dtype=float)
    return RouteEnvironment(**{"scores": scores, "contexts": np.eye(2)[TYPES], "types": TYPES, **changes})


def router(name="pak-ucb", **params):
    return compared_selector(name, name, params)


def measured(metric, environment, run):
    return measure_by(metric, environment, gap=0.0, level=0.1)(run).tolist()


def test_the_oracle_gives_everything_to_the_arm_that_is_best_on_average():
    environment = two_types()
    run = one_arm_oracle(environment, budgets=[1, 40, 120], seed=3)
    assert (run.label, run.reason) == ("oracle", "exhausted")
    assert set(run.told.arms) == {2}
    assert measured("outscore-the-best", environment, run) == [0.0, 0.0, 0.0]
    assert measured("optimal-pick-ratio", environment, run) == [0.0, 0.0, 0.0]
    assert measured("regret", environment, run) == [0.25, 10.0, 30.0]  # 1 could be had, 0.75 is


def test_a_router_beats_the_oracle_where_the_best_arm_depends_on_the_type():
    environment = two_types()
    run = replay(router(kernel="linear", eta=0.5), environment, budgets=[60, 120], seed=0)
    lead, ratio, regret = (measured(metric, environment, run) for metric in METRICS)
    assert lead[1] > 0.2
    assert 0.9 < ratio[0] < ratio[1] < 1.0
    assert regret[1] == regret[0] < 5.0  # nothing is lost in the second half
    assert lead[1] == pytest.approx(0.25 - regret[1] / 120)


def test_after_the_whole_stream_the_lead_is_that_over_the_best_arm():
    environment = two_types(scores=np.random.default_rng(0).random((3, 120)))
    run = replay(router("random"), environment, budgets=[50, 120], seed=4)
    order = environment.order(4)
    expected = outscore_the_best(environment.scores[run.told.arms, order], environment.scores[:, order].T)
    assert measured("outscore-the-best", environment, run)[1] == pytest.approx(expected[-1])


def test_each_example_comes_once_in_an_order_of_the_seeds_own():
    environment = two_types()
    orders = [environment.order(seed).tolist() for seed in (0, 1, 0)]
    assert orders[0] == orders[2] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(120))
    run = replay(router("random"), environment, budgets=[120], seed=1)
    assert run.told.examples.tolist() == list(range(120))
    assert environment.outcomes(Batch([0], [7]), 1, 0) == float(orders[1][7] % 2 == 0)


def test_a_router_sees_the_vector_of_the_example_that_it_is_scored_on():
    contexts = np.eye(120)
    environment = two_types(contexts=contexts)
    alone = create_selector("pak-ucb", n_arms=3, n_examples=120, **environment.settings({}))
    wrap = environment.wrap(alone, 5)
    wrap.tell(wrap.ask(np.random.default_rng(0)), [1.0])
    (seen,) = wrap.policy().arrays["contexts"]
    assert seen.argmax() == environment.order(5)[0]


def test_prompts_come_one_by_one_unless_a_selector_asks_for_batches():
    environment = two_types()
    assert replay(router(), environment, budgets=[10, 15], seed=0).spent.tolist() == [10, 15]
    in_batches = replay(router(batch_size=7), environment, budgets=[10, 15], seed=0)
    assert in_batches.spent.tolist() == [7, 15]  # the last budget shortens the last batch
    assert len(in_batches.told) == 15
    assert replay(router(batch_size=7), environment, budgets=[5, 15], seed=0).spent.tolist() == [0, 15]


def test_metrics_are_zero_before_the_first_batch():
    environment = two_types()
    run = replay(router(batch_size=7), environment, budgets=[5, 15], seed=0)
    assert [measured(metric, environment, run)[0] for metric in METRICS] == [0.0, 0.0, 0.0]


def test_runs_are_the_same_with_one_worker_and_with_two():
    environment = two_types()
    rivals = [router(), router("rff-ucb", n_features=20)]
    given = {"budgets": [30, 60], "seeds": [3, 4]}
    one, both = ([*simulate(environment, rivals, workers=count, **given)] for count in (1, 2))
    for mine, theirs in zip(one, both, strict=True):
        assert (mine.label, mine.seed, mine.told) == (theirs.label, theirs.seed, theirs.told)
        np.testing.assert_array_equal(mine.ranking, theirs.ranking)
    assert one[0].told != one[2].told


def test_what_is_expected_is_the_mean_of_the_type_or_the_score_itself():
    nan = np.nan
    scores = np.array([[1.0, 0.0, 1.0, nan], [nan, 0.5, 0.0, nan]])
    environment = RouteEnvironment(scores=scores, contexts=np.ones((4, 1)), types=np.array([0, 0, 0, 1]))
    # Of type 1 nothing is known, so the mean over all examples stands there.
    np.testing.assert_allclose(environment.expected(), [[2 / 3] * 4, [0.25] * 4])
    bare = RouteEnvironment(scores=scores, contexts=np.ones((4, 1)))
    np.testing.assert_allclose(bare.expected(), [[1.0, 0.0, 1.0, 2 / 3], [0.25, 0.5, 0.0, 0.25]])


def test_unscored_prompts_are_told_and_left_out_of_the_lead():
    scores = np.array([[1.0, 1.0, np.nan, 1.0], [0.0, np.nan, np.nan, 0.0]])
    environment = RouteEnvironment(scores=scores, contexts=np.ones((4, 1)))
    oracle = one_arm_oracle(environment, budgets=[4], seed=0)
    assert measured("outscore-the-best", environment, oracle) == [0.0]
    only = compared_selector("a", "random", {})
    runs = [replay(only, environment, budgets=[4], seed=seed) for seed in range(6)]
    assert {len(run.told) for run in runs} == {4}
    for run in runs:
        got = scores[run.told.arms, environment.order(run.seed)]
        lead = got[~np.isnan(got)].mean() - 1.0
        assert measured("outscore-the-best", environment, run) == [pytest.approx(lead)]


@pytest.mark.parametrize(
    ("batch", "told"),
    [
        (Batch([0, 1], [4, 4]), "proposed before"),
        (Batch([1], [3]), "proposed before"),
        (Batch([3], [5]), "invalid entry"),
        (Batch([0], [120]), "invalid entry"),
    ],
)
def test_a_prompt_is_asked_about_once(batch, told):
    check = two_types().batch_validator()
    check(Batch([0], [3]))
    with pytest.raises(ValueError, match=told):
        check(batch)


def test_shares_of_picks_are_counted_part_by_part():
    environment = two_types(types=np.array([0] * 119 + [1]))
    assert parts(120) == [*range(12, 121, 12)]
    assert parts(25) == [3, 6, 9, 12, 15, 18, 21, 24, 25]
    assert parts(4) == [1, 2, 3, 4]
    shares = picks_by(environment, 120)(one_arm_oracle(environment, budgets=[120], seed=0))
    assert shares.shape == (10, 2, 3)
    np.testing.assert_array_equal(shares[:, 0], [[0.0, 0.0, 1.0]] * 10)
    rare = (
        int(np.flatnonzero(environment.order(0) == 119)[0]) // 12
    )  # the one example of type 1 comes in this part
    assert np.flatnonzero(~np.isnan(shares[:, 1, 2])).tolist() == [rare]
    assert picks_by(two_types(types=None), 120) is None


def test_an_average_of_shares_leaves_out_where_a_type_did_not_come():
    shares = average_picks(
        [np.array([[[1.0]], [[np.nan]]]), np.array([[[0.0]], [[np.nan]]]), np.full((2, 1, 1), np.nan)]
    )
    np.testing.assert_array_equal(shares, [[[0.5]], [[np.nan]]])


def test_the_metric_goes_with_the_objective():
    assert metric_for("routes", None) == "outscore-the-best"
    assert metric_for("tables of scores", "ndcg") == "ndcg"
    with pytest.raises(
        SpecError, match=r"^--metric accuracy is only for tables of scores and duels; for routes choose "
    ):
        metric_for("routes", "accuracy")
    with pytest.raises(SpecError, match=r"^--metric regret is only for routes; for tables of scores choose "):
        metric_for("tables of scores", "regret")


def test_the_length_of_contexts_is_not_the_users_to_set():
    with pytest.raises(SpecError, match="dim is set by --contexts or --embed; remove dim"):
        router(dim=3)
