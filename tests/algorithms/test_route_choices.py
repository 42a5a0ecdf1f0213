"""Which arm is chosen, and why: definitions followed step by step."""

import numpy as np
import pytest
from selector_worlds import RouteWorld

from winnow.algorithms.errors import InvalidParameter, MalformedBatch, UnusableContexts
from winnow.algorithms.protocols import Batch, round_rng
from winnow.algorithms.registry import create_selector
from winnow.algorithms.route.contexts import unit_rows
from winnow.algorithms.route.protocol import RoutedBatch


def solved(kernel, alpha, told, context):
    """Mean and deviation from (context, score) pairs, or +inf where there are none."""
    if not told:
        return np.inf, np.inf
    inputs, scores = np.array([y for y, _ in told]), np.array([score for _, score in told])
    matrix = kernel(inputs @ inputs.T) + alpha * np.eye(len(told))
    column = kernel(inputs @ context)
    mean, explained = column @ np.linalg.solve(matrix, np.column_stack([scores, column]))
    return mean, np.sqrt((kernel(np.ones(1))[0] - explained) / alpha)


@pytest.mark.parametrize(
    ("params", "kernel"),
    [
        ({"kernel": "linear"}, lambda products: products),
        ({"kernel": "poly3", "gamma": 2.0}, lambda products: (1.0 + 2.0 * products) ** 3),
        ({"kernel": "rbf", "bandwidth": 0.8}, lambda products: np.exp((products - 1.0) / 0.64)),
    ],
    ids=["linear", "poly3", "rbf"],
)
def test_pak_ucb_chooses_as_algorithm_2_does(params, kernel):
    world = RouteWorld(n_examples=120, seed=2)
    selector = world.selector("pak-ucb", batch_size=1, alpha=0.7, **params)
    eta = np.sqrt(2.0 * np.log(2.0 * 4 / 0.05))
    told = [[] for _ in range(4)]
    for batch, outcomes in world.rounds(selector):
        context = batch.contexts[0]
        means, deviations = np.array([solved(kernel, 0.7, each, context) for each in told]).T
        assert batch.arms[0] == (means + eta * deviations).argmax()
        told[batch.arms[0]].append((context, outcomes[0]))


def algorithm_3(world, eta, alpha, kernel):
    """Arms and stages as the paper's pseudocode has them; of the too uncertain arms, the widest."""
    sets = [[[] for _ in range(30)] for _ in range(world.n_arms)]
    chosen = []
    for t, context in enumerate(world.contexts):
        arms, m = list(range(world.n_arms)), 1
        while True:
            means, widths = np.array([solved(kernel, alpha, sets[g][m], context) for g in arms]).T
            if ((eta + np.sqrt(alpha)) * widths <= 1.0 / np.sqrt(len(world.contexts))).all():
                chosen.append((arms[(means + eta * widths).argmax()], None))
                break
            if ((2.0 * eta + np.sqrt(alpha)) * widths <= 2.0 ** (1 - m)).all():
                highest = means + (2.0 * eta + np.sqrt(alpha)) * widths
                arms = [
                    g for g, high in zip(arms, highest, strict=True) if high >= highest.max() - 2.0 ** (2 - m)
                ]
                m += 1
                continue
            arm = arms[widths.argmax()]
            sets[arm][m].append((context, world.scores[arm, t]))
            chosen.append((arm, m))
            break
    return chosen


@pytest.mark.parametrize(("eta", "settles"), [(0.02, True), (0.3, False)])
def test_sup_pak_ucb_chooses_as_algorithm_3_does(eta, settles):
    world = RouteWorld(n_examples=300, seed=3)
    # Types far apart, so that stages are left; prompts that differ, so that no two deviations are equal.
    world.contexts = np.eye(6)[world.types] + 0.01 * world.contexts
    world.contexts /= np.linalg.norm(world.contexts, axis=1, keepdims=True)
    selector = world.selector("sup-pak-ucb", batch_size=1, alpha=0.1, eta=eta, bandwidth=0.5)
    wanted = algorithm_3(world, eta, 0.1, lambda products: np.exp((products - 1.0) / 0.25))
    stages = {stage for _, stage in wanted}
    assert len(stages) > 2
    assert (None in stages) == settles
    assert [int(batch.arms[0]) for batch, _ in world.rounds(selector)] == [arm for arm, _ in wanted]
    for m, beliefs in enumerate(selector.stages, start=1):
        n_scores = sum(model.n for model in beliefs.models if model is not None)
        assert n_scores == sum(stage == m for _, stage in wanted)


@pytest.mark.parametrize("name", ["pak-ucb", "rff-ucb", "kernel-ucb", "lin-ucb", "sup-pak-ucb", "naive-krr"])
def test_in_a_batch_every_arm_that_was_never_tried_goes_first_once(name):
    world = RouteWorld(n_arms=5, dim=6)
    batch = world.selector(name, batch_size=12).ask(round_rng(0, 0), world.contexts[:12])
    assert batch.arms[:5].tolist() == [0, 1, 2, 3, 4]
    assert np.bincount(batch.arms, minlength=5).min() >= 1


@pytest.mark.parametrize("name", ["pak-ucb", "rff-ucb"])
def test_alike_prompts_are_spread_over_arms_that_are_as_uncertain_batches_in_flight_included(name):
    world = RouteWorld(n_arms=3)
    selector = world.selector(name)
    asked = [selector.ask(round_rng(0, t), np.tile(world.contexts[0], (6, 1))) for t in range(2)]
    for batch in asked:
        assert np.bincount(batch.arms).tolist() == [2, 2, 2]


def test_a_pending_pair_makes_a_choice_as_certain_as_a_told_one_does():
    world = RouteWorld(n_arms=2, n_examples=200)
    ahead, behind = (world.selector("pak-ucb", eta=2.0, bandwidth=0.5) for _ in range(2))
    first = RoutedBatch([0, 1], [0, 1], world.contexts[:2])
    for selector in (ahead, behind):
        selector.tell(first, [0.0, 0.0])
    batch = ahead.ask(round_rng(0, 0), world.contexts[2:32])
    for context, arm, example in zip(batch.contexts, batch.arms, batch.examples, strict=True):
        one = behind.ask(round_rng(0, 0), context[np.newaxis])
        assert one.arms[0] == arm
        # A score of 0 leaves every mean at 0, where the pending ones are.
        behind.tell(RoutedBatch([arm], [example], context[np.newaxis]), [0.0])


@pytest.mark.parametrize("change", [lambda router: router.remove_arm(3), lambda router: router.add_arm()])
def test_pending_pairs_are_reckoned_with_once_after_an_arm_was_removed_or_added(change):
    world = RouteWorld(n_examples=200)
    selector, again = (world.selector("pak-ucb", bandwidth=0.5) for _ in range(2))
    for each in (selector, again):
        each.ask(round_rng(0, 0), world.contexts[:40])
        each.ask(round_rng(0, 1), world.contexts[40:41])  # which makes the first ones be reckoned with
        change(each)
    again.tell(RoutedBatch(*np.empty((2, 0), dtype=np.int64), np.empty((0, 6))), [])
    later = world.contexts[41:81]
    assert selector.ask(round_rng(0, 2), later) == again.ask(round_rng(0, 2), later)


def test_a_row_of_about_length_1_is_rescaled_once_and_the_same_wherever_it_stands():
    rng = np.random.default_rng(6)
    rows = rng.standard_normal((50, 384))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    used = unit_rows(rows)
    np.testing.assert_allclose(np.linalg.norm(used, axis=1), 1.0, rtol=1e-14)
    np.testing.assert_array_equal(unit_rows(used), used)
    for row in range(50):
        np.testing.assert_array_equal(unit_rows(rows[row : row + 1])[0], used[row])
    with pytest.raises(UnusableContexts, match=r"row 2 .* got length 1\.0011"):
        unit_rows(np.eye(3) * [[1.0], [1.0], [1.0011]])


def test_routed_batches_are_equal_when_their_contexts_are_too():
    batch = RoutedBatch([1], [2], [[0.6, 0.8]])
    assert batch == RoutedBatch([1], [2], [[0.6, 0.8]])
    assert batch != RoutedBatch([1], [2], [[0.8, 0.6]])
    assert batch != Batch([1], [2])
    assert Batch([1], [2]) != batch
    with pytest.raises(ValueError, match="read-only"):
        batch.contexts[0, 0] = 0.0
    with pytest.raises(UnusableContexts, match=r"shape \(1, d\), a row for each prompt, got shape \(2, 2\)"):
        RoutedBatch([1], [2], np.eye(2))


def test_examples_that_do_not_go_with_the_contexts_are_refused():
    world = RouteWorld()
    selector = world.selector("random")
    with pytest.raises(MalformedBatch, match=r"examples must be of shape \(2,\)"):
        selector.ask(round_rng(0, 0), world.contexts[:2], examples=[3])
    with pytest.raises(MalformedBatch, match="examples must be integers"):
        selector.ask(round_rng(0, 0), world.contexts[:1], examples=[0.5])
    assert selector.next_examples().tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("pak-ucb", {}, "dim must be set to"),
        ("pak-ucb", {"dim": 3, "kernel": "cubic"}, "'linear' or 'poly3' or 'rbf'"),
        ("pak-ucb", {"dim": 3, "bandwidth": 0.0}, "bandwidth must be positive"),
        ("rff-ucb", {"dim": 3, "kernel": "poly3"}, "kernel must be 'rbf'"),
        ("rff-ucb", {"dim": 3, "n_features": 0}, "n_features must be at least 1"),
        ("sup-rff-ucb", {"dim": 3, "feature_seed": -1}, "feature_seed must be at least 0"),
        ("sup-pak-ucb", {"dim": 3, "horizon": 0}, "horizon must be at least 1 or None"),
        ("naive-krr", {"dim": 3, "eta": 1.0}, "naive-krr does not explore"),
    ],
)
def test_parameters_that_cannot_be_used_are_refused_by_name(name, params, message):
    with pytest.raises(InvalidParameter, match=message):
        create_selector(name, n_arms=2, n_examples=5, **params)
