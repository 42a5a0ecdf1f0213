"""Posteriors whose kernel is chosen from the scores.

The choice is repeated as the number of scores grows. The bandwidth of the rbf kernel and the noise are chosen
by marginal likelihood on a grid. The scores v_a of arm a, minus their common mean, are modelled as normal
with mean 0 and covariance s^2 (K_a + alpha I). This is an independent Gaussian process per arm, with the
kernel matrix K_a of its contexts, amplitude s, and noise of variance alpha s^2. Its posterior mean is that of
kernel ridge regression with ridge alpha.

A few dozen scores are easily overfitted with almost no noise and a narrow kernel, and exploration would then
stop. So the logarithms of the bandwidth and of alpha have a normal prior, whose centre is a bandwidth of 1
and an alpha of 1; `_prior` states its width. From a few hundred scores on it has little influence.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from winnow.algorithms.route.config import RouteConfig
from winnow.algorithms.route.policy import Policy
from winnow.algorithms.route.posteriors.kernels import Kernel
from winnow.algorithms.route.posteriors.posteriors import Posteriors
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray

BANDWIDTHS = (0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
"""Bandwidths of the grid.
At the smallest, only nearly equal contexts are similar; at the largest, all contexts are similar."""
ALPHAS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
LEAST_NOISE = 0.05
"""Smallest noise, in units of scores.
Scores that have not varied yet can vary later."""
TINY = 1e-12
"""Replaces a variance of 0, which occurs if all scores are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoothness:
    """How smoothly scores vary with the context, and how noisy they are."""

    bandwidth: float
    """Bandwidth of the rbf kernel."""
    alpha: float
    """Variance of the noise relative to the learned function.
    The ridge of a regression."""
    noise: float
    """Estimated standard deviation of a score around its expectation.
    Rounded to three digits, so that the last bits of a decomposition hardly ever matter."""


def most_probable(
    arms: IntArray,
    contexts: FloatArray,
    scores: FloatArray,
    bandwidths: Sequence[float] = BANDWIDTHS,
    alphas: Sequence[float] = ALPHAS,
) -> Smoothness:
    """Grid point with the highest likelihood times prior, at the optimal s.

    Among equals, the first. It takes O(sum_a n_a^3) time per bandwidth: one decomposition per arm serves
    every alpha.

    Args:
        arms: Shape (n,), with n at least 1.
        contexts: Shape (n, d), of length 1.
        scores: Shape (n,), centred to mean 0.
        bandwidths: Bandwidths of the grid.
        alphas: Ridges of the grid.
    """
    ridges = np.array(alphas)  # (A,)
    best, chosen = -np.inf, None
    for bandwidth in bandwidths:
        variances, likelihoods = _profile_likelihood(arms, contexts, scores, bandwidth, ridges)
        densities = likelihoods + _prior(bandwidth, ridges)
        place = int(densities.argmax())
        if densities[place] > best:
            noise = max(float(np.sqrt(variances[place] * ridges[place])), LEAST_NOISE)
            best = float(densities[place])
            chosen = Smoothness(bandwidth=bandwidth, alpha=alphas[place], noise=float(f"{noise:.3g}"))
    assert chosen is not None
    return chosen


def _prior(bandwidth: float, alphas: FloatArray) -> FloatArray:
    """Log prior density of a bandwidth and each alpha, up to a constant, shape (A,).

    The logarithm of the bandwidth to base 3 and that of alpha to base 10 are normal with mean 0 and variance
    1/2.
    """
    density: FloatArray = -((np.log(bandwidth) / np.log(3.0)) ** 2) - np.log10(alphas) ** 2
    return density


def _profile_likelihood(
    arms: IntArray, contexts: FloatArray, scores: FloatArray, bandwidth: float, ridges: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Optimal s^2 and its log-likelihood for each ridge, shape (A,) each.

    The log-likelihood is up to a constant.
    """
    kernel = Kernel(name="rbf", gamma=1.0, bandwidth=bandwidth)
    logs, squares = np.zeros(len(ridges)), np.zeros(len(ridges))
    for arm in np.unique(arms):
        mine = contexts[arms == arm]
        values, vectors = np.linalg.eigh(kernel.at(mine @ mine.T))
        shifted = np.maximum(values, 0.0) + ridges[:, np.newaxis]  # (A, n_a)
        logs += np.log(shifted).sum(axis=1)
        squares += ((vectors.T @ scores[arms == arm]) ** 2 / shifted).sum(axis=1)
    variances = np.maximum(squares / len(scores), TINY)
    return variances, -0.5 * (len(scores) * np.log(variances) + logs)


FIRST_CHOICE, LAST_CHOICE = 64, 4_096
"""Number of scores at the first and at the last choice.
The number doubles from choice to choice. After the last choice, contexts are no longer stored, and no
prompt waits for a long refit."""
MOST_SCORES = 600
"""Largest number of scores in a likelihood.
Decomposing the matrix of more scores takes seconds."""


class TunedPosteriors:
    """Posteriors with the rbf kernel that is most probable given the scores so far.

    After 64, 128, 256, ... and finally 4 096 scores, the bandwidth and alpha are chosen from up to 600 of
    them, evenly spread over all scores so far: the latest scores alone are mostly of arms on prompts that
    suit them, and look like noise. All scores are then learned again, minus half their mean, so the state is
    a function of the scores in order. Regressions shrink to that half. Scores are mostly of good arms, so
    their mean is too high for the other arms; 0, to which the published algorithm shrinks, is only the middle
    of the scale. In measurements, if the best arm depends on the prompt, half had a smaller regret than
    either. `eta` becomes the deviation of the noise: eta x deviation is then the deviation of a Gaussian
    process from which scores are drawn.

    Args:
        config: The problem and the common parameters; numbers set for `alpha` and `eta` are kept.
        make: Creates posteriors for K arms with the bandwidth and alpha of a config.

    Source: Rasmussen & Williams (2006), "Gaussian Processes for Machine Learning", Section 5.4.1, for the
    choice of a kernel by its marginal likelihood.
    """

    def __init__(self, config: RouteConfig, make: Callable[[RouteConfig], Posteriors]) -> None:
        self._config = config
        self._make = make
        self._inner = make(config)
        self._n_grown = 0
        self._told: list[tuple[int, FloatArray, float]] = []  # emptied at the last choice
        self._next = FIRST_CHOICE
        self._centre = 0.0  # subtracted from every score, and added to every prediction
        self.smoothness: Smoothness | None = None
        """Kernel and noise of the last choice; None before the first choice."""

    @property
    def eta(self) -> float | None:
        """Weight of uncertainty chosen with the kernel; None before the first choice."""
        return None if self.smoothness is None else self.smoothness.noise

    def predict(self, context: FloatArray, arms: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Predict means and deviations of the scores of some arms."""
        means, deviations = self._inner.predict(context, arms)
        return means + self._centre, deviations

    def learn(self, arm: int, context: FloatArray, score: float) -> None:
        """Add a score, and choose the kernel if enough scores are present.

        Requires that no pair is pending.
        """
        self._inner.learn(arm, context, score - self._centre)
        if self._next > LAST_CHOICE:
            return
        self._told.append((arm, context, score))
        if len(self._told) == self._next:
            self._choose()

    def expect(self, arm: int, context: FloatArray) -> None:
        """Add a pending pair, which affects deviations only."""
        self._inner.expect(arm, context)

    def forget(self) -> None:
        """Remove all pending pairs."""
        self._inner.forget()

    def grow(self) -> None:
        """Add an arm."""
        self._inner.grow()
        self._n_grown += 1

    def policy(self, usable: BoolArray) -> Policy:
        """Export the means as plain arrays."""
        policy = self._inner.policy(usable)
        return Policy(policy.arrays, {**policy.parameters, "centre": self._centre})

    def _choose(self) -> None:
        """Choose the kernel and learn all scores again."""
        config, told = self._config, self._told
        self._centre = sum(score for _, _, score in told) / len(told) / 2.0
        spread = np.linspace(0, len(told) - 1, min(len(told), MOST_SCORES)).astype(np.int64)
        scores = np.array([told[place][2] for place in spread])
        self.smoothness = most_probable(
            np.array([told[place][0] for place in spread]),
            np.array([told[place][1] for place in spread]),
            scores - scores.mean(),
            BANDWIDTHS,
            ALPHAS if config.alpha is None else (config.alpha,),
        )
        chosen = self.smoothness
        self._inner = self._make(replace(config, bandwidth=chosen.bandwidth, alpha=chosen.alpha))
        for _ in range(self._n_grown):
            self._inner.grow()
        for arm, context, score in told:
            self._inner.learn(arm, context, score - self._centre)
        self._next *= 2
        if self._next > LAST_CHOICE:
            self._told = []


def is_tuned(config: RouteConfig) -> bool:
    """Whether a config requires that the kernel is chosen from the scores."""
    return config.kernel == "rbf" and config.bandwidth == "auto"
