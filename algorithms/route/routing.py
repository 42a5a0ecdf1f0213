"""What all route selectors share apart from how they choose the arm for a prompt."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.decision import Decision
from winnow.algorithms.protocols import Batch
from winnow.algorithms.route.advantage import Advantage, AdvantageRecord
from winnow.algorithms.route.config import RouteConfig
from winnow.algorithms.route.contexts import unit_rows
from winnow.algorithms.route.policy import Policy
from winnow.algorithms.route.protocol import RoutedBatch
from winnow.algorithms.route.route_record import RouteRecord
from winnow.algorithms.state.arrays import FloatArray, IntArray


class Routing(ABC):
    """Base class of route selectors; a subclass chooses arms and learns from scores.

    Pending pairs, including earlier ones of the same batch, affect deviations like observed pairs, and leave
    the means unchanged. So B similar prompts are not all given to one arm because it is uncertain there, and
    an arm that was never tried comes first once and not B times. Deviations do not depend on scores, so they
    already have the values after the pairs are observed. A method without deviations ignores pending pairs.

    Source of the rule for pending pairs: Desautels, Krause & Burdick (2014), "Parallelizing
    exploration-exploitation tradeoffs in Gaussian process bandit optimization", JMLR 15, GP-BUCB.
    """

    def __init__(self, config: RouteConfig) -> None:
        self._config = config
        self._record = RouteRecord(config)
        self._unexpected: list[tuple[int, FloatArray]] = []  # pending pairs not yet passed to `_expect`
        self._advantage: AdvantageRecord | None = None
        if config.explore:
            self._advantage = AdvantageRecord(
                config.n_arms,
                explore=config.explore,
                delta=config.delta,
                max_unscored=config.max_unscored,
            )

    def next_examples(self) -> IntArray:
        """The next prompts, at most `batch_size` of them."""
        return self._record.next_examples(self._config.batch_size)

    def ask(
        self, rng: np.random.Generator, contexts: ArrayLike, examples: ArrayLike | None = None
    ) -> RoutedBatch:
        """Choose an arm for each prompt, one after another."""
        rows = unit_rows(contexts, self._config.dim)
        prompts = self._record.free_examples(examples, len(rows))
        arms, propensities = [], []
        for example, context in zip(prompts, rows[: len(prompts)], strict=True):
            # Done only now, because the score of a single prompt is usually observed before the next prompt.
            for pair in self._unexpected:
                self._expect(*pair)
            arm, propensity = self._draw_arm(context, rng)
            self._record.take(arm, example, context)
            self._unexpected = [(arm, context)]
            arms.append(arm)
            propensities.append(propensity)
        batch = RoutedBatch(
            np.array(arms, dtype=np.int64),
            np.array(prompts, dtype=np.int64),
            rows[: len(arms)],
            propensities=np.array(propensities) if self._config.explore else None,
            changes=self._record.changes,
        )
        self._record.in_flight.append(batch)
        return batch

    def _draw_arm(self, context: FloatArray, rng: np.random.Generator) -> tuple[int, float]:
        """Draw an arm for a prompt; return the arm and its probability."""
        explore = self._config.explore
        preferred, eligible = self._preferred(context), np.flatnonzero(self._record.eligible).tolist()
        pool = eligible if explore and rng.random() < explore else preferred
        arm = pool[0] if len(pool) == 1 else int(rng.choice(pool))
        alone = (1.0 - explore) * (arm in preferred) / len(preferred)
        return arm, min(explore / len(eligible) + alone, 1.0)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe scores in [-1, 1], NaN if unscored."""
        scored = self._record.tell(batch, outcomes)
        if self._advantage is not None and batch.propensities is not None:
            scores = np.array(outcomes, dtype=np.float64)
            self._advantage.tell(batch.arms, scores, batch.propensities, self._record.n_known)
        self._forget()
        for arm, context, score in scored:
            self._learn(arm, context, score)
        self._reset_unexpected()

    def advantage(self) -> Advantage | None:
        """Advantage of routing over the best single arm, in units of scores.

        None if `explore` is 0.
        """
        return None if self._advantage is None else self._advantage.advantage()

    def decision(self) -> Decision:
        """Recommend the arm with the best mean score, as one arm for all prompts.

        Estimates are the plain means of the scores of each arm, without intervals. An arm received the
        prompts that it was expected to be good at, so the means do not estimate its mean over all prompts.
        """
        return self._record.decision()

    def add_arm(self) -> int:
        """Add an arm from now on; return its index."""
        self._forget()
        arm = self._record.add_arm()
        if self._advantage is not None:
            self._advantage.add_arm()
        self._grow()
        self._reset_unexpected()
        return arm

    def remove_arm(self, arm: int) -> None:
        """Stop choosing an arm and drop its pending pairs.

        Raises:
            NoArmToRemove: If the arm does not exist, was removed before, or is the only one left.
        """
        self._record.remove_arm(arm)
        if self._advantage is not None:
            self._advantage.remove_arm(arm)
        self._forget()
        self._reset_unexpected()

    @abstractmethod
    def policy(self) -> Policy:
        """The learned policy as plain arrays."""

    @abstractmethod
    def _preferred(self, context: FloatArray) -> list[int]:
        """Eligible arms to choose from at random for a context; at least one."""

    @abstractmethod
    def _learn(self, arm: int, context: FloatArray, score: float) -> None:
        """Add a score to the model, in which no pair is pending."""

    @abstractmethod
    def _expect(self, arm: int, context: FloatArray) -> None:
        """Add a pending pair to the model."""

    @abstractmethod
    def _forget(self) -> None:
        """Remove all pending pairs from the model."""

    @abstractmethod
    def _grow(self) -> None:
        """Add an arm to the model, in which no pair is pending."""

    def _reset_unexpected(self) -> None:
        self._unexpected = [(pair[0], context) for pair, context in self._record.pending.items()]
