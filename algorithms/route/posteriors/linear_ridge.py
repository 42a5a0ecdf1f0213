"""Ridge regression on p features whose inverse is updated with each score.

Letters as in Hu et al. (2025), Algorithm 5: Phi (n, p) are the features of the scored inputs; v (n,) are
their scores; alpha is the ridge; A = Phi'Phi + alpha I (p, p); P = A^-1; b = Phi'v. Symmetric matrices are
packed: the rows of their lower half, one after another.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.linalg.blas import dspmv, dspr
from scipy.linalg.lapack import dpotrf, dpotri

from winnow.algorithms.route.config import RouteConfig
from winnow.algorithms.route.policy import Policy, policy_of
from winnow.algorithms.route.posteriors.kernels import RandomFeatures
from winnow.algorithms.route.posteriors.posteriors import PerArmPosteriors
from winnow.algorithms.state.arrays import BoolArray, FloatArray

SCORES_PER_REFRESH = 2_000  # an inverse of 400 features takes about as long as 400 updates


class LinearRidge:
    """Ridge regression: mean x' P b and deviation sqrt(x' P x).

    A score costs O(p^2) time; memory is O(p^2). Each score updates P by the Sherman-Morrison formula. Every 2
    000 scores P is recomputed from A, which is a plain sum, so rounding errors do not accumulate.

    The deviation of the paper, sqrt((1 - x' P Phi'Phi x) / alpha), is the same for x of length 1. The reason
    is that P Phi'Phi = I - alpha P, so the term under the root is (1 - x'x + alpha x'P x) / alpha. For x of
    another length, this class has the deviation of the same regression as a `KernelRidge` with a linear
    kernel.

    Args:
        width: p, the number of features.
        alpha: The ridge, positive.
    """

    def __init__(self, width: int, alpha: float) -> None:
        self._width = width
        self._alpha = alpha
        self._gram = _packed_identity(width, alpha)  # A
        self._inverse = _packed_identity(width, 1.0 / alpha)  # P
        self._pending_inverse: FloatArray | None = None  # P including pending inputs; None without any
        self._moments = np.zeros(width)  # b
        self.weights: FloatArray = np.zeros(width)
        """P b, shape (p,): the mean at x is x.weights."""
        self.n = 0
        """Number of scored inputs."""

    def predict(self, x: FloatArray) -> tuple[float, float]:
        """Predict the mean and the deviation of the score at an input, shape (p,)."""
        inverse = self._inverse if self._pending_inverse is None else self._pending_inverse
        square = float(x.dot(dspmv(self._width, 1.0, inverse, x)))
        return float(x.dot(self.weights)), math.sqrt(max(square, 0.0))

    def learn(self, x: FloatArray, score: float) -> None:
        """Add a scored input. Requires that no input is pending."""
        dspr(self._width, 1.0, x, self._gram, overwrite_ap=1)
        self._moments += score * x
        self.n += 1
        if self.n % SCORES_PER_REFRESH == 0:
            self._refresh()
            return
        gain = _shrink(self._inverse, x)
        self.weights = self.weights + gain * (score - float(x.dot(self.weights)))

    def expect(self, x: FloatArray) -> None:
        """Add a pending input, which affects deviations only."""
        if self._pending_inverse is None:
            self._pending_inverse = self._inverse.copy()
        _shrink(self._pending_inverse, x)

    def forget(self) -> None:
        """Remove all pending inputs."""
        self._pending_inverse = None

    def widen(self) -> None:
        """Append a coordinate to every input, 0 in existing inputs.

        Requires that no input is pending.
        """
        zeros = np.zeros(self._width)
        self._gram = np.concatenate([self._gram, zeros, [self._alpha]])
        self._inverse = np.concatenate([self._inverse, zeros, [1.0 / self._alpha]])
        self._moments = np.append(self._moments, 0.0)
        self.weights = np.append(self.weights, 0.0)
        self._width += 1

    def _refresh(self) -> None:
        """Recompute P and the weights."""
        lower = np.tril_indices(self._width)
        full = np.zeros((self._width, self._width))
        full[lower] = self._gram
        factor, _ = dpotrf(full, lower=1)  # A is at least alpha I, so the factor exists
        inverse, _ = dpotri(factor, lower=1)
        self._inverse = inverse[lower]
        self.weights = dspmv(self._width, 1.0, self._inverse, self._moments)


def _shrink(inverse: FloatArray, x: FloatArray) -> FloatArray:
    """Update P in place to the inverse of A + x x'.

    Return the gain, that inverse times x.
    """
    direction = dspmv(len(x), 1.0, inverse, x)
    scale = 1.0 + float(x.dot(direction))
    dspr(len(x), -1.0 / scale, direction, inverse, overwrite_ap=1)
    gain: FloatArray = direction / scale
    return gain


def _packed_identity(width: int, scale: float) -> FloatArray:
    packed = np.zeros(width * (width + 1) // 2)
    place = np.arange(width)
    packed[place * (place + 3) // 2] = scale
    return packed


def fourier_posteriors(config: RouteConfig, features: RandomFeatures) -> PerArmPosteriors[LinearRidge]:
    """Create posteriors without scores on these features."""

    def policy(models: Sequence[LinearRidge | None], usable: BoolArray) -> Policy:
        weights = np.zeros((len(models), features.width))
        for arm, model in enumerate(models):
            if model is not None:
                weights[arm] = model.weights
        return policy_of("fourier", usable, config.dim, weights=weights, frequencies=features.frequencies)

    return PerArmPosteriors(
        config.n_arms,
        make=lambda: LinearRidge(features.width, config.fixed_alpha),
        lift=features,
        as_policy=policy,
    )
