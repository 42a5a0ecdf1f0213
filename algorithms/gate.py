"""Gate: which arms are no worse, better or worse than a baseline.

"No worse" means not below the baseline by more than epsilon. It pairs the scores of an arm and of the
baseline on each random example and bets on their differences. docs/how-a-gate-decides.md has the proof.

Letters: d is the mean, over all N examples, of an arm's score minus the baseline's, in [-1, 1].
y = (1 + d) / 2 is the same in [0, 1]; `confidence_sequences` bets on y. s = delta / (K - 1) is the error
probability of each of the K - 1 arms.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_mean.arm_status import ROUNDING
from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.consistency import check_possible
from winnow.algorithms.best_mean.score_matrix import ScoreMatrix
from winnow.algorithms.best_mean.stopping import interval_alpha, intervals_of
from winnow.algorithms.bounds.confidence_sequences import FinitePopulationIntervals
from winnow.algorithms.bounds.wealth import Wealth
from winnow.algorithms.claims import EXACT, NOTHING_CLAIMED, ArmStatus, Claim, Reason
from winnow.algorithms.decision import Decision, Differences, statuses
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.protocols import EMPTY_BATCH, Batch
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray

Pair = tuple[float, float]
"""The arm's score and the baseline's, NaN if unscored."""


class Pairs:
    """Hold scores until the other score of their pair is observed."""

    def __init__(self, baseline: int) -> None:
        self._baseline = baseline
        self._of_baseline: dict[int, float] = {}  # by example
        # by example: scores of other arms, until the baseline is observed on the example
        self._waiting: dict[int, list[tuple[int, float]]] = {}

    def tell(self, batch: Batch, scores: FloatArray) -> dict[int, FloatArray]:
        """Observe scores and return the pairs that they complete.

        Args:
            batch: B pairs of an arm and an example.
            scores: Shape (B,), NaN if unscored.

        Returns:
            The pairs that are now complete, by arm, shape (P, 2), in the order of completion: the arm's
            score, then the baseline's.
        """
        found: dict[int, list[Pair]] = defaultdict(list)
        told = zip(batch.arms.tolist(), batch.examples.tolist(), scores.tolist(), strict=True)
        for arm, example, score in told:
            if arm == self._baseline:
                self._of_baseline[example] = score
                for other, waiting in self._waiting.pop(example, []):
                    found[other].append((waiting, score))
            elif example in self._of_baseline:
                found[arm].append((score, self._of_baseline[example]))
            else:
                self._waiting.setdefault(example, []).append((arm, score))
        return {arm: np.array(pairs) for arm, pairs in found.items()}


ALL = slice(None)

Until = Literal["no-worse", "better"]
"""Goal for an arm: show that it is no worse, or also show whether it is better."""


class Evidence:
    """Bets on the paired differences of K - 1 arms, each against one baseline.

    Three properties of an arm can be shown, each by a wealth that starts at 1:

    * no worse, d >= -epsilon: the bets against d < -epsilon reach 1 / s.
    * better, d > 0: the same bets, evaluated against d <= 0, reach 2 / s.
    * worse, d < -epsilon: the bets against d >= -epsilon reach 2 / s.

    The probability that any property shown of any arm is ever wrong is at most delta. A missing score takes
    its worst value for the property, so this holds for any true values. docs/how-a-gate-decides.md has the
    proof.

    Args:
        config: The config of K arms; without `delta` bets show nothing.
        baseline: The arm that the others are compared with.
        until: The property to show.
    """

    def __init__(self, config: BestMeanConfig, baseline: int, until: Until = "no-worse") -> None:
        self._config, self._baseline, self._until = config, baseline, until
        self._delta = interval_alpha(config)
        self._share = self._delta / (config.n_arms - 1)
        sizes = (config.n_arms, config.n_examples)
        epsilon = config.epsilon
        # On the scale [0, 1], a difference of -epsilon is (1 - epsilon) / 2; for the mirrored bets it is
        # 1 minus this value.
        self._up = Wealth(*sizes, self._share, np.array([(1.0 - epsilon) / 2.0, 0.5]))
        self._down = Wealth(*sizes, self._share / 2.0, np.array([(1.0 + epsilon) / 2.0, 0.5]))
        self.is_no_worse = np.zeros(config.n_arms, dtype=np.bool_)
        """Shape (K,), arms shown to have a d of at least -epsilon."""
        self.is_better = np.zeros(config.n_arms, dtype=np.bool_)
        """Shape (K,), arms whose d is above 0; each is also no worse."""
        self.is_worse = np.zeros(config.n_arms, dtype=np.bool_)
        """Shape (K,), arms whose d is below -epsilon."""
        # (K,) arms for which it is unlikely that d > 0 can be shown; no statement depends on it
        self._seems_not_better = np.zeros(config.n_arms, dtype=np.bool_)
        self._intervals: FinitePopulationIntervals | None = None
        if config.intervals:
            self._intervals = FinitePopulationIntervals(config.n_arms - 1, config.n_examples, self._delta)

    @property
    def is_settled(self) -> BoolArray:
        """Arms that need no further pairs, shape (K,).

        They are better, worse, or no worse if that is enough.
        """
        no_worse_is_enough = self._seems_not_better | (self._until == "no-worse")
        return self.is_better | self.is_worse | (self.is_no_worse & no_worse_is_enough)

    def tell(self, pairs: Mapping[int, FloatArray]) -> None:
        """Update the bets and intervals with completed pairs of scores.

        Args:
            pairs: By arm, shape (P, 2) each: the arm's score, then the baseline's.
        """
        for arm, scores in pairs.items():
            if self._intervals is not None:
                middle = (1.0 + scores[:, 0] - scores[:, 1]) / 2.0
                row = np.full(len(scores), self._row(arm))
                self._intervals.update(row, middle)
            if self._config.delta is not None and not self.is_settled[arm]:
                self._bet(arm, scores)

    def differences(self) -> Differences | None:
        """Differences with simultaneous intervals; None if the config requests no intervals."""
        intervals = self._intervals
        if intervals is None:
            return None
        estimates, lower, upper = (
            np.insert(2.0 * ends - 1.0, self._baseline, np.nan)
            for ends in (intervals.estimates, intervals.lower, intervals.upper)
        )
        return Differences(
            against=self._baseline, delta=self._delta, estimates=estimates, lower=lower, upper=upper
        )

    def _row(self, arm: int) -> int:
        """Row of an arm in the intervals, which exclude the baseline."""
        return arm - (arm > self._baseline)

    def _bet(self, arm: int, scores: FloatArray) -> None:
        # Missing scores at their worst: 0 for the arm that should be high, 1 for the other.
        low = np.nan_to_num(scores[:, 0], nan=0.0) - np.nan_to_num(scores[:, 1], nan=1.0)
        high = np.nan_to_num(scores[:, 0], nan=1.0) - np.nan_to_num(scores[:, 1], nan=0.0)
        self._up.bet(arm, (1.0 + low) / 2.0, ALL)
        self._down.bet(arm, (1.0 - high) / 2.0, ALL)
        no_worse, better = self._up.capital(arm)
        worse, not_better = self._down.capital(arm)
        is_better = better >= 2.0 / self._share
        is_no_worse = is_better or no_worse >= 1.0 / self._share
        if not self.is_no_worse[arm]:
            is_worse = worse >= 2.0 / self._share
            if is_no_worse and is_worse:  # a contradiction: conclude nothing
                return
            self.is_no_worse[arm], self.is_worse[arm] = is_no_worse, is_worse
        self.is_better[arm] = is_better
        self._seems_not_better[arm] = not_better >= 1.0 / self._share


class Gate:
    """Decide for every other arm whether it is no worse than the baseline by more than `epsilon`.

    The baseline and all arms in question get the same random examples, and bets are made on the differences
    of their scores. An arm is settled once it is shown to be no worse or to be worse, and then gets no
    further examples. When an arm is shown to be no worse, it can already be shown to be better. The gate
    stops when all arms are settled. The probability that any statement about any arm is wrong is at most
    `delta`, simultaneously over time; docs/how-a-gate-decides.md has the proof. `best` is the leading arm,
    without a claim.

    In a round every arm in question gets at least one example, however small `batch_size` is. Without `delta`
    the gate states only what is certain, and proposes the whole matrix.

    Args:
        config: The problem and the common parameters.
        baseline: The arm that the others are compared with; in a campaign's file, the name of a candidate.
        until: With "better" an arm that is no worse gets further examples until it is shown to be better as
            well, or until that has become unlikely.

    Source: this project; bets on draws without replacement after Waudby-Smith & Ramdas (2020), "Confidence
    sequences for sampling without replacement".
    """

    def __init__(self, config: BestMeanConfig, *, baseline: int = 0, until: Until = "no-worse") -> None:
        if not 0 <= baseline < config.n_arms:
            raise InvalidParameter("baseline", baseline, f"an arm, from 0 to {config.n_arms - 1}")
        self._config, self._baseline, self._until = config, baseline, until
        self._matrix = ScoreMatrix(config)
        self._intervals = intervals_of(config)
        self._pairs = Pairs(baseline)
        self.evidence = Evidence(config, baseline, until)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose examples, each for the baseline and for all arms in question."""
        room = self._room()
        if room == 0:
            return EMPTY_BATCH
        arms = np.flatnonzero(self._in_question)
        cells = self._left_out(arms)
        if len(cells[0]) == 0:
            cells = self._next_columns(arms, rng)
        return self._matrix.ask(cells[0][:room], cells[1][:room])

    def take_up(self, batch: Batch) -> None:
        """Register a batch as proposed and pending."""
        self._matrix.ask(batch.arms, batch.examples)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe scores in [0, 1], NaN if unscored."""
        scores = self._matrix.tell(batch, outcomes)
        if self._intervals is not None:
            self._intervals.update(batch.arms, scores)
        self.evidence.tell(self._pairs.tell(batch, scores))

    def decision(self) -> Decision:
        """The status of every arm against the baseline, with estimates and claim.

        Raises:
            ImpossibleState: If the decision contradicts itself or the scores.
        """
        reason, matrix, intervals = self._reason(), self._matrix, self._intervals
        unknown = np.full(matrix.n_arms, np.nan)
        estimates = matrix.means if intervals is None else intervals.estimates
        no_worse, better, worse = self._shown()
        groups: list[tuple[ArmStatus, BoolArray]] = [
            ("no-worse", no_worse),
            ("better", better),
            ("worse", worse),
            ("baseline", self._is_baseline),
            ("dropped", ~matrix.active),
        ]
        ranked = np.where(matrix.active & ~worse & ~np.isnan(estimates), estimates, -np.inf)
        has_leader = reason != "all-dropped" and ranked.max() > -np.inf
        decision = Decision(
            best=int(ranked.argmax()) if has_leader else None,
            estimates=estimates,
            lower=unknown if intervals is None else intervals.lower,
            upper=unknown if intervals is None else intervals.upper,
            status=statuses(matrix.n_arms, groups),
            stop=reason != "running",
            reason=reason,
            claim=self._claim(),
            differences=self.evidence.differences(),
        )
        check_possible(decision, *matrix.possible_means, matrix.fully_scored, by_intervals=False)
        return decision

    @property
    def _is_baseline(self) -> BoolArray:
        return np.asarray(np.arange(self._matrix.n_arms) == self._baseline)

    @property
    def _candidates(self) -> BoolArray:
        """Arms that are neither dropped nor the baseline, shape (K,)."""
        return self._matrix.active & ~self._is_baseline

    @property
    def _open(self) -> BoolArray:
        """Arms not settled, shape (K,)."""
        no_worse, better, worse = self._shown()
        is_enough = self.evidence.is_settled | self._is_not_better() | (self._until == "no-worse")
        return self._candidates & ~better & ~worse & ~(no_worse & is_enough)

    @property
    def _in_question(self) -> BoolArray:
        """Arms that the next round evaluates, shape (K,), including the baseline."""
        return (self._candidates if self._config.delta is None else self._open) | self._is_baseline

    def _certain(self) -> tuple[BoolArray, BoolArray, BoolArray]:
        """Arms that are no worse, better, worse for any values of the unknown scores.

        Shape (K,) each.
        """
        least, most = self._matrix.possible_means
        lowest, highest = least - most[self._baseline], most - least[self._baseline]
        limit, judged = -self._config.epsilon, self._candidates
        return (
            judged & (lowest >= limit - ROUNDING),
            judged & (lowest > ROUNDING),
            judged & (highest < limit - ROUNDING),
        )

    def _shown(self) -> tuple[BoolArray, BoolArray, BoolArray]:
        """Arms shown to be no worse, better, worse, by the known scores or by bets.

        Shape (K,) each. If the known scores already decide a property for any values of the others, bets
        cannot overrule them.
        """
        no_worse, better, worse = self._certain()
        by_bets = self._candidates & ~no_worse & ~worse
        may_be_better = self._candidates & ~worse & ~self._is_not_better()
        return (
            no_worse | (by_bets & self.evidence.is_no_worse),
            better | (may_be_better & self.evidence.is_better),
            worse | (by_bets & self.evidence.is_worse),
        )

    def _is_not_better(self) -> BoolArray:
        """Arms whose mean is certainly not above the baseline's, shape (K,).

        The known scores show this.
        """
        least, most = self._matrix.possible_means
        return np.asarray(most - least[self._baseline] <= ROUNDING)

    def _claim(self) -> Claim:
        shown, certain = self._shown(), self._certain()
        if not any(each.any() for each in shown):
            return NOTHING_CLAIMED
        if all(np.array_equal(mine, known) for mine, known in zip(shown, certain, strict=True)):
            return EXACT
        return Claim(kind="proven", delta=self._config.delta)

    def _reason(self) -> Reason:
        matrix, config = self._matrix, self._config
        is_settled = not self._open.any()
        has_pairs = self._candidates.any() and matrix.active[self._baseline]
        if not has_pairs and not any(each.any() for each in self._shown()):
            return "all-dropped"
        if config.delta is not None and is_settled:
            return "confident"
        asked = self._in_question & matrix.active
        if not has_pairs or (matrix.told[asked] == matrix.n_examples).all():
            return "exhausted"
        if config.budget is not None and matrix.told.sum() >= config.budget:
            return "budget"
        return "running"

    def _room(self) -> int:
        """Number of pairs that can still be proposed; 0 if the gate stopped."""
        if self._reason() != "running":
            return 0
        matrix, budget = self._matrix, self._config.budget
        most = matrix.n_arms * matrix.n_examples if budget is None else budget
        return max(0, most - int(matrix.told.sum() + matrix.pending.sum()))

    def _left_out(self, arms: IntArray) -> tuple[IntArray, IntArray]:
        """Pairs left out for an arm because a budget ended.

        Their example was proposed for the baseline but not for the arm. They are proposed before new
        examples, so that each arm's pairs keep the order of the draws.
        """
        matrix, examples = self._matrix, np.arange(self._matrix.n_examples)
        was_asked = ~matrix.is_free(np.array(self._baseline), examples)
        rows, columns = np.nonzero(matrix.is_free(arms[:, np.newaxis], examples) & was_asked)
        first = slice(self._config.batch_size)
        return arms[rows[first]], columns[first]

    def _next_columns(self, arms: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Draw the next examples.

        The batch has all arms on one example before the next example.
        """
        arms = np.concatenate(([self._baseline], arms[arms != self._baseline]))
        size = max(1, self._config.batch_size // len(arms))
        examples = np.repeat(self._matrix.draw(self._baseline, size, rng), len(arms))
        arms = np.tile(arms, len(examples) // len(arms))
        is_free = self._matrix.is_free(arms, examples)
        return arms[is_free], examples[is_free]
