"""Staged choice: a score is used only if its proposal did not depend on other scores of its stage."""

import math
from collections.abc import Callable

import numpy as np

from winnow.algorithms.route.config import RouteConfig
from winnow.algorithms.route.policy import Policy
from winnow.algorithms.route.posteriors.posteriors import Posteriors
from winnow.algorithms.route.routing import Routing
from winnow.algorithms.state.arrays import BoolArray, FloatArray


class Staged(Routing):
    """Pass through stages of decreasing deviations, each with its own scores, until an arm is chosen.

    At stage m = 1, 2, ... the remaining arms are predicted from the scores of the stage. If every deviation
    is at most T^-1/2, up to a factor, the arm with the highest upper confidence bound is chosen, and its
    score belongs to no stage. Otherwise, if one is above 2^(1-m), the arm with the largest deviation is
    chosen, and its score belongs to the stage. Otherwise the arms that fall behind by 2^(2-m) are eliminated,
    and the next stage begins. Whether a score belongs to a stage is decided without the scores of that stage,
    so these are independent. The regret bound requires this, and `Ucb` does not have it.

    Four points are left open by the paper or differ from it. First, of several arms that are too uncertain
    the one with the largest deviation is chosen, the first of equals. Second, stages are created when they
    are reached, as many as T requires: at most 2 + log2(T) / 2 with eta > 0. Third, a batch does not store
    the stage of a score, so it is determined when the score is observed, from the state at that time: for one
    prompt at a time this is the stage that chose it; in a larger batch, pending pairs can have shifted it.
    Fourth, the policy uses regressions on all scores, of stages or not.

    With exploration as wide as the proof requires, the first stages take hundreds of scores per arm and type
    of prompt; expect far more regret than that of `Ucb` in a few thousand rounds.

    Args:
        config: The problem and the common parameters.
        make: Creates posteriors for K arms: those of a stage, and those of the policy.
        horizon: T, the planned number of prompts; None for the largest possible.
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
        """Policy of the regressions on all scores, as plain arrays."""
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
        """Stage at which `_preferred` would choose this arm for its deviation; None without one."""
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
