import sys
import threading
from dataclasses import replace

import numpy as np
import pytest

from winnow.algorithms.best_mean.metrics import NOBODY
from winnow.algorithms.protocols import Batch
from winnow.tasks.errors import SpecError
from winnow.tasks.simulation.environments import DuelEnvironment, ScoreEnvironment
from winnow.tasks.simulation.results import average, claims_truly, measure_by
from winnow.tasks.simulation.simulate import (
    SelectorFailed,
    compared_selector,
    replay,
    require_arms,
    simulate,
    simulators,
)

BROKEN = '''
"""A stranger's selectors, each broken in one way."""

from winnow.algorithms.best_mean.baselines.row_mean import RowMean
from winnow.algorithms.protocols import Batch


class Raises(RowMean):
    """Fails in its second round."""

    objective = "best-mean"

    def ask(self, rng):
        if self._matrix.told.any():
            raise RuntimeError("out of\\nideas")
        return super().ask(rng)


class Repeats(RowMean):
    """Asks the same pair for ever."""

    objective = "best-mean"

    def ask(self, rng):
        return Batch([0], [0])

    def tell(self, batch, outcomes):
        pass


class Outside(Repeats):
    """Asks for an arm that there is not."""

    def ask(self, rng):
        return Batch([-1], [0])


class Overrates(RowMean):
    """Recommends an arm that there is not."""

    objective = "best-mean"

    def decision(self):
        from dataclasses import replace

        return replace(super().decision(), best=9)


class Remembers(RowMean):
    """Ranks arms by what the history says of the last example."""

    objective = "best-mean"

    def __init__(self, setting, *, history: object = None):
        super().__init__(setting)
        self._history = history

    def decision(self):
        from dataclasses import replace

        best = 0 if self._history is None else int(self._history.sum())
        return replace(super().decision(), best=best)
'''


@pytest.fixture
def strangers(tmp_path, monkeypatch):
    """Third-party selectors, which the simulating processes find as well."""
    (tmp_path / "strange_selectors.py").write_text(BROKEN)
    info = tmp_path / "strange-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strange\nVersion: 1.0\n")
    names = ("Raises", "Repeats", "Outside", "Overrates", "Remembers")
    points = [f"{name.lower()} = strange_selectors:{name}" for name in names]
    (info / "entry_points.txt").write_text("\n".join(["[winnow.selectors]", *points]))
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("strange_selectors", None)


def whole_examples(batch_size=2):
    return compared_selector("whole", "filled-subset", {"batch_size": batch_size})


TABLE = ScoreEnvironment(scores=np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]]))


def test_a_run_is_seen_at_the_last_whole_batch_that_a_budget_pays_for():
    run = replay(whole_examples(), TABLE, budgets=[1, 2, 3, 8], seed=0)
    assert run.spent.tolist() == [0, 2, 2, 8]
    assert run.best.tolist() == [NOBODY, 0, 0, 0]
    np.testing.assert_array_equal(run.ranking, [[np.nan, np.nan], [1, 0], [1, 0], [1, 0]])


def test_the_last_budget_ends_a_run_even_in_the_middle_of_a_batch():
    assert replay(whole_examples(), TABLE, budgets=[3], seed=0).spent.tolist() == [3]


def test_a_run_that_stops_by_itself_keeps_its_answer():
    sure = compared_selector("sure", "row-mean", {"batch_size": 1, "delta": 0.9})
    scores = np.repeat([[1.0], [0.0]], 60, axis=1)
    run = replay(sure, ScoreEnvironment(scores=scores), budgets=[60, 119, 120], seed=0)
    assert run.spent[1] < 119
    assert run.spent[1] == run.spent[2]
    assert run.best.tolist() == [0, 0, 0]


def test_unscored_pairs_are_spent():
    scores = np.where(np.eye(4, dtype=bool), np.nan, 0.5)
    run = replay(
        compared_selector("a", "row-mean", {"batch_size": 4}),
        ScoreEnvironment(scores=scores),
        budgets=[4, 16],
        seed=1,
    )
    assert run.spent.tolist() == [4, 16]
    assert run.ranking[1].tolist() == [0.5] * 4


METRICS = {
    # Arm 0 is known from 2 pairs on; before there is no answer, and a ranking of equals.
    "accuracy": [0.0, 1.0, 1.0],
    "top1-eps": [0.0, 1.0, 1.0],
    "top1-mcnemar": [0.0, 1.0, 1.0],
    "ndcg": [(1 + 1 / np.log2(3)) / 2, 1.0, 1.0],
}


@pytest.mark.parametrize("metric", METRICS)
def test_the_curve_of_a_tiny_table_is_known_by_hand(metric):
    run = replay(whole_examples(), TABLE, budgets=[1, 2, 8], seed=0)
    measured = measure_by(metric, TABLE, gap=0.001, level=0.5)(run)
    assert measured.tolist() == pytest.approx(METRICS[metric])


def test_what_counts_as_right_depends_on_the_metric():
    scores = np.array([[1.0, 1.0, 1.0, 0.9], [1.0, 1.0, 1.0, 0.8], [0.0, 0.0, 0.0, 0.0]])
    seen = ScoreEnvironment(scores=scores[[1, 2]])
    run = replay(whole_examples(3), seen, budgets=[8], seed=0)  # recommends arm 0, called 1 here
    values = {
        metric: measure_by(metric, ScoreEnvironment(scores=scores[[1, 0, 2]]), gap=0.03, level=0.2)(run)[0]
        for metric in ("accuracy", "top1-eps", "top1-mcnemar")
    }
    assert values == {"accuracy": 0.0, "top1-eps": 1.0, "top1-mcnemar": 1.0}


def ended_with(best):
    return replace(replay(whole_examples(), TABLE, budgets=[8], seed=0), best=np.array([best]))


def test_a_run_that_stopped_is_wrong_where_its_claim_is():
    scores = np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]])

    def wrong(**params):
        truly = claims_truly(compared_selector("a", "champion", params), ScoreEnvironment(scores=scores))
        return [not truly(ended_with(arm)) for arm in (0, 1, 2, NOBODY)]

    assert wrong(delta=0.05) == [False, True, True, True]
    assert wrong(delta=0.05, epsilon=0.25) == [False, False, True, True]


def test_a_gate_and_the_m_best_claim_nothing_of_who_is_the_best():
    """Who leads at the end of a gate is told beside, and is often another than the best."""
    assert claims_truly(compared_selector("a", "gate", {"delta": 0.05, "baseline": 1}), TABLE) is None
    assert claims_truly(compared_selector("a", "champion", {"delta": 0.05, "top_m": 2}), TABLE) is None


def test_where_scores_are_missing_that_nobody_asked_for_nobody_knows_what_is_true():
    partial = ScoreEnvironment(scores=np.array([[1.0, 0.5], [np.nan, np.nan]]), is_partial=True)
    assert claims_truly(compared_selector("a", "champion", {"delta": 0.05}), partial) is None


def test_of_duels_in_a_circle_no_arm_is_named_rightly():
    circle = np.array([[0.5, 0.8, 0.3], [0.2, 0.5, 0.9], [0.7, 0.1, 0.5]])
    truly = claims_truly(
        compared_selector("a", "llm-po", {"delta": 0.05}), DuelEnvironment(preferences=circle)
    )
    assert [truly(ended_with(arm)) for arm in range(3)] == [False] * 3
    within = compared_selector("a", "llm-po", {"delta": 0.05, "epsilon": 0.2})
    assert claims_truly(within, DuelEnvironment(preferences=circle))(ended_with(0))


def test_an_average_has_the_standard_error_of_its_runs():
    curve = average("a", [np.array([0.0, 1.0]), np.array([1.0, 1.0]), np.array([1.0, 1.0])])
    assert curve.runs == 3
    assert curve.means.tolist() == pytest.approx([2 / 3, 1.0])
    assert curve.errors.tolist() == pytest.approx([1 / 3, 0.0])  # sqrt(1/3) / sqrt(3)
    assert curve.budget_to_target([10, 20]) == 20
    assert average("a", [np.array([0.5])]).budget_to_target([10]) is None


def test_processes_have_ended_when_all_runs_were_played():
    before = set(threading.enumerate())
    with simulators(2) as pool:
        assert list(pool.map(abs, [-1, 2])) == [1, 2]
    assert set(threading.enumerate()) <= before


def test_runs_are_the_same_with_one_worker_and_with_two():
    environment = ScoreEnvironment(scores=np.random.default_rng(0).random((5, 30)))
    two = [compared_selector(name, name, {"batch_size": 4}) for name in ("ucb-e", "row-mean")]
    given = {"budgets": [10, 40, 80], "seeds": range(3, 6)}
    one, both = ([*simulate(environment, two, workers=count, **given)] for count in (1, 2))
    assert [(run.label, run.seed) for run in one] == [(e.label, seed) for seed in (3, 4, 5) for e in two]
    alone = replay(two[0], environment, budgets=[10, 40, 80], seed=4)
    for mine, theirs in zip([*one, one[2]], [*both, alone], strict=True):
        assert (mine.label, mine.seed) == (theirs.label, theirs.seed)
        for field in ("spent", "best", "ranking"):
            np.testing.assert_array_equal(getattr(mine, field), getattr(theirs, field))
    assert not np.array_equal(one[0].ranking, one[2].ranking, equal_nan=True)


BREAKAGES = {
    "raises": "in round 2: RuntimeError: out of ideas",
    "repeats": "in round 2: ValueError: it proposed a pair that it had proposed before",
    "outside": "in round 1: ValueError: ",
    "overrates": "after round 1: ValueError: it recommends arm 9 of 2",
}


@pytest.mark.parametrize("name", BREAKAGES)
def test_a_broken_selector_is_named_in_one_sentence(strangers, name):
    with pytest.raises(SelectorFailed) as caught:
        replay(compared_selector(name, name, {"batch_size": 1}), TABLE, budgets=[1, 4], seed=5)
    message = str(caught.value)
    assert message.startswith(f"selector '{name}' with seed 5 failed {BREAKAGES[name]}")
    assert message.endswith("; fix it or remove it")
    assert "\n" not in message


def test_a_broken_selector_is_named_from_another_process(strangers):
    with pytest.raises(SelectorFailed, match=r"^selector 'raises' with seed 7 failed in round 2"):
        list(simulate(TABLE, [compared_selector("raises", "raises", {})], budgets=[8], seeds=[7], workers=1))


def test_a_history_reaches_those_who_use_it(strangers):
    knows = compared_selector("knows", "remembers", {})
    declines = compared_selector("declines", "remembers", {"history": None})
    assert [each.uses for each in (knows, declines, whole_examples())] == [{"history"}, set(), set()]
    past = ScoreEnvironment(scores=TABLE.scores, history=np.array([[0.0, 0.0, 0.0, 1.0]]))
    bests = [replay(each, past, budgets=[8], seed=0).best[0] for each in (knows, declines, whole_examples())]
    assert bests == [1, 0, 0]
    assert replay(knows, TABLE, budgets=[8], seed=0).best[0] == 0
    runs = simulate(past, [knows, declines], budgets=[8], seeds=[0], workers=1)
    assert [run.best[0] for run in runs] == [1, 0]


BAD = {
    "name": ("ucbe", {}, "no selector is called 'ucbe' (did you mean 'ucb-e'?)"),
    "parameter": ("ucb-e", {"b": 1}, "selector 'ucb-e' has no parameter 'b'"),
    "value": ("ucb-e", {"a": -1}, "a must be non-negative and finite, got -1"),
    "budget": ("ucb-e", {"budget": 9}, "budget is set by --budgets; remove budget"),
    "a history": ("ucb-e", {"history": "x.npz"}, "history is set by --history or --history-share"),
    "no history": ("ucb-e", {"history": None}, "ucb-e has no parameter history; remove history=none"),
}


@pytest.mark.parametrize(("selector", "params", "told"), BAD.values(), ids=BAD)
def test_what_cannot_run_is_refused_before_anything_runs(selector, params, told):
    with pytest.raises(SpecError) as caught:
        compared_selector("label", selector, params)
    assert str(caught.value).startswith(f"--selector label: {told}")


def test_a_number_of_arms_is_held_against_those_of_the_table():
    three = compared_selector("three", "champion", {"top_m": 3, "delta": 0.1})
    require_arms([three], 4)
    with pytest.raises(
        SpecError, match="--selector three: top_m=3 needs more than 3 candidates, and the table"
    ):
        require_arms([three], 3)
    with pytest.raises(SpecError, match="--selector last: baseline=4 needs more than 4 candidates"):
        require_arms([compared_selector("last", "gate", {"baseline": 4})], 4)


PREFERENCES = np.array([[0.5, 0.9, 1.0], [0.1, 0.5, np.nan], [0.0, np.nan, 0.5]])


def test_duels_are_won_with_the_probabilities_of_the_table():
    environment = DuelEnvironment(preferences=PREFERENCES)
    batch = Batch(np.tile([[0, 1], [1, 0], [2, 0], [1, 2]], (500, 1)), np.zeros(2000, dtype=int))
    outcomes = environment.outcomes(batch, 3, 4).reshape(500, 4)
    assert outcomes[:, 0].mean() == pytest.approx(0.9, abs=0.05)  # 3.7 deviations
    assert outcomes[:, 1].mean() == pytest.approx(0.1, abs=0.05)
    assert not outcomes[:, 2].any()
    assert np.isnan(outcomes[:, 3]).all()
    np.testing.assert_array_equal(environment.outcomes(batch, 3, 4), outcomes.ravel())
    assert not np.array_equal(environment.outcomes(batch, 3, 5), outcomes.ravel(), equal_nan=True)


def test_duels_are_simulated_until_they_are_sure():
    environment = DuelEnvironment(preferences=PREFERENCES[:2, :2])
    sure = compared_selector("sure", "llm-po", {"batch_size": 1, "delta": 0.05})
    run = replay(sure, environment, budgets=[10, 1000], seed=0)
    assert run.reason == "confident"
    assert 10 <= run.spent[-1] < 100
    assert measure_by("accuracy", environment, gap=0.0, level=0.1)(run)[-1] == 1.0


def test_features_reach_those_who_use_them():
    bare = DuelEnvironment(preferences=np.full((2, 2), 0.5))
    environment = DuelEnvironment(preferences=bare.preferences, features=np.eye(2))
    structured = compared_selector("structured", "llm-po-bt", {"batch_size": 1})
    assert replay(structured, environment, budgets=[5], seed=0).spent.tolist() == [5]
    with pytest.raises(SelectorFailed, match="at the start: InvalidParameter: features must be an array"):
        replay(structured, bare, budgets=[5], seed=0)


def test_intervals_are_left_out_where_nobody_looks_at_them():
    assert TABLE.settings({"a": 0.5}) == {"intervals": False}
    assert TABLE.settings({"delta": 0.1}) == TABLE.settings({"intervals": True}) == {}


def test_coverage_is_the_share_of_the_asked_pairs_that_have_a_score():
    scores = np.array([[1.0, np.nan, 0.5, np.nan], [np.nan, np.nan, np.nan, 0.0]])
    environment = ScoreEnvironment(scores=scores, is_partial=True)
    run = replay(whole_examples(), environment, budgets=[1, 2, 4, 8], seed=0)
    known = ~np.isnan(scores[run.told.arms, run.told.examples])
    assert run.spent.tolist() == [0, 2, 4, 8]
    expected = [0.0, known[:2].mean(), known[:4].mean(), 3 / 8]
    assert measure_by("coverage", environment, gap=0.0, level=0.01)(run).tolist() == expected


@pytest.mark.parametrize("selector", ["row-mean", "ucb-e", "pulse"])
def test_where_a_table_is_partial_no_arm_is_dropped_for_what_nobody_asked(selector):
    scores = np.full((3, 40), np.nan)
    scores[0, :30], scores[1, :2], scores[2, :4] = 0.5, 1.0, 0.25
    asked = {
        is_partial: replay(
            compared_selector("it", selector, {"batch_size": 4}),
            ScoreEnvironment(scores=scores, is_partial=is_partial),
            budgets=[scores.size],
            seed=1,
        )
        for is_partial in (True, False)
    }
    assert np.bincount(asked[True].told.arms).tolist() == [40, 40, 40]
    assert np.bincount(asked[False].told.arms, minlength=3).min() < 40
    chosen = compared_selector("it", selector, {"batch_size": 4, "max_unscored": 0.5})
    strict = replay(chosen, ScoreEnvironment(scores=scores, is_partial=True), budgets=[scores.size], seed=1)
    assert strict.told == asked[False].told


def test_ties_are_left_open_as_in_a_campaign_that_begins_now():
    """Five equal arms end after two of five rows; with resolved ties all is asked."""
    table = ScoreEnvironment(scores=np.ones((5, 200)))
    spent = {}
    for ties in ({}, {"ties": "open"}, {"ties": "resolve"}):
        compared = compared_selector("a", "champion", {"delta": 0.05, **ties})
        (run,) = simulate(table, [compared], budgets=[1000], seeds=[1], workers=1)
        spent[str(ties)] = int(run.spent[-1])
    opened, given, resolved = spent.values()
    assert opened == given < resolved == 1000
