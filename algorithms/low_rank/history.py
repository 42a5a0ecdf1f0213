"""Earlier tables of scores on the same examples, and their example factors."""

from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.low_rank.factor_model import LOGISTIC, FactorModel, Floats
from winnow.algorithms.low_rank.joint_fit import fit_table, weight_of_ridge, with_rows_spread_evenly
from winnow.algorithms.state.arrays import at_bounds

LEAST_SQUARES = FactorModel(
    loss=lambda scores, z: 0.5 * (scores - 0.5 - z) ** 2,
    mean=lambda z: z + 0.5,
    curvature=np.ones_like,
    most_curvature=1.0,
    bend=0.0,
)
"""Model of scores in [0, 1] that are not all 0 or 1: S_ij is near 1/2 + u_i . v_j.

As in the logistic model, the predicted score of an unobserved row is 1/2. Predictions are clipped to [0, 1],
fits are not.

Source: Tolochinsky et al. (2026), "Valid Best-Model Identification for LLM Evaluation via Low-Rank
Factorization", whose estimator holds for any prediction in [0, 1]; the paper itself has only 0/1 scores.
"""


TABLES_REMEMBERED = 2


@dataclass(frozen=True, slots=True)
class History:
    """A validated table of earlier scores; equal if the scores are equal."""

    scores: Floats = field(compare=False, repr=False)
    """Shape (M, n), single precision, NaN if missing."""
    digest: bytes
    """Digest of the scores."""

    @classmethod
    def checked(cls, scores: Floats, n_examples: int) -> "History":
        """Validate and copy a table of scores, shape (M, n).

        Raises:
            InvalidParameter: If the shape does not match the examples, a value is outside [0, 1], or no score
                is present.
        """
        if scores.ndim != 2 or scores.shape[1] != n_examples or len(scores) == 0:
            raise InvalidParameter(
                "history", scores.shape, f"of shape (M, {n_examples}), a column for each example"
            )
        if scores.dtype.kind not in "fiub":
            raise InvalidParameter("history", str(scores.dtype), "an array of numbers")
        copied = np.array(at_bounds(np.array(scores, dtype=np.float64)), dtype=np.float32, order="C")
        for outside in copied[~np.isnan(copied) & ~((copied >= 0.0) & (copied <= 1.0))][:1]:
            raise InvalidParameter("history", float(outside), "scores in [0, 1], or NaN if missing")
        if np.isnan(copied).all():
            raise InvalidParameter("history", np.nan, "a table with at least one score")
        copied.setflags(write=False)
        return cls(copied, blake2b(np.array(copied.shape).tobytes() + copied.tobytes()).digest())


def model_for(all_binary: bool) -> FactorModel:
    """The logistic model if all scores are 0 or 1, otherwise least squares."""
    return LOGISTIC if all_binary else LEAST_SQUARES


@lru_cache(maxsize=TABLES_REMEMBERED)
def example_factors(history: History, rank: int, ridge: float | None) -> tuple[FactorModel, Floats]:
    """Fit a table and return the factors of its examples, for use with new rows.

    The last tables are cached by their contents, because many campaigns are simulated with one history.

    Args:
        history: The table.
        rank: r, reduced to at most min(M, n).
        ridge: Same as in `weight_of_ridge`.

    Returns:
        The model and V, shape (n, r), read-only, scaled for a ridge of weight 1 on each new row.
    """
    scores = history.scores
    model = model_for(bool(((scores == 0.0) | (scores == 1.0) | np.isnan(scores)).all()))
    rank = min(rank, *scores.shape)
    weight = weight_of_ridge(ridge, int(np.count_nonzero(~np.isnan(scores))), *scores.shape)
    v = with_rows_spread_evenly(*fit_table(model, scores, rank, weight))
    v.setflags(write=False)
    return model, v
