"""The growing regressions against their definitions, solved from scratch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries

from winnow.algorithms.route.config import RouteConfig
from winnow.algorithms.route.posteriors.kernel_ridge import KernelRidge
from winnow.algorithms.route.posteriors.kernels import Kernel, RandomFeatures
from winnow.algorithms.route.posteriors.linear_ridge import SCORES_PER_REFRESH, LinearRidge

KERNELS = [
    Kernel(name="linear", gamma=1.0, bandwidth=1.0),
    Kernel(name="poly3", gamma=5.0, bandwidth=1.0),
    Kernel(name="rbf", gamma=1.0, bandwidth=0.5),
]


def unit(rng, *shape):
    rows = rng.standard_normal(shape)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def formula(name, x, y):
    """k(x, y) as it is defined."""
    if name == "rbf":
        return np.exp(-np.sum((x - y) ** 2) / (2.0 * 0.5**2))
    return x @ y if name == "linear" else (1.0 + 5.0 * (x @ y)) ** 3


def by_definition(name, alpha, inputs, scores, x):
    matrix = np.array([[formula(name, a, b) for b in inputs] for a in inputs]) + alpha * np.eye(len(inputs))
    column = np.array([formula(name, x, a) for a in inputs])
    mean = column @ np.linalg.solve(matrix, scores)
    return mean, np.sqrt((formula(name, x, x) - column @ np.linalg.solve(matrix, column)) / alpha)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("alpha", [0.25, 1.0, 3.0])
def test_a_kernel_regression_is_that_of_the_definition_after_every_score(kernel, alpha):
    rng = np.random.default_rng(0)
    ridge = KernelRidge(kernel, alpha, 4)
    inputs, scores = unit(rng, 40, 4), rng.uniform(-1.0, 1.0, 40)
    assert ridge.predict(inputs[0]) == (0.0, pytest.approx(np.sqrt(kernel.peak / alpha)))
    for n, (x, score) in enumerate(zip(inputs, scores, strict=True), start=1):
        ridge.learn(x, score)
        wanted = by_definition(kernel.name, alpha, inputs[:n], scores[:n], inputs[-1])
        np.testing.assert_allclose(ridge.predict(inputs[-1]), wanted, atol=1e-10)
    np.testing.assert_allclose(
        ridge.weights @ [formula(kernel.name, x, inputs[3]) for x in inputs], ridge.predict(inputs[3])[0]
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_three_hundred_scores_of_alike_prompts_do_not_wear_a_kernel_regression_out(kernel):
    rng = np.random.default_rng(1)
    inputs, scores = unit(rng, 300, 8) * 0.1 + np.eye(8)[0], rng.uniform(-1.0, 1.0, 300)
    inputs /= np.linalg.norm(inputs, axis=1, keepdims=True)
    ridge = KernelRidge(kernel, 1.0, 8)
    matrix = kernel.at(inputs @ inputs.T)
    for n, (x, score) in enumerate(zip(inputs, scores, strict=True)):
        if n:
            solved = np.linalg.solve(matrix[:n, :n] + np.eye(n), np.column_stack([scores[:n], matrix[:n, n]]))
            mean, explained = matrix[n, :n] @ solved
            wanted = (mean, np.sqrt(matrix[n, n] - explained))
            np.testing.assert_allclose(ridge.predict(x), wanted, atol=1e-8)
        ridge.learn(x, score)


def test_a_regression_on_features_is_that_of_the_definition_before_and_after_it_is_computed_anew():
    rng = np.random.default_rng(2)
    n, alpha = SCORES_PER_REFRESH + 300, 0.5
    inputs, scores = unit(rng, n, 12), rng.uniform(-1.0, 1.0, n)
    ridge, x = LinearRidge(12, alpha), unit(rng, 12)
    for row in range(n):
        ridge.learn(inputs[row], scores[row])
        if row % 400 == 398 or row == SCORES_PER_REFRESH - 1:
            told = inputs[: row + 1]
            solved = np.linalg.solve(
                told.T @ told + alpha * np.eye(12), np.column_stack([told.T @ scores[: row + 1], x])
            )
            mean, square = x @ solved
            np.testing.assert_allclose(ridge.predict(x), (mean, np.sqrt(square)), atol=1e-12)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(0, 30),
    n_features=st.integers(1, 12),
    alpha=st.floats(0.05, 20.0),
)
@tries(60)
def test_the_deviation_of_the_paper_is_the_root_of_the_inverse_form(seed, n, n_features, alpha):
    rng = np.random.default_rng(seed)
    config = RouteConfig(n_arms=1, n_examples=1, dim=3, bandwidth=0.7, alpha=alpha)
    features = RandomFeatures(config, n_features, feature_seed=seed)
    phi = features(unit(rng, 3))
    told = np.array([features(y) for y in unit(rng, n, 3)]).reshape(n, features.width)
    ridge = LinearRidge(features.width, alpha)
    for row in told:
        ridge.learn(row, 0.3)
    gram = told.T @ told
    published = 1.0 - phi @ np.linalg.solve(gram + alpha * np.eye(features.width), gram @ phi)
    assert phi @ phi == pytest.approx(1.0)
    assert ridge.predict(phi)[1] == pytest.approx(np.sqrt(published / alpha), abs=1e-7)


def test_features_multiply_to_about_the_kernel_and_are_drawn_from_their_seed_alone():
    config = RouteConfig(n_arms=1, n_examples=1, dim=5, bandwidth=0.6)
    features, others = (RandomFeatures(config, 4_000, feature_seed=seed) for seed in (0, 1))
    y, z = unit(np.random.default_rng(3), 2, 5)
    # Each of the 4 000 terms lies in [-1, 1]: off by 0.1 with probability below 2 exp(-20).
    assert features(y) @ features(z) == pytest.approx(np.exp(-np.sum((y - z) ** 2) / 0.72), abs=0.1)
    np.testing.assert_array_equal(features(y), RandomFeatures(config, 4_000, feature_seed=0)(y))
    assert not np.array_equal(features(y), others(y))


@pytest.mark.parametrize("make", [lambda: KernelRidge(KERNELS[2], 1.0, 4), lambda: LinearRidge(4, 1.0)])
def test_awaited_scores_make_it_as_certain_as_told_ones_and_leave_the_mean(make):
    rng = np.random.default_rng(4)
    inputs, x = unit(rng, 10, 4), unit(rng, 4)
    awaiting, told = make(), make()
    for y in inputs[:6]:
        awaiting.learn(y, 0.5)
        told.learn(y, 0.5)
    before = awaiting.predict(x)
    for y in inputs[6:]:
        awaiting.expect(y)
        told.learn(y, -1.0)
    mean, deviation = awaiting.predict(x)
    assert mean == before[0]
    assert deviation == pytest.approx(told.predict(x)[1], rel=1e-9)
    awaiting.forget()
    assert awaiting.predict(x) == before
    for y in inputs[6:]:
        awaiting.learn(y, -1.0)
    assert awaiting.predict(x) == told.predict(x)


@pytest.mark.parametrize("make", [lambda p: KernelRidge(KERNELS[2], 1.0, p), lambda p: LinearRidge(p, 1.0)])
def test_a_longer_input_leaves_what_was_learned(make):
    rng = np.random.default_rng(5)
    inputs, x = unit(rng, 20, 4), unit(rng, 5)
    widened, wide = make(4), make(5)
    for n, y in enumerate(inputs):
        if n == 10:
            widened.widen()
        widened.learn(np.append(y, 0.0) if n >= 10 else y, 0.1 * n)
        wide.learn(np.append(y, 0.0), 0.1 * n)
    np.testing.assert_allclose(widened.predict(x), wide.predict(x), rtol=1e-10)
