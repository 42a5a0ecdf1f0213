"""The exported arrays choose as the router they come from."""

import io
import json

import numpy as np
import pytest
from selector_worlds import RouteWorld

from winnow.algorithms.errors import InvalidParameter, UnusableContexts
from winnow.algorithms.registry import selector_names
from winnow.algorithms.route.policy import Policy

FORMS = [
    ("pak-ucb", {"kernel": "linear"}, "linear"),
    ("pak-ucb", {"kernel": "poly3", "gamma": 2.0}, "kernel"),
    ("pak-ucb", {"kernel": "rbf", "bandwidth": 0.7}, "kernel"),
    ("naive-krr", {"kernel": "poly3"}, "kernel"),
    ("rff-ucb", {"n_features": 30}, "fourier"),
    ("kernel-ucb", {"kernel": "rbf", "bandwidth": 0.9}, "joint-kernel"),
    ("kernel-ucb", {"kernel": "poly3", "gamma": 2.0}, "joint-kernel"),
    ("lin-ucb", {}, "linear"),
]


def trained(name, world, **params):
    selector = world.selector(name, **params)
    for _ in world.rounds(selector):
        pass
    return selector


@pytest.mark.parametrize(("name", "params", "form"), FORMS)
def test_a_policy_predicts_the_means_of_its_router_and_chooses_the_highest(name, params, form):
    world = RouteWorld(n_examples=200)
    selector = trained(name, world, **params)
    policy = selector.policy()
    assert policy.parameters["form"] == form
    for context in world.contexts[:30]:
        means, _ = selector.predict(context)
        np.testing.assert_allclose(policy.scores(context), means, atol=1e-5)
        assert policy.choose(context) == means.argmax()


@pytest.mark.parametrize("name", ["sup-pak-ucb", "sup-rff-ucb"])
def test_the_policy_of_a_staged_router_has_learned_from_every_score(name):
    world = RouteWorld(n_examples=200)
    staged = trained(name, world)
    plain = world.selector(name.removeprefix("sup-"), bandwidth=3.0)
    for batch, outcomes in world.rounds(world.selector(name)):
        plain.tell(batch, outcomes)
    for context in world.contexts[:10]:
        np.testing.assert_allclose(staged.policy().scores(context), plain.policy().scores(context))


def test_the_policy_of_random_choices_is_the_arm_with_the_best_mean():
    world = RouteWorld(n_examples=200)
    selector = trained("random", world)
    decision = selector.decision()
    assert selector.policy().choose(world.contexts[0]) == decision.best
    np.testing.assert_array_equal(selector.policy().scores(world.contexts[0]), decision.estimates)


@pytest.mark.parametrize("name", selector_names("route"))
def test_a_policy_goes_through_files_and_back(name):
    world = RouteWorld(n_examples=60)
    policy = trained(name, world).policy()
    file = io.BytesIO()
    np.savez(file, **policy.arrays)
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        again = Policy(dict(arrays), json.loads(json.dumps(policy.parameters)))
    for context in world.contexts[:5]:
        np.testing.assert_array_equal(again.scores(context), policy.scores(context))


@pytest.mark.parametrize("name", selector_names("route"))
def test_a_policy_that_learned_nothing_chooses_arm_0_and_one_that_lost_an_arm_does_not_choose_it(name):
    world = RouteWorld(n_examples=60)
    policy = world.selector(name).policy()
    assert np.isnan(policy.scores(world.contexts[0])).all()
    assert policy.choose(world.contexts[0]) == 0
    selector = trained(name, world)
    best = selector.policy().choose(world.contexts[0])
    selector.remove_arm(best)
    assert selector.policy().choose(world.contexts[0]) != best


def test_files_of_something_else_and_contexts_of_another_encoder_are_refused():
    policy = trained("pak-ucb", RouteWorld()).policy()
    with pytest.raises(InvalidParameter, match="form must be one of"):
        Policy(policy.arrays, {})
    with pytest.raises(InvalidParameter, match="with 'contexts'"):
        Policy({"weights": np.zeros(1), "usable": np.ones(1)}, policy.parameters)
    with pytest.raises(InvalidParameter, match="with 'kernel'"):
        Policy(policy.arrays, {"form": "kernel", "dim": 6, "n_arms": 4, "centre": 0.0})
    with pytest.raises(UnusableContexts, match=r"shape \(B, 6\), got shape \(1, 7\)"):
        policy.choose(np.eye(7)[0])


KERNEL = {"name": "rbf", "gamma": 1.0, "bandwidth": 0.5, "squared_length": 1.0}


@pytest.mark.parametrize(
    ("arrays", "parameters", "message"),
    [
        ({"arms": np.array([0, 4])}, {}, "arms must be from 0 to 3, got 4"),
        ({"arms": np.array([-1, 0])}, {}, "arms must be from 0 to 3, got -1"),
        ({"contexts": np.eye(3)[:2]}, {}, r"contexts must be of shape \(n, d\)"),
        ({"weights": np.zeros(3)}, {}, r"contexts must be of shape \(n, d\)"),
        ({"weights": np.array([0.0, np.nan])}, {}, "weights must be of shape"),
        ({"usable": np.ones(4)}, {}, "usable must be of shape"),
        ({}, {"n_arms": 3}, "usable must be of shape"),
        ({}, {"n_arms": True}, "n_arms must be an integer of at least 1"),
        ({}, {"dim": "6"}, "dim must be an integer of at least 1"),
        ({}, {"centre": float("nan")}, "centre must be a finite number"),
        ({}, {"form": ["kernel"]}, "form must be one of"),
        ({}, {"kernel": KERNEL | {"name": "cosine"}}, "kernel must be one of linear, poly3, rbf"),
        ({}, {"kernel": KERNEL | {"bandwidth": 0.0}}, "bandwidth must be positive"),
        ({}, {"kernel": {"name": "rbf"}}, "kernel must be a mapping with bandwidth"),
    ],
)
def test_what_cannot_be_a_policy_is_refused_before_it_chooses(arrays, parameters, message):
    whole = {
        "weights": np.ones(2),
        "contexts": np.eye(6, dtype=np.float32)[:2],
        "arms": np.array([0, 3]),
        "usable": np.ones(4, dtype=bool),
    }
    described = {"form": "kernel", "dim": 6, "n_arms": 4, "centre": 0.0, "kernel": KERNEL}
    assert Policy(whole, described).choose(np.eye(6)[0]) == 0
    with pytest.raises(InvalidParameter, match=message):
        Policy(whole | arrays, described | parameters)
