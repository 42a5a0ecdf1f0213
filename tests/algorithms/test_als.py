import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries
from scipy.stats import binom, chisquare

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.papers.best_mean.completion import Ensemble, EnsembleAls, dropped_entries

FALSE_ALARM = 1e-6


def table(n_rows=7, n_columns=11, share=0.6, seed=0):
    """Scores, 0 where not observed, and which are observed."""
    rng = np.random.default_rng(seed)
    observed = rng.random((n_rows, n_columns)) < share
    return rng.random((n_rows, n_columns)) * observed, observed


def literal_als(scores, kept, start, ridge, sweeps):
    """One member, solved row by row from the entries it kept; `start` has shape (K, r)."""
    rows, columns = start.copy(), np.empty((scores.shape[1], start.shape[1]))

    def solve(values, mask, fixed):
        gram = ridge * np.eye(fixed.shape[1])
        moment = np.zeros(fixed.shape[1])
        for value, factors in zip(values[mask], fixed[mask], strict=True):
            gram += np.outer(factors, factors)
            moment += value * factors
        return np.linalg.solve(gram, moment)

    for _ in range(sweeps):
        for j in range(scores.shape[1]):
            columns[j] = solve(scores[:, j], kept[:, j], rows)
        for i in range(scores.shape[0]):
            rows[i] = solve(scores[i], kept[i], columns)
    return rows, columns


def dropped_masks(scores, observed, members, share, seed):
    """What every member drops, shape (M, K, n)."""
    n_rows, n_columns = scores.shape
    _, ones = dropped_entries(scores, observed, members, share, np.random.default_rng(seed))
    blocks = ones.toarray().reshape(members, n_rows, members, n_columns)
    assert blocks.sum() == np.einsum("kikj->", blocks)
    return np.einsum("kikj->kij", blocks) == 1.0


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_every_member_equals_ridge_regressions_solved_one_by_one(rank):
    scores, observed = table()
    als = EnsembleAls(rank=rank, members=3, ridge=0.2, sweeps=4, drop=0.0)
    fitted = als.fit(scores, observed, np.random.default_rng(5))
    starts = np.random.default_rng(5).standard_normal((3, rank, 7))
    starts[:, 0] = 1.0
    for member, start in enumerate(starts):
        rows, columns = literal_als(scores, observed, start.T, ridge=0.2, sweeps=4)
        np.testing.assert_allclose(fitted.rows[member].T, rows, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(fitted.columns[member].T, columns, rtol=1e-9, atol=1e-12)


@tries(40)
@given(seed=st.integers(0, 10_000), share=st.floats(0.1, 1.0), drop=st.floats(0.0, 0.9))
def test_what_a_member_drops_is_as_if_it_had_never_been_observed(seed, share, drop):
    scores, observed = table(share=share, seed=seed)
    als = EnsembleAls(members=4, sweeps=3, drop=drop)
    fitted = als.fit(scores, observed, np.random.default_rng(seed))
    for member, dropped in enumerate(dropped_masks(scores, observed, 4, drop, seed)):
        assert not (dropped & ~observed).any()
        rows, columns = literal_als(scores, observed & ~dropped, np.ones((7, 1)), ridge=0.1, sweeps=3)
        np.testing.assert_allclose(fitted.rows[member].T, rows, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(fitted.columns[member].T, columns, rtol=1e-9, atol=1e-12)


def test_dropping_is_exact_at_rank_two_as_well():
    scores, observed = table()
    als = EnsembleAls(rank=2, members=3, sweeps=3, drop=0.3)
    fitted = als.fit(scores, observed, np.random.default_rng(9))
    masks = dropped_masks(scores, observed, 3, 0.3, 9)
    assert masks.any(axis=(1, 2)).all()
    rng = np.random.default_rng(9)
    dropped_entries(scores, observed, 3, 0.3, rng)
    starts = rng.standard_normal((3, 2, 7))
    starts[:, 0] = 1.0
    for member, start in enumerate(starts):
        kept = observed & ~masks[member]
        rows, columns = literal_als(scores, kept, start.T, ridge=0.1, sweeps=3)
        np.testing.assert_allclose(fitted.rows[member].T, rows, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(fitted.columns[member].T, columns, rtol=1e-9, atol=1e-12)


def test_a_noiseless_rank_one_table_is_recovered_and_its_members_agree():
    rng = np.random.default_rng(1)
    truth = np.outer(rng.uniform(0.3, 1.0, 30), rng.uniform(0.1, 1.0, 50))
    observed = rng.random(truth.shape) < 0.3
    fitted = EnsembleAls(ridge=1e-9, sweeps=40).fit(truth * observed, observed, rng)
    mean, std = fitted.mean_and_std()
    np.testing.assert_allclose(mean, truth, atol=1e-6)
    assert std.max() < 1e-6


def test_a_noiseless_rank_two_table_is_recovered_at_rank_two_and_not_at_rank_one():
    rng = np.random.default_rng(1)
    truth = rng.uniform(0.0, 0.7, (40, 2)) @ rng.uniform(0.0, 0.7, (2, 60))
    observed = rng.random(truth.shape) < 0.6
    errors = {
        rank: abs(
            EnsembleAls(rank=rank, members=8, ridge=1e-8, sweeps=300)
            .fit(truth * observed, observed, np.random.default_rng(2))
            .mean_and_std()[0]
            - truth
        ).max()
        for rank in (1, 2)
    }
    assert errors[2] < 1e-4 < 0.05 < errors[1]


@pytest.mark.parametrize("rank", [1, 3])
def test_mean_and_deviation_are_those_of_the_members_written_out(rank):
    rng = np.random.default_rng(3)
    ensemble = Ensemble(rng.random((5, rank, 4)), rng.random((5, rank, 6)))
    members = np.einsum("mri,mrj->mij", ensemble.rows, ensemble.columns)
    mean, std = ensemble.mean_and_std()
    np.testing.assert_allclose(mean, members.mean(axis=0))
    np.testing.assert_allclose(std, members.std(axis=0), atol=1e-7)


def test_nothing_observed_predicts_zero_without_a_warning():
    nothing = np.zeros((3, 4), dtype=bool)
    mean, std = EnsembleAls().fit(np.zeros((3, 4)), nothing, np.random.default_rng(0)).mean_and_std()
    assert not mean.any()
    assert not std.any()


def test_the_same_generator_gives_the_same_bits():
    scores, observed = table()
    first, second = (EnsembleAls().fit(scores, observed, np.random.default_rng(4)) for _ in range(2))
    assert np.array_equal(first.rows, second.rows)
    assert np.array_equal(first.columns, second.columns)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"rank": 0}, "rank must be at least 1, got 0"),
        ({"members": 0}, "members must be at least 1, got 0"),
        ({"ridge": 0.0}, "ridge must be positive and finite, got 0.0"),
        ({"sweeps": 0}, "sweeps must be at least 1, got 0"),
        ({"drop": 1.0}, r"drop must be in \[0, 1\), got 1.0"),
    ],
)
def test_a_bad_value_is_refused_and_shown(params, message):
    with pytest.raises(InvalidParameter, match=f"^{message}$"):
        EnsembleAls(**params)


def drop_counts(share, repeats=400):
    """How often each entry, and each pair of neighbours, was dropped by any of 5 members."""
    scores, observed = table()
    counts, both = np.zeros(scores.shape), 0
    for seed in range(repeats):
        masks = dropped_masks(scores, observed, 5, share, seed)
        counts += masks.sum(axis=0)
        entries = masks[:, observed]
        both += (entries[:, 1:] & entries[:, :-1]).sum()
    return counts[observed], both, 5 * repeats


def is_unlikely(count, trials, probability):
    tail = min(binom.cdf(count, trials, probability), binom.sf(count - 1, trials, probability))
    return bool(tail < FALSE_ALARM / 2)


@pytest.mark.statistical
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_entries_are_dropped_independently_with_the_asked_probability(share):
    # About 90,000 chances to drop: at 0.05 a true share of 0.055 is seen with probability above 0.95.
    counts, both, trials = drop_counts(share)
    assert not is_unlikely(counts.sum(), trials * counts.size, share)
    assert not is_unlikely(both, trials * (counts.size - 1), share**2)
    assert chisquare(counts).pvalue > FALSE_ALARM


@pytest.mark.statistical
def test_the_check_catches_a_share_that_is_a_tenth_off():
    counts, _, trials = drop_counts(0.055)
    assert is_unlikely(counts.sum(), trials * counts.size, 0.05)
