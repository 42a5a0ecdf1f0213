"""Kernel ridge regression that grows by one row per score.

Letters as in Hu et al. (2025), Algorithm 2: K (n, n) is the kernel matrix of the scored inputs; v (n,) are
their scores; alpha is the ridge. The state is the rows of the Cholesky factor L of K + alpha I, and
z = L^-1 v.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.linalg.blas import dtpsv

from winnow.algorithms.route.config import RouteConfig
from winnow.algorithms.route.policy import Policy, policy_of
from winnow.algorithms.route.posteriors.kernels import Kernel
from winnow.algorithms.route.posteriors.posteriors import PerArmPosteriors
from winnow.algorithms.state.arrays import BoolArray, FloatArray

FIRST_ROWS = 16


class KernelRidge:
    """Kernel ridge regression: mean k_x' (K + alpha I)^-1 v, and a deviation.

    The deviation is sqrt((k(x, x) - k_x' (K + alpha I)^-1 k_x) / alpha). With u = L^-1 k_x, the mean is u.z
    and the deviation sqrt((k(x, x) - u.u) / alpha). The next row of L is u of the next input, so a prediction
    and a new row cost O(n p + n^2) each. Memory is at most n (n + 1) + 2 n p doubles, half of it in use.

    Args:
        kernel: The kernel of the inputs.
        alpha: The ridge, positive.
        width: p, the length of an input.
    """

    def __init__(self, kernel: Kernel, alpha: float, width: int) -> None:
        self._kernel = kernel
        self._alpha = alpha
        self._inputs = np.empty((FIRST_ROWS, width))  # (capacity, p)
        self._factor = np.empty(FIRST_ROWS * (FIRST_ROWS + 1) // 2)  # rows of L, one after another
        self._whitened = np.empty(FIRST_ROWS)  # (capacity,) z
        self.n = 0
        """Number of scored inputs."""
        self._n_rows = 0  # number of scored and pending inputs; the pending inputs are the last rows

    @property
    def inputs(self) -> FloatArray:
        """Scored inputs, shape (n, p)."""
        return self._inputs[: self.n]

    @property
    def weights(self) -> FloatArray:
        """(K + alpha I)^-1 v, shape (n,): the mean at x is k_x.weights."""
        return self._substitute(self._whitened[: self.n], backwards=True)

    def predict(self, x: FloatArray) -> tuple[float, float]:
        """Predict the mean and the deviation of the score at an input, shape (p,)."""
        u = self._solve(x, self._n_rows)
        mean = float(u[: self.n].dot(self._whitened[: self.n]))
        return mean, math.sqrt(max(self._kernel.peak - float(u.dot(u)), 0.0) / self._alpha)

    def learn(self, x: FloatArray, score: float) -> None:
        """Add a scored input. Requires that no input is pending."""
        u, pivot = self._append(x)
        self._whitened[self.n] = (score - float(u.dot(self._whitened[: self.n]))) / pivot
        self.n = self._n_rows

    def expect(self, x: FloatArray) -> None:
        """Add a pending input, which affects deviations only."""
        self._append(x)

    def forget(self) -> None:
        """Remove all pending inputs, which are the last rows."""
        self._n_rows = self.n

    def widen(self) -> None:
        """Append a coordinate to every input, 0 in existing inputs.

        Requires that no input is pending.
        """
        self._inputs = np.pad(self._inputs, ((0, 0), (0, 1)))

    def _append(self, x: FloatArray) -> tuple[FloatArray, float]:
        """Append the next row of L; return the row without its pivot, and the pivot."""
        row = self._n_rows
        u = self._solve(x, row)
        # The term before alpha is non-negative in exact arithmetic.
        pivot = math.sqrt(max(self._kernel.peak - float(u.dot(u)), 0.0) + self._alpha)
        self._make_room(row + 1)
        self._inputs[row] = x
        self._factor[_area(row) : _area(row) + row] = u
        self._factor[_area(row) + row] = pivot
        self._n_rows = row + 1
        return u, pivot

    def _solve(self, x: FloatArray, n: int) -> FloatArray:
        """L^-1 k_x for the first n rows, shape (n,)."""
        return self._substitute(self._kernel.at(self._inputs[:n] @ x))

    def _substitute(self, right: FloatArray, *, backwards: bool = False) -> FloatArray:
        """Product of L^-1, or of L'^-1 if `backwards`, with a vector of shape (n,)."""
        n = len(right)
        if n == 0:  # BLAS refuses an empty vector
            return right
        # BLAS reads L, stored by rows, as its transpose packed by columns.
        solved: FloatArray = dtpsv(n, self._factor[: _area(n)], right, lower=0, trans=int(not backwards))
        return solved

    def _make_room(self, rows: int) -> None:
        if rows > len(self._inputs):
            self._inputs = _double(self._inputs)
            self._whitened = _double(self._whitened)
        if _area(rows) > len(self._factor):
            self._factor = _double(self._factor)


def _area(n: int) -> int:
    """Number of entries in the first n rows of a lower triangle."""
    return n * (n + 1) // 2


def _double(array: FloatArray) -> FloatArray:
    return np.concatenate([array, np.empty_like(array)])


def kernel_posteriors(config: RouteConfig) -> PerArmPosteriors[KernelRidge]:
    """Create posteriors without scores, with the kernel of the config."""
    kernel = Kernel.of(config)

    def policy(models: Sequence[KernelRidge | None], usable: BoolArray) -> Policy:
        known = [(arm, model) for arm, model in enumerate(models) if model is not None and model.n > 0]
        if kernel.name == "linear":
            weights = np.zeros((len(models), config.dim))
            for arm, model in known:
                weights[arm] = model.weights @ model.inputs
            return policy_of("linear", usable, config.dim, weights=weights, offsets=np.zeros(len(models)))
        return policy_of(
            "kernel",
            usable,
            config.dim,
            kernel,
            weights=np.concatenate([model.weights for _, model in known] or [np.empty(0)]),
            contexts=np.concatenate(
                [model.inputs.astype(np.float32) for _, model in known]
                or [np.empty((0, config.dim), dtype=np.float32)]
            ),
            arms=np.repeat([arm for arm, _ in known], [model.n for _, model in known]).astype(np.int64),
        )

    return PerArmPosteriors(
        config.n_arms,
        make=lambda: KernelRidge(kernel, config.fixed_alpha, config.dim),
        lift=lambda context: context,
        as_policy=policy,
    )
