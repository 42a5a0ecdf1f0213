"""Ridge regression on p features whose inverse is kept up to date one score at a time.

Letters as in Hu et al. (2025), Algorithm 5: Phi (n, p) features told; v (n,) their scores; alpha the ridge;
A = Phi'Phi + alpha I (p, p); P = A^-1; b = Phi'v. Symmetric matrices are packed: the rows of their lower
half, one after the other.
"""

import math

import numpy as np
from scipy.linalg.blas import dspmv, dspr
from scipy.linalg.lapack import dpotrf, dpotri

from winnow.algorithms.state.arrays import FloatArray

SCORES_PER_REFRESH = 2_000  # an inverse of 400 features takes about as long as 400 updates


class LinearRidge:
    """Mean x' P b and deviation sqrt(x' P x), in O(p^2) time per score and memory, however many scores.

    Each score updates P by Sherman and Morrison's formula. Every 2 000 scores P is computed anew from A,
    which is a plain sum, so rounding errors do not add up for ever.

    The deviation of the paper, sqrt((1 - x' P Phi'Phi x) / alpha), is the same for x of length 1: P Phi'Phi
    = I - alpha P, so what is under the root is (1 - x'x + alpha x'P x) / alpha. For x of another length, what
    is here is the deviation of the same regression as a `KernelRidge` with a linear kernel.

    Args:
        width: p, the number of features.
        alpha: The ridge, positive.
    """

    def __init__(self, width: int, alpha: float) -> None:
        self._width = width
        self._alpha = alpha
        self._gram = _packed_identity(width, alpha)  # A
        self._inverse = _packed_identity(width, 1.0 / alpha)  # P
        self._reckoned: FloatArray | None = None  # P with the awaited inputs in it; None for P itself
        self._moments = np.zeros(width)  # b
        self.weights: FloatArray = np.zeros(width)
        """P b, shape (p,): the mean at x is x.weights."""
        self.n = 0
        """Scores told."""

    def predict(self, x: FloatArray) -> tuple[float, float]:
        """Mean and deviation of the score at an input, shape (p,)."""
        inverse = self._inverse if self._reckoned is None else self._reckoned
        square = float(x.dot(dspmv(self._width, 1.0, inverse, x)))
        return float(x.dot(self.weights)), math.sqrt(max(square, 0.0))

    def learn(self, x: FloatArray, score: float) -> None:
        """Take in a scored input; nothing may be awaited."""
        dspr(self._width, 1.0, x, self._gram, overwrite_ap=1)
        self._moments += score * x
        self.n += 1
        if self.n % SCORES_PER_REFRESH == 0:
            self._refresh()
            return
        gain = _shrink(self._inverse, x)
        self.weights = self.weights + gain * (score - float(x.dot(self.weights)))

    def expect(self, x: FloatArray) -> None:
        """Reckon with an input whose score is awaited."""
        if self._reckoned is None:
            self._reckoned = self._inverse.copy()
        _shrink(self._reckoned, x)

    def forget(self) -> None:
        """Await nothing any more."""
        self._reckoned = None

    def widen(self) -> None:
        """Append a coordinate to every input, 0 in those so far; nothing may be awaited."""
        zeros = np.zeros(self._width)
        self._gram = np.concatenate([self._gram, zeros, [self._alpha]])
        self._inverse = np.concatenate([self._inverse, zeros, [1.0 / self._alpha]])
        self._moments = np.append(self._moments, 0.0)
        self.weights = np.append(self.weights, 0.0)
        self._width += 1

    def _refresh(self) -> None:
        """Compute P and the weights anew."""
        lower = np.tril_indices(self._width)
        full = np.zeros((self._width, self._width))
        full[lower] = self._gram
        factor, _ = dpotrf(full, lower=1)  # A is at least alpha I, so it has one
        inverse, _ = dpotri(factor, lower=1)
        self._inverse = inverse[lower]
        self.weights = dspmv(self._width, 1.0, self._inverse, self._moments)


def _shrink(inverse: FloatArray, x: FloatArray) -> FloatArray:
    """Change P into the inverse of A + x x', in place; return the gain, that inverse times x."""
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
