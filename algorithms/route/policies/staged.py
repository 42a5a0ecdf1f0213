"""The staged choice: it uses a score only where the choice to ask for it depended on no other scores."""

import math
from collections.abc import Callable

import numpy as np

from winnow.algorithms.route.config import RouteConfig
from winnow.algorithms.route.policy import Policy
from winnow.algorithms.route.posteriors.posteriors import Posteriors
from winnow.algorithms.route.routing import Routing
from winnow.algorithms.state.arrays import BoolArray, FloatArray


class Staged(Routing):
    """Go through stages of ever narrower deviations, each with scores of its own, until an arm is chosen.

    At stage m = 1, 2, ... the arms left are predicted from the scores that belong to the stage. If every
    deviation is at most T^-1/2, up to a factor, the arm whose score could be highest is chosen, and its score
    belongs to no stage; else if one is above 2^(1-m), the arm with the widest is chosen, and its score
    belongs to the stage; else the arms that fall behind by 2^(2-m) are left out, and the next stage begins.
    Whether a score belongs to a stage is decided without the scores of that stage, so these are independent,
    which the regret bound needs and `Ucb` does not have.

    Four things are left open by the paper or differ from it. Of several arms that are too uncertain the
    widest is chosen, the first of equals. Stages are made as they are reached, as many as T calls for: no
    more than 2 + log2(T) / 2 with eta > 0. The stage of a score is found when it is told, from what is known
    then, as a batch does not carry it: for one prompt at a time this is the stage that chose it, while in a
    larger batch what was pending may have shifted it. And the policy is of regressions on all scores, stages
    or not.

    With exploration as wide as the proof asks, the first stages take hundreds of scores per arm and type of
    prompt; expect far more regret than that of `Ucb` in a few thousand rounds.

    Args:
        config: The problem and the common parameters.
        make: Makes posteriors for K arms: those of a stage, and those of the policy.
        horizon: T, the prompts that are planned for; None for the most there can be.
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
        """The posteriors of each stage reached so far, stage 1 first."""
        self._n_grown = 0
        self._pooled = make()

    def policy(self) -> Policy:
        """The means of regressions on all scores, as plain arrays."""
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
        """The stage at which `_preferred` would choose an arm for its deviation; None for none."""
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
        """The posteriors of stage m, counted from 1."""
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
