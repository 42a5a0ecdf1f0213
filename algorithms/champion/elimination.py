"""Elimination of arms, by one wealth per arm.

The wealth combines the race and the tests against the filled row. An arm's wealth is M = w R C' + (1 - w) C.
R is its wealth in the race, as long as the arm was in it; C is the wealth of the tests of all its draws, and
C' that of its draws after the race. If epsilon can end the race, the wealth is (1 - v) M + v V, where V is
the wealth of bets, in the race, that the arm does not exceed the named arm by epsilon. The named arm is the
one to recommend. docs/how-the-guarantee-works.md proves that the wealth of a best arm ever reaches 1 / delta
with probability at most delta.

If arms are compared by the least mean of the groups of examples, each group has its own C, M is their
average, and there is no race; "mean of an arm" then denotes its least group mean.
docs/how-groups-are-compared.md has the proof for groups. With constraints, M is also an average and there is
no race; only a row that meets the constraints can be the champion. docs/how-constraints-are-met.md has the
proof for constraints.
"""

import math

import numpy as np

from winnow.algorithms.best_mean.groups import Groups
from winnow.algorithms.champion.constraints import Constraints
from winnow.algorithms.champion.control_variates import Band, Controls
from winnow.algorithms.champion.draw_order import DrawHistory, Draws, Grouped, Played
from winnow.algorithms.champion.race import Race
from winnow.algorithms.champion.switch import Mode
from winnow.algorithms.champion.wealth import Wealths, adaptive_bets, log_factors
from winnow.algorithms.champion.within_epsilon import WithinEpsilon
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray, with_more

TOLERANCE = 1e-9  # for the rounding of a mean, in favour of the tested arm


class Evidence:
    """Draws of K arms, and which arms they eliminate.

    Pass a batch's outcomes to `constraints` before passing its scores to this object.

    Args:
        n_arms: K.
        n_examples: N.
        mode: The mode, which weights the race and the tests.
        level: Wealth at which each of these arms is eliminated.
        epsilon: Amount by which T, the mean that arms are tested against, exceeds the champion's mean.
        past: Shape (N,), the history's feature of the examples; None without a history.
        top_m: m, the number of best arms to find.
        groups: Groups of the examples; None if arms are compared by their plain means.
        at_least: Shape (J,), required means of further outcomes; None without constraints.
        ties_are_open: Whether an arm is settled once its mean can be at most T, however few of its pairs
            were observed.
    """

    def __init__(
        self,
        n_arms: int,
        n_examples: int,
        mode: Mode,
        *,
        level: float,
        epsilon: float,
        past: FloatArray | None = None,
        top_m: int = 1,
        groups: Groups | None = None,
        at_least: FloatArray | None = None,
        ties_are_open: bool = False,
    ) -> None:
        self._ties_are_open = ties_are_open
        self.top_m = top_m
        self.groups = groups = Groups.none(n_examples) if groups is None else groups
        self.n_arms, self.n_examples = n_arms, n_examples
        self.mode, self.epsilon = mode, epsilon
        self.levels = np.full(n_arms, level)
        """Shape (K,), wealth at which each arm is eliminated."""
        self.draws = Draws(n_arms, groups)
        self.controls = Controls(n_arms, groups, past)
        self.constraints = Constraints(n_arms, n_examples, at_least)
        self.race = Race(n_arms, n_examples, bets=mode.weight > 0.0)
        self._within = WithinEpsilon(self.race, n_examples, epsilon) if mode.within > 0.0 else None
        self._named_by_race: int | None = None  # arm that, by the race, no other arm exceeds by epsilon
        self._has_revised = False
        self.in_race = groups.n_parts == 1
        """Whether all draws so far were on common examples."""
        self.champion: int | None = None
        """L, the filled row with the m-th highest mean."""
        self.total = math.nan
        """N T: the champion's mean plus epsilon, times N."""
        self.active = np.ones(n_arms, dtype=np.bool_)  # (K,) not dropped
        # (K,) eliminated: shown not to be among the best, up to epsilon
        self.is_out = np.zeros(n_arms, dtype=np.bool_)
        self.is_beaten = np.zeros(n_arms, dtype=np.bool_)
        """Shape (K,), arms shown not to be among the m best even with epsilon = 0."""
        # (K,) arms that bet in the race against an arm that is dropped now
        self._met_dropped: BoolArray = np.zeros(n_arms, dtype=np.bool_)
        self._wealths = Wealths(n_arms * groups.n_parts)
        self._raced = np.zeros(n_arms * groups.n_parts, dtype=np.int64)  # (R,) draws in the race
        self._untested: IntArray | None = None  # (R,) draws before a row was filled
        self._slack = TOLERANCE * n_examples

    @property
    def alive(self) -> BoolArray:
        """Arms in question, shape (K,), including the champion."""
        return self.active & ~self.is_out

    @property
    def is_unfit(self) -> BoolArray:
        """Arms that bets on constraints alone eliminate, shape (K,).

        The elimination does not depend on T, the value that the bets on means compare with.
        """
        won = self.constraints.averaged(np.arange(self.n_arms), np.zeros(self.n_arms))
        return self.is_out & self._are_out(np.arange(self.n_arms), won)

    @property
    def can_race(self) -> bool:
        """Whether common examples can be proposed next.

        True if the race is still on, all arms in question have the same observations, and none of them bet
        against an arm that was dropped later.
        """
        alive = self.alive
        is_level = bool((self.race.columns[alive] == self.race.n_columns).all())
        return self.in_race and is_level and not bool((alive & self._met_dropped).any())

    @property
    def is_settled(self) -> BoolArray:
        """Arms whose mean is certainly at most T, shape (K,).

        If ties are open, the mean must be at most T for any values of the unobserved and unscored pairs.
        Otherwise the arm must also be fully observed.
        """
        if self.champion is None:
            return np.zeros(self.n_arms, dtype=np.bool_)
        if self._ties_are_open:
            return np.asarray(self.most_sums <= self.total + self._slack)
        return self._is_full() & np.asarray(self._least_sums(self.draws.high) <= self.total + self._slack)

    @property
    def is_decided(self) -> bool:
        """Whether m arms are known that no other arm exceeds by more than epsilon.

        With constraints, whether such arms are known among those that meet them, or no arm meets them.
        """
        alive = self.alive
        if self.champion is None and len(self.constraints):
            return not alive.any()
        if self.champion is None:
            is_left = 1 <= np.count_nonzero(alive) <= self.top_m
            return bool(is_left and self.has_score[alive].all())
        is_open = alive & ~self.is_settled
        # For m = 1, except only the row that the others were tested against: the mean of another arm
        # with the same sum can be higher.
        is_open[self.top if self.top_m > 1 else self.champion] = False
        return not is_open.any()

    @property
    def top(self) -> IntArray:
        """The m filled rows with the highest means, best first.

        Fewer if fewer rows are full. With constraints: only rows that meet them.
        """
        may_be = self.active & self._is_full() & self.has_score & self.constraints.are_met
        full = np.flatnonzero(may_be)
        return full[np.argsort(-self.least_sums[full], kind="stable")][: self.top_m]

    @property
    def least_sums(self) -> FloatArray:
        """N times the lowest possible mean of each arm, shape (K,).

        Unknown scores count as 0.
        """
        return self._least_sums(self.draws.low)

    @property
    def most_sums(self) -> FloatArray:
        """N times the highest possible mean of each arm, shape (K,).

        Unknown scores count as 1.
        """
        return self._least_sums(self.draws.high + self.draws.left)

    @property
    def has_score(self) -> BoolArray:
        """Arms with at least one score, shape (K,)."""
        return np.asarray(self._by_part(self.draws.scored).sum(axis=1) > 0)

    def wealths(self, arms: IntArray) -> FloatArray:
        """Wealths of some arms, shape (A,); a fully observed arm keeps its last wealth.

        Until a row is filled, the wealth includes no tests; until an arm is named, it includes no bets within
        epsilon of that arm.
        """
        wealths = self.constraints.averaged(arms, self._wealths_as_best(arms))
        named = self._named_by_race if self.champion is None else self.champion
        return wealths if named is None else self._with_regard_to(named, arms, wealths)

    def _with_regard_to(self, named: int, arms: IntArray, wealths: FloatArray) -> FloatArray:
        """Add the wealth of bets within epsilon of the named arm, shape (A,).

        Unchanged if no such bets are made.
        """
        if self._within is None:
            return wealths
        return wealths + self.mode.within * self._within.wealths(arms, named)

    def _wealths_as_best(self, arms: IntArray) -> FloatArray:
        """(1 - v) M of some arms, shape (A,); until a row is filled, only (1 - v) w R."""
        if self.champion is None:
            return self.raced_wealths(arms)
        return self._combine_tests(arms, self._wealths, self.groups.rows_of(arms))

    def raced_wealths(self, arms: IntArray) -> FloatArray:
        """(1 - v) w R of some arms, shape (A,).

        The part of the wealth that is won in the race.
        """
        weight = (1.0 - self.mode.within) * self.mode.weight
        return np.asarray(weight * np.where(self._met_dropped[arms], 0.0, self.race.wealths(arms)))

    def wealths_at(self, arms: IntArray, total: float) -> FloatArray:
        """Wealths of bets that the means of some arms are below a threshold, shape (A,).

        These are the wealths of the tests against the champion, (1 - v) M, recomputed for this threshold with
        the stored bets. They do not decrease in `total`.

        Args:
            arms: Ascending. Requires that a row was filled.
            total: N times the threshold.
        """
        rows = self.groups.rows_of(arms)
        tests, drawn = Wealths(len(rows)), np.flatnonzero(self.draws.count[rows] > 0)
        if drawn.size:
            of_rows = rows[drawn]
            tests.put(drawn, *self._parts(of_rows, self.draws.history(of_rows), total))
        return self.constraints.averaged(arms, self._combine_tests(arms, tests, np.arange(len(rows))))

    def _combine_tests(self, arms: IntArray, tests: Wealths, rows: IntArray) -> FloatArray:
        """(1 - v) M of some arms, shape (A,).

        Args:
            arms: Shape (A,).
            tests: Wealths of the tests.
            rows: Rows of these arms in `tests`, shape (A P,).
        """
        groups, kept = self.groups, 1.0 - self.mode.within
        tested = tests.since_start(rows).reshape(-1, groups.n_parts).mean(axis=1)
        if groups.n_parts > 1:  # arms with groups do not race
            return np.asarray(tested)
        rest = kept * (1.0 - self.mode.weight)
        return np.asarray(self.raced_wealths(arms) * tests.since_race(rows) + rest * tested)

    def tell_columns(self, batch: Grouped, arms: IntArray, scores: FloatArray) -> None:
        """Observe common examples of all arms in question.

        Args:
            batch: All pairs, including those of eliminated arms.
            arms: Shape (A,), the arms in question.
            scores: Shape (A, B), on the common examples in the order of the draws.
        """
        weights = self.groups.weights[batch.examples[: scores.shape[1]]]
        self.race.tell(arms, scores, weights)
        nothing = np.zeros(len(batch.examples))
        self._absorb(batch, self.draws.next_of(batch, nothing, nothing, nothing))
        self._raced[batch.arms] = self.draws.count[batch.arms]
        self._rule_out_by_race()
        self._rule_out_by_constraints()
        self._crown()

    def tell(self, batch: Grouped, untold: BoolArray) -> Band:
        """Observe separate draws of each arm. This ends the race.

        Args:
            batch: Draws of G rows.
            untold: Shape (G, N), examples not observed for each row before.

        Returns:
            The controls used in the bets on these draws.
        """
        if self.in_race:
            self.in_race = False
            self.controls.weigh(np.flatnonzero(self.draws.count > 0), self.draws)
        band = self.controls.before(batch, untold)
        is_test = self.champion is not None
        adaptive = self._adaptive_bets(batch.arms)[batch.group] if is_test else np.zeros(len(batch.examples))
        played = self.draws.next_of(batch, band.values, band.below, adaptive)
        if is_test:
            self._wealths.add(batch.arms, batch.starts, self._log_factors(played, self.total))
        self._absorb(batch, played)
        self.controls.weigh(batch.arms, self.draws)
        if is_test:
            self._rule_out(np.unique(batch.arms // self.groups.n_parts))
        self._rule_out_by_constraints()
        self._crown()
        return band

    def revise(self, arms: IntArray, examples: IntArray, scores: FloatArray) -> None:
        """Absorb scores of draws that were unscored; bets, opponents and controls stay those of the time.

        No wealth of an arm and no sum of a filled row falls, so arms that are eliminated stay so. Only bets
        within epsilon are with regard to one champion, and from now on have to be won against each new one.

        Args:
            arms: Shape (B,).
            examples: Shape (B,).
            scores: Shape (B,), in [0, 1].
        """
        self._has_revised = True
        rows = self.groups.row_of(arms, examples)
        places = self.draws.revise(rows, examples, scores)
        if self.race.told:
            self.race.revise(arms, places, scores)
        if self._within is not None:
            self._within.revise()
        self.controls.relearn(examples, scores - 1.0)
        revised = np.unique(rows)
        self.controls.refit(revised, self.draws.history(revised), self.draws)
        if self.champion is None:
            self._rule_out_by_race()
        self._crown(again=True)

    def add_arms(self, levels: FloatArray) -> None:
        """Add arms, each with its own order of examples; ends a race that has begun.

        Earlier eliminations stay valid, because a better new arm only makes them more certain. If a new level
        is infinite, nothing can be proven, and all arms that are not dropped are in question again.

        Args:
            levels: Shape (K,) including the new arms, wealth at which each arm is eliminated from now on.
        """
        count = len(levels) - self.n_arms
        self.n_arms, self.levels = len(levels), levels
        self.draws.add_arms(count)
        self.controls.add_arms(count)
        self.constraints.add_arms(count)
        self.race.add_arms(count)
        n_rows = count * self.groups.n_parts
        if self.champion is None:
            self._take_back_name()
        self._wealths.add_arms(n_rows)
        self.active = with_more(self.active, count, True)
        self.is_out, self.is_beaten = with_more(self.is_out, count), with_more(self.is_beaten, count)
        self._met_dropped, self._raced = with_more(self._met_dropped, count), with_more(self._raced, n_rows)
        if self._untested is not None:
            self._untested = with_more(self._untested, n_rows)
        if not np.isfinite(levels).all():
            self.drop(self.active, levels)

    def drop(self, active: BoolArray, levels: FloatArray) -> None:
        """Exclude dropped arms, and determine the eliminations again without them.

        Args:
            active: Shape (K,), arms not dropped.
            levels: Shape (K,), wealth at which each arm is eliminated from now on.
        """
        self.active, self.levels = active.copy(), levels
        self._met_dropped = self.race.met_any(~active)
        self.is_out[:] = self.is_beaten[:] = False
        self.champion, self.total, self._named_by_race = None, math.nan, None
        self._rule_out_by_race()
        self._rule_out_by_constraints()
        self._crown()

    def _absorb(self, batch: Grouped, played: Played) -> None:
        features = self.controls.features_of(batch.examples)
        residuals = self.controls.residuals(batch, features, played.scores, self.draws)
        self.draws.append(batch, played, residuals)
        self.controls.add(batch, features, played.scores, self.draws)
        self.controls.learn(batch, residuals)

    def _adaptive_bets(self, arms: IntArray) -> FloatArray:
        gap = self.total / self.n_examples - self.controls.estimates(self.draws, arms)
        squares = self.controls.residual_squares(self.draws, arms)
        return adaptive_bets(gap, squares, self.draws.count[arms])

    def _crown(self, *, again: bool = False) -> None:
        """Make the m-th best filled row the champion, and test all other arms against it.

        The tests are recomputed from each arm's first draw. Nothing is done if the row is not better than the
        champion's, unless `again`.
        """
        top = self.top
        if top.size < self.top_m:
            return
        best = int(top[-1])
        sums = self.least_sums
        if self.champion is not None and sums[best] <= sums[self.champion] + self._slack:
            if not again:
                return
            best = self.champion if self.top_m == 1 else best
        if self.champion is None:
            if best != self._named_by_race:
                self._take_back_name()
        elif self._within is not None and self._has_revised and best != self.champion:
            self.is_out = self.is_beaten.copy()
        self.champion = best
        self.is_out[top] = self.is_beaten[top] = False
        self.total = float(sums[best]) + self.epsilon * self.n_examples
        if self._untested is None:
            self._untested = self.draws.count.copy()
        arms = np.flatnonzero(self.alive & ~self._is_full())
        rows = self.groups.rows_of(arms)
        rows = rows[self.draws.count[rows] > 0]
        if rows.size:
            drawn, row = self.draws.history(rows), self.draws.row(self.groups.rows_of(np.array([best])))
            self.controls.fill(row, rows, drawn, self.draws)
            self._wealths.put(rows, *self._parts(rows, drawn, self.total))
            self._rule_out(np.unique(rows // self.groups.n_parts))

    def _log_factors(self, played: Played, total: float) -> FloatArray:
        """Log factors of some draws against T, given as N T; see `log_factors`."""
        totals = total * (played.total / self.n_examples)  # N T of each draw's row
        return log_factors(played, totals, played.total)

    def _parts(self, arms: IntArray, drawn: DrawHistory, total: float) -> tuple[FloatArray, FloatArray]:
        """Log factors of all draws of some rows against T, summed by part and bet.

        See `Wealths.put`.
        """
        assert self._untested is not None
        starts = drawn.starts
        logs = self._log_factors(drawn.played, total)  # (5, F)
        logs.cumsum(axis=1, out=logs)
        ends = starts + self.draws.count[arms]
        raced = starts + np.minimum(self._raced[arms], self.draws.count[arms])
        untested = np.maximum(raced, starts + self._untested[arms])
        bounds = np.stack([starts, raced, untested, ends])  # (4, A)
        sums = np.where(bounds > 0, logs[:, bounds - 1], 0.0)  # (5, 4, A)
        parts = np.diff(sums, axis=1)  # (5, 3, A)
        return parts[:-1].transpose(1, 2, 0), parts[-1, 2]

    def _rule_out(self, arms: IntArray) -> None:
        """Eliminate arms that are certainly worse or whose wealth reached its level.

        Only the arms in `arms` are considered.
        """
        arms = arms[self.alive[arms] & ~self._is_full()[arms]]
        most = self.most_sums[arms]
        is_certain = most < self.total - self._slack
        self.is_out[arms] = is_certain | self._are_out(arms, self.wealths(arms))
        self.is_beaten[arms] = self.is_out[arms] & ((self.epsilon == 0.0) | self.is_unfit[arms])

    def _rule_out_by_constraints(self) -> None:
        """Eliminate arms that cannot meet the constraints.

        Until a row is filled, bets on constraints can also eliminate an arm.
        """
        if not len(self.constraints):
            return
        are_missed = self.constraints.are_missed
        self.is_out |= are_missed
        self.is_beaten |= are_missed
        if self.champion is None:
            self._rule_out(np.flatnonzero(self.alive))

    def _rule_out_by_race(self) -> None:
        """Eliminate arms by the race.

        If no arm would remain, keep the one with the smallest wealth.
        """
        arms = np.flatnonzero(self.alive)
        if self.mode.weight == 0.0 or len(arms) < 2:
            return
        wealths = self.wealths(arms)
        is_out = self._are_out(arms, wealths)
        if is_out.all():
            is_out[wealths.argmin()] = False
        self.is_out[arms] = self.is_beaten[arms] = is_out
        self._name_by_race()

    def _name_by_race(self) -> None:
        """Name the leader and eliminate the others, if bets allow it.

        The bets must show that no other arm in question exceeds the leader by epsilon.
        """
        arms, scored = np.flatnonzero(self.alive), np.flatnonzero(self.alive & self.has_score)
        if self._within is None or self.champion is not None or len(arms) < 2 or len(scored) == 0:
            return
        leader = int(scored[self.race.low[scored].argmax()])
        others = arms[arms != leader]
        wealths = self._with_regard_to(leader, others, self._wealths_as_best(others))
        if self._are_out(others, wealths).all():
            self._named_by_race, self.is_out[others] = leader, True

    def _take_back_name(self) -> None:
        """Restore arms that only bets within epsilon of the named arm eliminated.

        Once another arm becomes the champion, they can exceed that one.
        """
        if self._named_by_race is not None:
            self._named_by_race, self.is_out = None, self.is_beaten.copy()

    def _are_out(self, arms: IntArray, wealths: FloatArray) -> BoolArray:
        """Which wealths reach their level, shape (A,).

        An infinite level is never reached, even on overflow.
        """
        levels = self.levels[arms]
        return np.asarray(np.isfinite(levels) & (wealths >= levels))

    def _is_full(self) -> BoolArray:
        return np.asarray(self._by_part(self.draws.count).sum(axis=1) == self.n_examples)

    def _least_sums(self, sums: FloatArray) -> FloatArray:
        """N times the least mean of each arm, from sums by row, shape (K,)."""
        return self.groups.least(sums * (self.n_examples / self.draws.totals))

    def _by_part(self, values: IntArray) -> IntArray:
        """Reshape values of rows by arm and part, shape (K, P)."""
        return values.reshape(self.n_arms, self.groups.n_parts)
