"""Choose the rank and the ridge of a low-rank model by cross-validation.

The scores are those of earlier campaigns or models.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from winnow.algorithms.errors import InvalidParameter, check_parameters
from winnow.algorithms.low_rank.factor_model import Floats
from winnow.algorithms.low_rank.history import History, model_for
from winnow.algorithms.low_rank.joint_fit import fit_table, weight_of_ridge
from winnow.algorithms.state.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Values of `rank` and `ridge` of the selectors `pulse` and `naive-pooling`."""

    rank: int
    ridge: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossValidation:
    """Losses of all configurations in a cross-validation, and the chosen one."""

    configurations: tuple[Configuration, ...]
    """C configurations, the most parsimonious first."""
    losses: FloatArray
    """Shape (C, folds): mean loss on the held-out scores.
    Cross-entropy for 0/1 scores, half the squared error for others."""
    chosen: Configuration
    """Configuration chosen by the 1-standard-error rule."""


def cross_validate(
    history: Floats,
    *,
    ranks: Sequence[int],
    ridges: Sequence[float],
    rng: np.random.Generator,
    folds: int = 5,
) -> CrossValidation:
    """Choose rank and ridge for a history.

    Each fold of the scores is predicted from the others.

    Args:
        history: Shape (M, n), in [0, 1], NaN if missing.
        ranks: Ranks to try, each at least 1; a rank above min(M, n) is reduced to min(M, n).
        ridges: Ridges to try, lambda in loss (1), each positive.
        rng: Assigns the scores to folds.
        folds: At least 2.

    Raises:
        InvalidParameter: If a value is out of range.

    Source: Tolochinsky et al. (2026), "Valid Best-Model Identification for LLM Evaluation via Low-Rank
    Factorization", Section 4, Hyperparameters.
    """
    check_parameters(
        ("ranks", ranks, len(ranks) > 0 and min(ranks) >= 1, "one number or more, each at least 1"),
        ("ridges", ridges, len(ridges) > 0 and min(ridges) > 0.0, "one number or more, each positive"),
        ("folds", folds, folds >= 2, "at least 2"),
    )
    scores = History.checked(history, history.shape[-1]).scores
    observed = np.argwhere(~np.isnan(scores))
    if len(observed) < folds:
        raise InvalidParameter("folds", folds, f"at most {len(observed)}, the number of scores")
    fold_of_score = rng.permutation(np.arange(len(observed)) % folds)
    configurations = most_parsimonious_first(ranks, ridges)
    losses = np.array(
        [
            [_held_out_loss(scores, observed[fold_of_score == fold], configuration) for fold in range(folds)]
            for configuration in configurations
        ]
    )
    chosen = configurations[one_standard_error_rule(losses)]
    return CrossValidation(configurations=configurations, losses=losses, chosen=chosen)


def most_parsimonious_first(ranks: Sequence[int], ridges: Sequence[float]) -> tuple[Configuration, ...]:
    """All configurations: lower ranks first; for equal ranks, stronger ridges first."""
    return tuple(
        Configuration(rank=rank, ridge=ridge)
        for rank in sorted(set(ranks))
        for ridge in sorted(set(ridges), reverse=True)
    )


def one_standard_error_rule(losses: FloatArray) -> int:
    """Index of the first row within one standard error of the lowest mean loss.

    The standard error is that of the mean over the folds of the best configuration.

    Args:
        losses: Shape (C, folds), the most parsimonious configuration first.
    """
    means = losses.mean(axis=1)
    best = int(means.argmin())
    error = losses[best].std(ddof=1) / np.sqrt(losses.shape[1])
    return int(np.flatnonzero(means <= means[best] + error)[0])


def _held_out_loss(scores: Floats, held_out: IntArray, configuration: Configuration) -> float:
    model = model_for(bool(((scores == 0.0) | (scores == 1.0) | np.isnan(scores)).all()))
    rows, columns = held_out.T
    kept = scores.copy()
    kept[rows, columns] = np.nan
    n_kept = int(np.count_nonzero(~np.isnan(kept)))
    rank = min(configuration.rank, *scores.shape)
    u, v = fit_table(model, kept, rank, weight_of_ridge(configuration.ridge, n_kept, *scores.shape))
    predictors = np.einsum("or,or->o", u[rows], v[columns])
    return float(model.loss(scores[rows, columns], predictors).mean(dtype=np.float64))
