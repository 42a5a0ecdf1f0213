"""The logistic and the least-squares low-rank model, fitted row by row and at once."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.low_rank import joint_fit
from winnow.algorithms.low_rank.factor_model import LOGISTIC, fit_rows, sigmoid
from winnow.algorithms.low_rank.history import LEAST_SQUARES
from winnow.algorithms.low_rank.joint_fit import (
    fit_table,
    weight_of_ridge,
    with_rows_spread_evenly,
)
from winnow.algorithms.papers.best_mean import low_rank_predictions
from winnow.algorithms.papers.best_mean.low_rank_predictions import fit_observations

both_models = pytest.mark.parametrize("model", [LOGISTIC, LEAST_SQUARES], ids=["logistic", "least squares"])


def table_of(n_rows=40, n_columns=60, rank=2, seed=0, spread=1.5):
    """Probabilities of a logistic factor model, and 0/1 scores drawn from them."""
    rng = np.random.default_rng(seed)
    u, v = rng.normal(0, spread, (n_rows, rank)), rng.normal(0, 1, (n_columns, rank))
    chances = sigmoid(u @ v.T)
    return chances, (rng.random(chances.shape) < chances).astype(float)


def rows_of(scores, sizes, seed=0):
    rng = np.random.default_rng(seed)
    drawn = [rng.choice(scores.shape[1], size=size, replace=False) for size in sizes]
    return [(examples, scores[i, examples]) for i, examples in enumerate(drawn)]


def test_a_model_predicts_the_half_where_nothing_is_known_and_stays_inside_the_unit_interval():
    for model in (LOGISTIC, LEAST_SQUARES):
        assert model.predict(np.zeros(1))[0] == 0.5
        assert (model.predict(np.array([-90.0, 90.0])) == [0.0, 1.0]).all()


@both_models
def test_mean_and_curvature_are_derivatives_of_the_loss(model):
    z, step = np.linspace(-4, 4, 17), 1e-4
    for score in (0.0, 0.3, 1.0):
        below, here, above = (model.loss(score, z + shift) for shift in (-step, 0.0, step))
        np.testing.assert_allclose((above - below) / (2 * step), model.mean(z) - score, atol=1e-7)
        curvature = model.curvature(model.mean(z))
        np.testing.assert_allclose((above - 2 * here + below) / step**2, curvature, atol=1e-6)
        assert (curvature <= model.most_curvature).all()


@both_models
@pytest.mark.parametrize("weight", [1e-3, 0.5, 20.0])
def test_rows_fitted_to_frozen_columns_minimise_the_loss(model, weight):
    v = np.random.default_rng(1).normal(0, 1, (60, 4))
    rows = rows_of(table_of()[1], [3, 60, 10, 25])
    fitted = fit_rows(model, v, rows, np.zeros((4, 4)), ridge_weight=weight)
    for (examples, scores), u in zip(rows, fitted, strict=True):
        x = v[examples]
        found = minimize(
            lambda u, x=x, s=scores: model.loss(s, x @ u).sum() + 0.5 * weight * u @ u,
            np.zeros(4),
            jac=lambda u, x=x, s=scores: x.T @ (model.mean(x @ u) - s) + weight * u,
            method="L-BFGS-B",
            options={"ftol": 0.0, "gtol": 1e-9, "maxiter": 10_000},
        )
        np.testing.assert_allclose(u, found.x, rtol=0, atol=1e-6)


def test_a_row_is_fitted_alike_alone_and_among_others_from_near_and_from_far():
    v = np.random.default_rng(1).normal(0, 1, (60, 4))
    rows = rows_of(table_of()[1], [0, 60, 10, 25])
    together = fit_rows(LOGISTIC, v, rows, np.zeros((4, 4)), ridge_weight=0.5)
    far = fit_rows(LOGISTIC, v, rows, np.full((4, 4), 9.0), ridge_weight=0.5)
    alone = [fit_rows(LOGISTIC, v, [row], np.zeros((1, 4)), ridge_weight=0.5)[0] for row in rows]
    np.testing.assert_allclose(together, alone, atol=1e-6)
    np.testing.assert_allclose(together, far, atol=1e-6)
    assert not together[0].any()


def test_a_separable_row_with_next_to_no_ridge_still_converges():
    v = np.random.default_rng(1).normal(0, 1, (60, 2))
    scores = (v[:, 0] > 0).astype(float)
    u = fit_rows(LOGISTIC, v, [(np.arange(60), scores)], np.full((1, 2), -30.0), ridge_weight=1e-4)[0]
    slopes = v.T @ (scores - sigmoid(v @ u)) - 1e-4 * u
    assert abs(slopes).max() < 1e-6


def test_single_precision_predicts_what_double_precision_does():
    v = np.random.default_rng(1).normal(0, 1, (60, 4))
    rows = rows_of(table_of()[1], [60, 10])
    double, single = (
        fit_rows(LOGISTIC, v.astype(dtype), rows, np.zeros((2, 4)), ridge_weight=0.5)
        for dtype in (np.float64, np.float32)
    )
    assert single.dtype == np.float32
    np.testing.assert_allclose(sigmoid(single @ v.T), sigmoid(double @ v.T), atol=1e-3)


def full_objective(model, scores, u, v, weight):
    seen = ~np.isnan(scores)
    return model.loss(scores[seen], (u @ v.T)[seen]).sum() + 0.5 * weight * ((u**2).sum() + (v**2).sum())


def sparse(scores):
    rows, columns = np.nonzero(~np.isnan(scores))
    return csr_array((scores[rows, columns], (rows, columns)), shape=scores.shape)


@both_models
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_both_fits_of_a_table_end_near_a_minimum_that_a_general_optimizer_finds(model, missing, monkeypatch):
    monkeypatch.setattr(joint_fit, "LEAST_CHANGE", 1e-6)
    monkeypatch.setattr(joint_fit, "MOST_SWEEPS", 2_000)
    monkeypatch.setattr(low_rank_predictions, "SWEEPS", 300)
    _, scores = table_of(12, 15)
    scores[np.random.default_rng(3).random(scores.shape) < missing] = np.nan
    weight = 2.0

    def of_flat(flat):
        return full_objective(model, scores, flat[:24].reshape(12, 2), flat[24:].reshape(15, 2), weight)

    for u, v in (fit_table(model, scores, 2, weight), fit_observations(model, sparse(scores), 2, weight)):
        found = minimize(of_flat, np.concatenate((u.ravel(), v.ravel())), options={"maxiter": 300})
        assert full_objective(model, scores, u, v, weight) <= found.fun + 1e-4


@both_models
def test_a_default_fit_predicts_held_out_scores_better_than_their_mean(model):
    chances, scores = table_of(100, 150)
    seen = np.random.default_rng(2).random(scores.shape) < 0.4
    kept = np.where(seen, scores, np.nan)
    weight = weight_of_ridge(None, int(seen.sum()), *scores.shape)
    base = ((chances - scores[seen].mean()) ** 2)[~seen].mean()
    for u, v in (
        fit_table(model, kept, 2, weight),
        fit_observations(model, sparse(kept), 2, weight),
    ):
        assert ((chances - model.predict(u @ v.T)) ** 2)[~seen].mean() < 0.35 * base


def test_the_weight_of_a_ridge_is_that_of_the_published_loss_times_the_observed_entries():
    # Loss (1) with 0.01 on 30 of 4 x 16 entries: 0.01/(2 * 20) = w/(2 * 30).
    assert weight_of_ridge(0.01, 30, 4, 16) == pytest.approx(0.01 * 30 / 20)


def test_without_a_ridge_pure_noise_is_shrunk_and_structure_is_not():
    rng = np.random.default_rng(0)
    noise = (rng.random((100, 150)) < 0.5).astype(float)
    weight = weight_of_ridge(None, noise.size, *noise.shape)
    fits = [fit_table(LOGISTIC, scores, 1, weight) for scores in (noise, table_of(100, 150)[1])]
    of_noise, of_structure = ((u @ v.T).std() for u, v in fits)
    assert of_noise < 0.5 < 1.0 < of_structure


def test_spreading_rows_evenly_keeps_all_predictors_and_gives_rows_a_unit_second_moment():
    rng = np.random.default_rng(0)
    u, v = rng.normal(0, [3.0, 0.1], (50, 2)), rng.normal(0, 1, (30, 2))
    scaled = with_rows_spread_evenly(u, v)
    rows = (u @ v.T) @ np.linalg.pinv(scaled).T
    np.testing.assert_allclose(rows @ scaled.T, u @ v.T, atol=1e-9)
    np.testing.assert_allclose(rows.T @ rows / 50, np.eye(2), atol=1e-9)


@pytest.mark.parametrize("spoilt", ["columns", "start"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_factors_that_are_not_finite_are_refused(spoilt, value):
    factors = {"columns": np.ones((4, 2)), "start": np.zeros((1, 2))}
    factors[spoilt][0, 1] = value
    row = (np.arange(3), np.ones(3))
    with pytest.raises(InvalidParameter, match=f"{spoilt} must be finite numbers, got {value}"):
        fit_rows(LOGISTIC, factors["columns"], [row], factors["start"], ridge_weight=1.0)


def test_factors_to_start_from_must_fit_the_rows():
    with pytest.raises(InvalidParameter, match=r"start must be of shape \(1, 2\), got \(1, 3\)"):
        fit_rows(LOGISTIC, np.ones((4, 2)), [(np.arange(3), np.ones(3))], np.zeros((1, 3)), ridge_weight=1.0)
