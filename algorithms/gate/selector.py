"""Gate: which arms are no worse than a baseline by more than epsilon, which are better, which are worse."""

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_mean.arm_status import ROUNDING
from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.consistency import check_possible
from winnow.algorithms.best_mean.score_matrix import ScoreMatrix
from winnow.algorithms.best_mean.stopping import intervals_of
from winnow.algorithms.claims import EXACT, NOTHING_CLAIMED, ArmStatus, Claim, Reason
from winnow.algorithms.decision import Decision, statuses
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.gate.evidence import Evidence, Pairs, Until
from winnow.algorithms.protocols import EMPTY_BATCH, Batch
from winnow.algorithms.state.arrays import BoolArray, IntArray


class Gate:
    """Decide for every other arm whether it is no worse than the baseline by more than `epsilon`.

    All arms in question and the baseline get the same random examples, and bets are made on the differences
    of their scores. An arm is settled, and gets no further examples, once it is shown to be no worse or to be
    worse; an arm that is no worse can be shown to be better by then. It stops when all are settled. The
    probability that any statement about any arm is wrong is at most `delta`, simultaneously over time;
    docs/how-a-gate-decides.md has the proof. `best` is the leading arm, without a claim.

    In a round every arm in question gets at least one example, however small `batch_size` is. Without `delta`
    it states only what is certain, and proposes the whole matrix.

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
        """Absorb scores in [0, 1], NaN if unscored."""
        scores = self._matrix.tell(batch, outcomes)
        if self._intervals is not None:
            self._intervals.update(batch.arms, scores)
        self.evidence.tell(self._pairs.tell(batch, scores))

    def decision(self) -> Decision:
        """The decision: the status of every arm against the baseline.

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
        """Arms that can be judged, shape (K,)."""
        return self._matrix.active & ~self._is_baseline

    @property
    def _open(self) -> BoolArray:
        """Arms not settled, shape (K,)."""
        no_worse, better, worse = self._shown()
        is_enough = self.evidence.is_settled | self._is_not_better() | (self._until == "no-worse")
        return self._candidates & ~better & ~worse & ~(no_worse & is_enough)

    @property
    def _in_question(self) -> BoolArray:
        """Arms to propose next, shape (K,), including the baseline."""
        return (self._candidates if self._config.delta is None else self._open) | self._is_baseline

    def _certain(self) -> tuple[BoolArray, BoolArray, BoolArray]:
        """Arms that are no worse, better, worse by the known scores, for any values of the others."""
        least, most = self._matrix.possible_means
        lowest, highest = least - most[self._baseline], most - least[self._baseline]
        limit, judged = -self._config.epsilon, self._candidates
        return (
            judged & (lowest >= limit - ROUNDING),
            judged & (lowest > ROUNDING),
            judged & (highest < limit - ROUNDING),
        )

    def _shown(self) -> tuple[BoolArray, BoolArray, BoolArray]:
        """Arms that are no worse, better, worse, by known scores or bets; known scores take precedence."""
        no_worse, better, worse = self._certain()
        by_bets = self._candidates & ~no_worse & ~worse
        may_be_better = self._candidates & ~worse & ~self._is_not_better()
        return (
            no_worse | (by_bets & self.evidence.is_no_worse),
            better | (may_be_better & self.evidence.is_better),
            worse | (by_bets & self.evidence.is_worse),
        )

    def _is_not_better(self) -> BoolArray:
        """Arms whose mean is not above the baseline's, by the known scores, shape (K,)."""
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
        """Number of pairs that can be proposed; 0 when stopped."""
        if self._reason() != "running":
            return 0
        matrix, budget = self._matrix, self._config.budget
        most = matrix.n_arms * matrix.n_examples if budget is None else budget
        return max(0, most - int(matrix.told.sum() + matrix.pending.sum()))

    def _left_out(self, arms: IntArray) -> tuple[IntArray, IntArray]:
        """Pairs whose example was proposed for the baseline but not for the arm, because a budget ended.

        They come before new examples, so that the pairs of each arm stay in the order they were drawn.
        """
        matrix, examples = self._matrix, np.arange(self._matrix.n_examples)
        was_asked = ~matrix.is_free(np.array(self._baseline), examples)
        rows, columns = np.nonzero(matrix.is_free(arms[:, np.newaxis], examples) & was_asked)
        first = slice(self._config.batch_size)
        return arms[rows[first]], columns[first]

    def _next_columns(self, arms: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Draw the next examples, all arms on one before the next one."""
        arms = np.concatenate(([self._baseline], arms[arms != self._baseline]))
        size = max(1, self._config.batch_size // len(arms))
        examples = np.repeat(self._matrix.draw(self._baseline, size, rng), len(arms))
        arms = np.tile(arms, len(examples) // len(arms))
        is_free = self._matrix.is_free(arms, examples)
        return arms[is_free], examples[is_free]
