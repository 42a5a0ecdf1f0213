"""Policies that choose the arm for a prompt.

The choice is by upper confidence bounds, at random, or in stages.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.route.config import RouteConfig
from winnow.algorithms.route.contexts import unit_rows
from winnow.algorithms.route.policy import Policy, policy_of
from winnow.algorithms.route.posteriors.kernel_ridge import KernelRidge, kernel_posteriors
from winnow.algorithms.route.posteriors.kernels import Kernel, RandomFeatures
from winnow.algorithms.route.posteriors.linear_ridge import LinearRidge, fourier_posteriors
from winnow.algorithms.route.posteriors.posteriors import JointPosteriors, PerArmPosteriors, Posteriors
from winnow.algorithms.route.posteriors.tuned import TunedPosteriors, is_tuned
from winnow.algorithms.route.routing import Routing
from winnow.algorithms.state.arrays import BoolArray, FloatArray


class Ucb(Routing):
    """Choose the arm with the highest mean + eta x deviation; among equals, the first.

    Arms that were never tried come first, in the order of their indices. An arm with only pending or unscored
    prompts has mean 0 and the largest deviation. Nothing is random.

    Args:
        config: The problem and the common parameters.
        posteriors: The posteriors that predict the scores.
    """

    def __init__(self, config: RouteConfig, posteriors: Posteriors) -> None:
        super().__init__(config)
        self._posteriors = posteriors

    def predict(self, context: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Predict mean and deviation of every arm's score on a prompt, shape (K,) each.

        Args:
            context: Shape (d,), of length 1.

        Raises:
            UnusableContexts: If the context has another shape or length, or is not finite.
        """
        row = unit_rows(np.asarray(context)[np.newaxis], self._config.dim)[0]
        return self._posteriors.predict(row, range(self._record.n_arms))

    def policy(self) -> Policy:
        """The learned policy as plain arrays.

        It chooses like the router by means, without exploration.
        """
        return self._posteriors.policy(self._record.eligible & ~np.isnan(self._record.means))

    def _preferred(self, context: FloatArray) -> list[int]:
        record = self._record
        eligible = record.eligible
        if (untried := eligible & record.untried).any():
            return [int(untried.argmax())]
        arms: list[int] = np.flatnonzero(eligible).tolist()
        means, deviations = self._posteriors.predict(context, arms)
        return [arms[int((means + self._exploration() * deviations).argmax())]]

    def _exploration(self) -> float:
        learned = self._posteriors.eta if self._config.eta is None else None
        return self._config.exploration(self._record.n_arms) if learned is None else learned

    def _learn(self, arm: int, context: FloatArray, score: float) -> None:
        self._posteriors.learn(arm, context, score)

    def _expect(self, arm: int, context: FloatArray) -> None:
        self._posteriors.expect(arm, context)

    def _forget(self) -> None:
        self._posteriors.forget()

    def _grow(self) -> None:
        self._posteriors.grow()


class PakUcb(Ucb):
    """Give each prompt to the arm with the highest mean + eta x deviation of its own kernel regression.

    A round costs O(n d + n^2) for each arm with n scores, and memory grows with n^2: for long streams use
    `rff-ucb`. With the linear kernel an arm's expected score is linear in the embedding; "poly3" and "rbf"
    can separate types of prompts that lie close together. With the bandwidth "auto" of "rbf", the scores
    determine the scale, see `TunedPosteriors`. With a number it is the published algorithm. The published
    program starts the inverse of the first kernel matrix as 1/k + alpha; this one follows the mathematics, (k
    + alpha)^-1.

    Source: Hu, Leung & Farnia (2025), "An Online Learning Approach to Prompt-based Selection of Generative
    Models and LLMs", ICML, Algorithm 2.
    """

    def __init__(self, config: RouteConfig) -> None:
        tuned = is_tuned(config)
        super().__init__(
            config, TunedPosteriors(config, kernel_posteriors) if tuned else kernel_posteriors(config)
        )


class RffUcb(Ucb):
    """Give each prompt to the arm with the highest mean + eta x deviation of its regression on features.

    It approximates `pak-ucb` with the rbf kernel. A round costs O(D d + K D^2) time, and the state is K
    matrices of 2 D x 2 D, halved by symmetry and stored twice, for any number of rounds.

    The bandwidth is chosen from the scores, unless it is a number: see `TunedPosteriors`. With a number
    the state has this size from the beginning; otherwise the first 4 096 contexts are stored until the last
    choice.

    The features are drawn once, whereas Algorithm 5 would draw new ones in every round and for every arm:
    sums over rounds require the same features. The published program counts the first score of an arm twice;
    this one follows the mathematics.

    Args:
        config: The problem and the common parameters; the kernel must be "rbf".
        n_features: D, the number of frequencies, at least 1; there are 2 D features.
        feature_seed: Seed of the frequencies, non-negative.

    Source: Hu, Leung & Farnia (2025), "An Online Learning Approach to Prompt-based Selection of Generative
    Models and LLMs", ICML, Algorithms 4 and 5.
    """

    def __init__(self, config: RouteConfig, *, n_features: int = 200, feature_seed: int = 0) -> None:

        def make(config: RouteConfig) -> PerArmPosteriors[LinearRidge]:
            return fourier_posteriors(config, RandomFeatures(config, n_features, feature_seed))

        super().__init__(config, TunedPosteriors(config, make) if is_tuned(config) else make(config))


class NaiveKrr(Ucb):
    """Give each prompt to the arm with the highest mean of its own kernel regression: PAK-UCB with eta = 0.

    A baseline: an arm with low first scores may never be tried again.

    Source: Hu, Leung & Farnia (2025), "An Online Learning Approach to Prompt-based Selection of Generative
    Models and LLMs", ICML, Section 6.
    """

    def __init__(self, config: RouteConfig) -> None:
        if config.eta:
            raise InvalidParameter("eta", config.eta, "0 or None: naive-krr does not explore")
        super().__init__(replace(config, eta=0.0), kernel_posteriors(config))


class KernelUcb(Ucb):
    """Give each prompt to the arm with the highest mean + eta x deviation of one joint kernel regression.

    Its inputs are contexts with the arm's indicator appended, of length sqrt(2), so scores of one arm inform
    the predictions for every other arm on similar prompts. A baseline: a round costs O(K n^2) after n scores
    in total.

    Source: Valko et al. (2013), "Finite-time analysis of kernelised contextual bandits", UAI, Algorithm 1, in
    the form used for comparison by Hu, Leung & Farnia (2025), Section 6.
    """

    def __init__(self, config: RouteConfig) -> None:
        kernel = Kernel.of(config, squared_length=2.0)
        model = KernelRidge(kernel, config.fixed_alpha, config.dim + config.n_arms)

        def policy(model: KernelRidge, usable: BoolArray) -> Policy:
            return policy_of(
                "joint-kernel",
                usable,
                config.dim,
                kernel,
                weights=model.weights,
                contexts=model.inputs[:, : config.dim].astype(np.float32),
                arms=model.inputs[:, config.dim :].argmax(axis=1).astype(np.int64),
            )

        super().__init__(config, JointPosteriors(config.n_arms, model, policy))


class LinUcb(Ucb):
    """Give each prompt to the arm with the highest mean + eta x deviation of one joint linear regression.

    A baseline. Its inputs are contexts with the arm's indicator appended, so the means of two arms differ by
    the same amount on every prompt: it can find the arm that is best on average, but cannot route. It is
    linear for any `kernel`, and a round costs O(K (d + K)^2).

    Source: Chu et al. (2011), "Contextual bandits with linear payoff functions", AISTATS, Algorithm 1, in the
    form used for comparison by Hu, Leung & Farnia (2025), Section 6.
    """

    def __init__(self, config: RouteConfig) -> None:
        model = LinearRidge(config.dim + config.n_arms, config.fixed_alpha)

        def policy(model: LinearRidge, usable: BoolArray) -> Policy:
            shared, offsets = np.split(model.weights, [config.dim])
            weights = np.tile(shared, (len(usable), 1))
            return policy_of("linear", usable, config.dim, weights=weights, offsets=offsets)

        super().__init__(config, JointPosteriors(config.n_arms, model, policy))


class RandomArm(Routing):
    """Give each prompt to an arm drawn uniformly.

    A baseline, and the fairest way to compare arms: the mean score of each arm estimates its mean over all
    prompts. Its policy chooses, for every prompt, the arm with the best mean.

    Source: the baseline of Hu, Leung & Farnia (2025), Section 6.
    """

    def policy(self) -> Policy:
        """Policy that ranks arms by their means."""
        means = self._record.means
        usable = self._record.eligible & ~np.isnan(means)
        return policy_of("means", usable, self._config.dim, means=np.nan_to_num(means))

    def _preferred(self, context: FloatArray) -> list[int]:
        arms: list[int] = np.flatnonzero(self._record.eligible).tolist()
        return arms

    def _learn(self, arm: int, context: FloatArray, score: float) -> None:
        """Do nothing: the record stores the scores."""

    def _expect(self, arm: int, context: FloatArray) -> None:
        """Do nothing: a draw does not depend on pending pairs."""

    def _forget(self) -> None:
        """Do nothing: no pending pair is used."""

    def _grow(self) -> None:
        """Do nothing: the record has already added the arm."""


class Staged(Routing):
    """Pass through stages of decreasing deviations until an arm is chosen.

    Each stage has its own scores. At stage m = 1, 2, ... the remaining arms are predicted from the scores of
    the stage:

    * If every deviation is at most T^-1/2, up to a factor, the arm with the highest upper confidence bound is
      chosen, and its score belongs to no stage.
    * Otherwise, if a deviation is above 2^(1-m), the arm with the largest deviation is chosen, and its score
      belongs to the stage.
    * Otherwise the arms whose bound is more than 2^(2-m) below the highest bound are eliminated, and the next
      stage begins.

    Whether a score belongs to a stage is decided without the scores of that stage, so these are independent.
    The regret bound requires this, and `Ucb` does not have it.

    The paper leaves four points open, or this class differs from it:

    * If several arms are too uncertain, the one with the largest deviation is chosen; among equals, the
      first.
    * Stages are created when they are reached, as many as T requires: at most 2 + log2(T) / 2 with eta > 0.
    * A batch does not store the stage of a score, so the stage is determined when the score is observed, from
      the state at that time. With one prompt at a time this is the stage that chose it; in a larger batch,
      pending pairs can have shifted it.
    * The policy uses regressions on all scores, whether they belong to a stage or not.

    With exploration as wide as the proof requires, the first stages take hundreds of scores per arm and type
    of prompt; expect far more regret than that of `Ucb` in a few thousand rounds.

    Args:
        config: The problem and the common parameters.
        make: Creates posteriors for K arms: those of a stage, and those of the policy.
        horizon: T, the planned number of prompts; None for the largest possible number.
        events_per_round: Number of times that the proof uses the bounds of a round.
    """

    def __init__(
        self, config: RouteConfig, make: Callable[[], Posteriors], horizon: int | None, events_per_round: int
    ) -> None:
        super().__init__(config)
        self._horizon = config.n_prompts if horizon is None else horizon
        self._n_events = events_per_round * self._horizon
        self._make = make
        self.stages: list[Posteriors] = []
        """Posteriors of each stage reached so far, stage 1 first."""
        self._n_grown = 0
        self._pooled = make()

    def policy(self) -> Policy:
        """The learned policy, from regressions on all scores, as plain arrays."""
        return self._pooled.policy(self._record.eligible & ~np.isnan(self._record.means))

    def _preferred(self, context: FloatArray) -> list[int]:
        eta, root = self._exploration(), math.sqrt(self._config.fixed_alpha)
        arms = np.flatnonzero(self._record.eligible)
        m = 0
        while True:
            m += 1
            means, deviations = self._stage(m).predict(context, arms.tolist())
            if self._is_settled(deviations):
                return [int(arms[(means + eta * deviations).argmax()])]
            if ((2.0 * eta + root) * deviations > 2.0 ** (1 - m)).any():
                return [int(arms[deviations.argmax()])]
            arms = arms[self._keeps_up(m, means, deviations)]

    def _stage_of(self, told: int, context: FloatArray) -> int | None:
        """Stage at which the deviation of an arm makes `_preferred` choose it.

        None if no stage does.
        """
        eta, root = self._exploration(), math.sqrt(self._config.fixed_alpha)
        is_left = self._record.eligible
        is_left[told] = True
        arms = np.flatnonzero(is_left)
        m = 0
        while True:
            m += 1
            means, deviations = self._stage(m).predict(context, arms.tolist())
            if self._is_settled(deviations):
                return None
            is_wide = (2.0 * eta + root) * deviations > 2.0 ** (1 - m)
            if is_wide[arms == told].any():
                return m
            if not is_wide.any():
                arms = arms[self._keeps_up(m, means, deviations) | (arms == told)]

    def _is_settled(self, deviations: FloatArray) -> bool:
        widest = (self._exploration() + math.sqrt(self._config.fixed_alpha)) * float(deviations.max())
        return widest <= 1.0 / math.sqrt(self._horizon)

    def _keeps_up(self, m: int, means: FloatArray, deviations: FloatArray) -> BoolArray:
        highest = means + (2.0 * self._exploration() + math.sqrt(self._config.fixed_alpha)) * deviations
        keeps_up: BoolArray = highest >= highest.max() - 2.0 ** (2 - m)
        return keeps_up

    def _exploration(self) -> float:
        return self._config.exploration(self._record.n_arms, self._n_events)

    def _stage(self, m: int) -> Posteriors:
        """Posteriors of stage m, counted from 1."""
        while len(self.stages) < m:
            posteriors = self._make()
            for _ in range(self._n_grown):
                posteriors.grow()
            self.stages.append(posteriors)
        return self.stages[m - 1]

    def _learn(self, arm: int, context: FloatArray, score: float) -> None:
        if (m := self._stage_of(arm, context)) is not None:
            self._stage(m).learn(arm, context, score)
        self._pooled.learn(arm, context, score)

    def _expect(self, arm: int, context: FloatArray) -> None:
        if (m := self._stage_of(arm, context)) is not None:
            self._stage(m).expect(arm, context)

    def _forget(self) -> None:
        for posteriors in self.stages:
            posteriors.forget()

    def _grow(self) -> None:
        for posteriors in (*self.stages, self._pooled):
            posteriors.grow()
        self._n_grown += 1


class SupPakUcb(Staged):
    """Give each prompt to an arm by stages of kernel regressions, with regret of order sqrt(K T).

    The bound holds with probability 1 - delta, one prompt at a time, if kernels are at most 1 and each arm's
    expected score has norm at most 1 in the kernel's space; "linear" and "rbf" are kernels of at most 1.

    Args:
        config: The problem and the common parameters; here, an `eta` of None means sqrt(2 log(2 K T /
            delta)).
        horizon: T, the planned number of prompts, at least 1; None for the largest possible number.

    Source: Hu, Leung & Farnia (2025), "An Online Learning Approach to Prompt-based Selection of Generative
    Models and LLMs", ICML, Algorithm 3 and Theorem 3.
    """

    def __init__(self, config: RouteConfig, *, horizon: int | None = None) -> None:
        if horizon is not None and horizon < 1:
            raise InvalidParameter("horizon", horizon, "at least 1 or None")
        super().__init__(config, lambda: kernel_posteriors(config), horizon, events_per_round=1)


class SupRffUcb(Staged):
    """Give each prompt to an arm by stages of regressions on random Fourier features.

    The published proof lets the number of features grow like t^4 and more, and adds the error of the features
    to the deviations. Here the number is D in every round and nothing is added, so no bound is proven.

    Args:
        config: The problem and the common parameters; the kernel must be "rbf". Here, an `eta` of None means
            sqrt(2 log(4 K T / delta)).
        n_features: D, the number of frequencies, at least 1; there are 2 D features.
        feature_seed: Seed of the frequencies, non-negative.
        horizon: T, the planned number of prompts, at least 1; None for the largest possible number.

    Source: Hu, Leung & Farnia (2025), "An Online Learning Approach to Prompt-based Selection of Generative
    Models and LLMs", ICML, Algorithm 6 and Theorem 4.
    """

    def __init__(
        self, config: RouteConfig, *, n_features: int = 200, feature_seed: int = 0, horizon: int | None = None
    ) -> None:
        if horizon is not None and horizon < 1:
            raise InvalidParameter("horizon", horizon, "at least 1 or None")
        features = RandomFeatures(config, n_features, feature_seed)
        super().__init__(config, lambda: fourier_posteriors(config, features), horizon, events_per_round=2)
