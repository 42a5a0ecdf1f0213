"""Posteriors whose kernel is chosen from the scores, repeatedly as their number grows."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from winnow.algorithms.route.config import RouteConfig
from winnow.algorithms.route.policy import Policy
from winnow.algorithms.route.posteriors.marginal_likelihood import (
    ALPHAS,
    BANDWIDTHS,
    Smoothness,
    most_probable,
)
from winnow.algorithms.route.posteriors.posteriors import Posteriors
from winnow.algorithms.state.arrays import BoolArray, FloatArray

FIRST_CHOICE, LAST_CHOICE = 64, 4_096
"""Number of scores at the first and the last choice; each choice comes at twice as many as the one before.
After the last one, contexts need not be stored any longer, and no prompt waits for a long refit."""
MOST_SCORES = 600
"""Largest number of scores in a likelihood: a decomposition of more takes seconds."""


class TunedPosteriors:
    """Posteriors with the rbf kernel that is most probable given the scores so far.

    After 64, 128, 256, ... and finally 4 096 scores, the bandwidth and alpha are chosen from up to 600 of
    them, evenly spread over all so far: the last ones alone are mostly of arms on prompts that suit them, and
    look like noise. All scores are then relearned, less half their mean, so the state is a function of the
    scores in order. Regressions shrink to that half: scores are mostly of good arms, so their mean is too
    high for the others, and 0, to which the published algorithm shrinks, is only the middle of the scale. If
    the best arm depends on the prompt, half had a smaller regret than either in measurements. `eta` becomes
    the deviation of the noise: eta x deviation is then the deviation of a Gaussian process from which scores
    are drawn.

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
        """Absorb a score; requires that no pair is pending."""
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
        """Choose the kernel and relearn all scores."""
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
    """Whether a config requires the kernel to be chosen."""
    return config.kernel == "rbf" and config.bandwidth == "auto"
