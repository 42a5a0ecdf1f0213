"""Champion: best arm with a guarantee.

It uses a race, and tests against a filled row.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.groups import groups_of
from winnow.algorithms.best_mean.score_matrix import ScoreMatrix
from winnow.algorithms.best_mean.stopping import interval_alpha
from winnow.algorithms.champion.allocation import SMALLEST, plan, spread
from winnow.algorithms.champion.cheaper_arms import Prefer, Thrift, thrift_of
from winnow.algorithms.champion.constraints import checked_constraints
from winnow.algorithms.champion.control_variates import past_ease
from winnow.algorithms.champion.draw_order import Grouped
from winnow.algorithms.champion.elimination import Evidence
from winnow.algorithms.champion.excess import ExcessBound
from winnow.algorithms.champion.spared import Spared
from winnow.algorithms.champion.switch import Goal, Start, mode_of, race_costs_more
from winnow.algorithms.champion.top_m import check_top_m
from winnow.algorithms.champion.verdict import Additions, Dropping, Ties, Verdict
from winnow.algorithms.decision import Bets, Decision, Excess
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.low_rank.history import History
from winnow.algorithms.protocols import EMPTY_BATCH, Batch
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray, with_more

COMPARISONS_PER_STEP = 32  # minimum per step of the race, for smaller rounds
COLUMN_GROWTH = 0.05  # relative to the observed common examples, for rounds with many arms
FIRST_COLUMNS = 2


class Champion:
    """Race all arms on common examples, then fill the best row and test the others against its mean.

    In a race every arm in question gets the same random examples, and bets that better arms beat it. If
    `epsilon` is large enough, each arm also bets that it does not exceed the first arm by `epsilon`, and the
    race ends once all other arms have won this bet. The mean of a filled row is known: each other arm bets,
    on its own examples, that it is not as good, with the filled row and the other arms' scores as control
    variates. All bets form one wealth per arm, and an arm is eliminated once its wealth reaches 1/delta. A
    wrong answer requires that the wealth of the one best arm reaches it, so the error probability is delta
    without a union bound over arms; docs/how-the-guarantee-works.md has the proof.

    In a round of the race every arm in question gets at least one example, however small `batch_size` is; a
    row is filled in one round. Otherwise `batch_size` is about the size of a round; up to 4, a round proposes
    examples of one arm only. Without `delta` the tests are at level 0.05, and once they are decided the
    selector proposes the rest of the matrix.

    Args:
        config: The problem and the common parameters.
        start: "race" never fills a row while the race goes on, "champion" fills one at once. "auto" weights
            both by the size of the matrix, and leaves the race when it would cost more than it saves.
        dropping: With m arms dropped, which arm is the best of the rest depends on the data. "stated" then
            states an error probability of (m + 1) delta; "reserved" keeps it at delta, but eliminates an arm
            only at a wealth of 2/delta, or (m + 1)(m + 2)/delta once arms are dropped.
        additions: If lists of arms are added after scores were observed, the set of arms depends on the data.
            "stated" states J + 1 times the error probability after J lists, if the number of lists does not
            depend on the data. "expected" keeps the error probability, but eliminates an arm of list j
            only at a wealth of (j + 1)(j + 2)/delta; list 0 is the arms from the beginning.
        prefer: "cost" finds the cheapest arm that is good enough once the best is known: half of `delta` and
            half of `epsilon` is for the best, the other halves are for the cheapest, so that no arm is better
            than the chosen one by more than `epsilon`. Requires both parameters.
        costs: Shape (K,), cost of each arm, fixed beforehand; in a campaign's file, by candidate.
        top_m: m, to find the m best arms: no other arm has a mean that exceeds one of theirs by more than
            `epsilon`. With more than 1, m rows are filled and there is no race.
        history: Scores of other models on the same examples, shape (M, N), in [0, 1], NaN if missing. How
            easy an example is for the best of these rows gives a control variate. The guarantee holds for any
            history; its correlation with an arm's scores is learned from the campaign.
        groups: Shape (N,), the group of each example, counted from 0: arms are then compared by a value
            computed from their means on the groups.
        group_weights: Shape (G,), above 0, weight of each group in the mean of the groups' means. None, with
            groups, compares arms by the least of these means, which requires a `start` other than "race".
        constraints: Shape (J,), in (0, 1]: required means of J further outcomes, each in [0, 1], which are
            observed with the score of a pair. Only an arm whose means of these outcomes over all examples are
            at least the required ones can be the best. There is then no race, and no arm can be added.
            Requires `delta`.
        ties: "open" stops once no other arm can have a higher mean, whatever the unobserved scores are.
            "resolve" then continues until it is known which arms have the same mean.
        excess: Whether decisions state an upper bound on how much better another arm can be.
        spares: See `RaceOnly`.

    Source: this project; bets on draws without replacement after Waudby-Smith & Ramdas (2020), "Confidence
    sequences for sampling without replacement".
    """

    def __init__(
        self,
        config: BestMeanConfig,
        *,
        start: Start = "auto",
        dropping: Dropping = "stated",
        additions: Additions = "stated",
        prefer: Prefer = "mean",
        costs: FloatArray | None = None,
        top_m: int = 1,
        history: FloatArray | None = None,
        groups: IntArray | None = None,
        group_weights: FloatArray | None = None,
        constraints: FloatArray | None = None,
        ties: Ties = "resolve",
        excess: bool = False,
        spares: bool = False,
    ) -> None:
        check_top_m(top_m, config.n_arms, start, prefer)
        at_least = checked_constraints(
            constraints, config, start=start, prefer=prefer, top_m=top_m, has_groups=groups is not None
        )
        given = groups_of(groups, group_weights, config.n_examples)
        if groups is not None:
            _check_groups(top_m, start, prefer, is_least=group_weights is None)
        thrift = thrift_of(config, costs) if prefer == "cost" else None
        if thrift is not None and config.delta is not None:  # half of both is for the best arm
            config = replace(config, delta=config.delta / 2.0, epsilon=config.epsilon / 2.0)
        self._config = config
        has_no_race = top_m > 1 or given.n_parts > 1 or at_least is not None
        self._mode = mode_of(
            config.n_arms,
            config.n_examples,
            "champion" if has_no_race else start,
            delta=interval_alpha(config),
            epsilon=config.epsilon,
        )
        self._spared = Spared(config.n_arms) if spares else None
        if spares:  # a spared outcome is not a score, so there are no bets on single means
            self._mode = replace(self._mode, weight=1.0)
        self._matrix = ScoreMatrix(config, given)
        self._thrift = thrift
        self._verdict = Verdict(
            config, self._matrix, self._mode, dropping, additions, top_m, thrift, ties, self._spared
        )
        level = float(self._verdict.levels[0])
        past = None
        if history is not None:
            past = past_ease(History.checked(history, config.n_examples).scores)
        self.evidence = Evidence(
            config.n_arms,
            config.n_examples,
            self._mode,
            level=level,
            epsilon=config.epsilon,
            past=past,
            top_m=top_m,
            groups=given,
            at_least=at_least,
            ties_are_open=ties == "open",
        )
        self._excess = ExcessBound(config.n_arms) if excess else None
        self._rounds_told = 0  # until the best is known
        self.out_in_round = np.full(config.n_arms, -1)
        """Shape (K,), round, counted from 0, in which each arm was eliminated.
        -1 if it was not."""
        self.out_at = np.full(config.n_arms, -1)
        """Shape (K,), number of observed pairs, of all arms, at the elimination.
        -1 if not eliminated."""

    @property
    def wealths(self) -> FloatArray:
        """Wealth of the bets that each arm is not the best, from a stake of 1, shape (K,).

        An arm is eliminated at its level, see `levels`. The best arm's wealth ever reaches x with probability
        at most 1/x; for dropped or added arms, see `dropping` and `additions`.
        """
        return self.evidence.wealths(np.arange(self.n_arms))

    @property
    def levels(self) -> FloatArray:
        """Wealth at which each arm is eliminated, shape (K,).

        Infinite if no elimination can be proven.
        """
        return self.evidence.levels

    @property
    def excess(self) -> Excess | None:
        """Bound from the bets on how much better another arm can be.

        None if not requested or not proven yet.
        """
        return None if self._excess is None else self._excess.found

    @property
    def n_arms(self) -> int:
        """Number of arms K, including those added."""
        return self._matrix.n_arms

    def add_arms(self, count: int) -> None:
        """Add a list of arms from now on; earlier arms keep their indices.

        The state of earlier arms does not change. A race that has begun is ended, because the examples of the
        new arms have their own order. A replay must add the same numbers of arms between the same calls of
        `tell`. See `additions` for the error probability that an answer then states.

        Args:
            count: Number of arms to add, at least 1.
        """
        if count < 1:
            raise InvalidParameter("count", count, "at least 1")
        if self._thrift is not None:
            raise InvalidParameter("prefer", "cost", "'mean' if arms are added")
        if len(self.evidence.constraints):
            raise InvalidParameter("constraints", "an array", "None if arms are added")
        if self._spared is not None:
            raise InvalidParameter("spares", True, "false if arms are added")
        self._matrix.add_arms(count)
        self._verdict.add_arms(count)
        self.evidence.add_arms(self._verdict.levels)
        if self._excess is not None:
            self._excess.restart(self.n_arms)
        self.out_in_round = with_more(self.out_in_round, count, -1)
        self.out_at = with_more(self.out_at, count, -1)

    def leave_out(self, arms: IntArray) -> None:
        """Drop arms with the next `tell`.

        See `LeavingOut`, and `dropping` for the error probability.
        """
        if self._spared is not None and len(arms):
            raise InvalidParameter("spares", True, "false if arms are left out")
        self._matrix.leave_out(arms)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose common examples of all arms in question, or examples of a few arms."""
        room = self._verdict.room(self.evidence)
        if room == 0:
            return EMPTY_BATCH
        if self._thrift is not None and self.evidence.is_decided:
            return self._ask_cheaper(self._thrift, room, rng)
        if self._continues_race(rng):
            batch = self._ask_columns(room, rng)
            if len(batch) > 0:
                return batch
        return self._ask_arms(room, rng)

    def compares_all(self, batch: Batch) -> bool:
        """Whether a batch, if observed next, has common examples of all arms in question.

        See `Sparing`.
        """
        return self.evidence.can_race and len(batch) > 0 and self._places(batch) is not None

    def take_up(self, batch: Batch) -> None:
        """Register a batch as proposed and pending."""
        self._matrix.ask(batch.arms, batch.examples)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe scores in [0, 1] of B pairs, NaN if unscored.

        Without constraints, shape (B,). With J constraints, shape (B, 1 + J): the score, then an outcome for
        each constraint.
        """
        given, values = self.evidence.constraints.split(batch, outcomes)
        if self._spared is not None:
            given = self._spared.tell(batch, given, are_common=self.compares_all(batch))
        scores = self._matrix.tell(batch, given)
        if len(batch) == 0:
            return
        self.evidence.constraints.tell(batch, values)
        if self._thrift is not None:
            self._thrift.tell(batch, scores, self._matrix.active)
            if self._thrift.has_begun:  # the answer about the best arm is final
                self._verdict.tell(Grouped.of(batch.arms, batch.examples, scores), None)
                return
        self._tell_evidence(batch, scores)
        self._bound_excess()
        champion = self.evidence.champion
        if self._thrift is not None and self.evidence.is_decided and champion is not None:
            self._thrift.begin(champion, self._matrix.active, may_choose=self._verdict.may_choose)

    def revise(self, batch: Batch, outcomes: ArrayLike) -> None:
        """See `Revising`; not with constraints, spared outcomes, or a search for the cheapest arm."""
        for name, value, is_set in (
            ("prefer", "cost", self._thrift is not None),
            ("constraints", "an array", bool(len(self.evidence.constraints))),
            ("spares", True, self._spared is not None),
        ):
            if is_set:
                raise InvalidParameter(name, value, "left out if unscored pairs are observed again")
        scores = self._matrix.revise(batch, outcomes)
        known = ~np.isnan(scores)
        if known.any():
            self.evidence.revise(batch.arms[known], batch.examples[known], scores[known])
        self._drop_in_evidence()
        self._note_eliminations()

    def _tell_evidence(self, batch: Batch, scores: FloatArray) -> None:
        grouped = Grouped.of(batch.arms, batch.examples, scores)
        columns = self._columns_of(batch, scores) if self.evidence.can_race else None
        band = None
        if columns is not None:
            self.evidence.tell_columns(grouped, np.flatnonzero(self.evidence.alive), columns)
        else:
            groups, by_row = self._matrix.groups, grouped
            if groups.n_parts > 1:
                by_row = Grouped.of(groups.row_of(batch.arms, batch.examples), batch.examples, scores)
            band = self.evidence.tell(by_row, self._untold_before(by_row))
        self._verdict.tell(grouped, band)
        self._drop_in_evidence()
        self._note_eliminations()

    def _drop_in_evidence(self) -> None:
        """Drop the arms that the matrix has dropped from the evidence, too."""
        if not np.array_equal(self._matrix.active, self.evidence.active):
            self.evidence.drop(self._matrix.active, self._verdict.levels)
            if self._excess is not None:
                self._excess.restart(self.n_arms)

    def _bound_excess(self) -> None:
        """Update the bound on how much better another arm can be."""
        if self._excess is None or self._verdict.stated >= 1.0 or not self._matrix.active.any():
            return
        if self._matrix.revised.any():  # earlier bounds stay valid, and are not lowered
            return
        n_told, stated = int(self._matrix.told.sum()), self._verdict.stated
        self._excess.look(self.evidence, n_told, stated, is_last=self._verdict.is_spent(self.evidence))

    def decision(self) -> Decision:
        """Recommend the best filled row.

        Otherwise the last arm in the race, or the arm with the highest mean.
        """
        bets = Bets(
            wealths=self.wealths,
            levels=self.levels.copy(),
            out_in_round=self.out_in_round.copy(),
            out_at=self.out_at.copy(),
        )
        decision = replace(self._verdict.decision(self.evidence), bets=bets)
        if self._spared is not None:
            decision = replace(decision, estimates=self._spared.means)
        return decision if self._excess is None else replace(decision, excess=self._excess_of(decision))

    def _excess_of(self, decision: Decision) -> Excess | None:
        """The smallest proven excess, by the bound or by the claim about the best arm.

        None if no excess is proven, or after the search for a cheaper arm has begun.
        """
        if self._excess is None or (self._thrift is not None and self._thrift.has_begun):
            return None
        found, claim, epsilon = self.excess, decision.claim, self._config.epsilon
        is_claimed = claim.kind in ("exact", "proven") and self.evidence.top_m == 1
        if decision.best is None or not is_claimed or (found is not None and found.most < epsilon):
            return found
        return Excess(over=decision.best, most=epsilon, delta=claim.delta or 0.0)

    def leave_out_intervals(self) -> None:
        """Stop computing intervals and the bound on the excess.

        Decisions stay the same otherwise.
        """
        self._verdict.leave_out_intervals()
        self._excess = None

    def _continues_race(self, rng: np.random.Generator) -> bool:
        """Whether the next batch belongs to the race.

        The race ends permanently with the first batch that does not consist of common examples. Whether a
        batch in flight does is determined from the batch itself, exactly as when it is observed. So the
        answer is the same for a selector that proposed the batch, took it up, or only observed it.
        """
        evidence, mode = self.evidence, self._mode
        if not evidence.can_race or evidence.is_decided:
            return False
        # A batch proposed before arms were added lacks them. The next common examples would be drawn from
        # those that the other arms have left, a non-random selection for the new arms.
        if any(_width(batch) < 2 or self._places(batch) is None for batch in self._matrix.in_flight):
            return False
        told = evidence.race.n_columns
        if not mode.leaves or self._asked_columns() < mode.columns:
            return True
        if mode.weight == 0.0:
            return False
        if told < FIRST_COLUMNS:
            return True
        arms = np.flatnonzero(evidence.alive)
        return not race_costs_more(
            n_examples=self._config.n_examples,
            n_columns=told,
            goal=Goal.of(mode, self._config.n_arms, self._verdict.delta, self._config.epsilon),
            means=evidence.race.low[arms] / told,
            products=evidence.race.products[np.ix_(arms, arms)] / told,
            n_arms=self._config.n_arms,
            rng=rng,
        )

    def _asked_columns(self) -> int:
        """Number of common examples observed or in flight."""
        arm = int(np.flatnonzero(self.evidence.alive)[0])
        return int(self._matrix.told[arm] + self._matrix.pending[arm])

    def _ask_columns(self, room: int, rng: np.random.Generator) -> Batch:
        """Propose the next common examples, with all arms on each example in turn.

        Empty if the budget does not suffice for all arms on one example, or no example is left.
        """
        arms = np.flatnonzero(self.evidence.alive)
        asked, size = self._asked_columns(), self._config.batch_size
        columns = FIRST_COLUMNS
        if asked > 0 and size <= SMALLEST:
            columns = min(math.ceil(COMPARISONS_PER_STEP / len(arms)), size)
        elif asked > 0:
            columns = max(math.ceil(size / len(arms)), int(COLUMN_GROWTH * asked))
        if asked < self._mode.columns:
            columns = min(columns, self._mode.columns - asked)
        columns = min(columns, room // len(arms))
        examples = self._matrix.draw(int(arms[0]), columns, rng)
        return self._matrix.ask(np.tile(arms, len(examples)), np.repeat(examples, len(arms)))

    def _ask_arms(self, room: int, rng: np.random.Generator) -> Batch:
        """Propose separate examples of each arm."""
        matrix = self._matrix
        size = min(self._config.batch_size, room)
        portions = [] if self.evidence.is_decided else plan(self.evidence, matrix.asked, size)
        arms: list[IntArray] = []
        examples: list[IntArray] = []
        for arm, wanted in portions:
            drawn = self._draw(arm, min(wanted, room), rng)
            room -= len(drawn)
            arms.append(np.full(len(drawn), arm))
            examples.append(drawn)
        if not portions:
            return EMPTY_BATCH if self._config.delta is not None else matrix.ask_uniformly(size, rng)
        return matrix.ask(np.concatenate(arms), np.concatenate(examples))

    def _draw(self, arm: int, size: int, rng: np.random.Generator) -> IntArray:
        """Draw separate examples of an arm.

        If groups are tested separately, in order of their parts.
        """
        matrix = self._matrix
        if matrix.groups.n_parts == 1 or size == 0:
            return matrix.draw(arm, size, rng)
        of_parts = spread(self.evidence, arm, matrix.asked[arm], size, rng)
        return np.concatenate([matrix.draw(arm, wanted, rng, part) for part, wanted in of_parts])

    def _ask_cheaper(self, thrift: Thrift, room: int, rng: np.random.Generator) -> Batch:
        """Propose examples of the best arm, or of the arm under test.

        The best arm's row is filled first.
        """
        if thrift.has_begun:
            arm, size = thrift.next_arm, self._config.batch_size
        else:
            arm, size = int(self.evidence.alive.argmax()), self._config.n_examples
        if arm is None:
            return EMPTY_BATCH
        examples = self._matrix.draw(arm, min(size, room), rng)
        return self._matrix.ask(np.full(len(examples), arm), examples)

    def _columns_of(self, batch: Batch, scores: FloatArray) -> FloatArray | None:
        """Scores of the arms in question, shape (A, B).

        None unless the batch has all of them on common examples.
        """
        places = self._places(batch)
        return None if places is None else np.asarray(scores.reshape(-1, _width(batch))[:, places].T)

    def _places(self, batch: Batch) -> IntArray | None:
        """Positions of the arms in question among the arms of each example, shape (A,).

        None unless every example of the batch has all arms in question.
        """
        arms = np.flatnonzero(self.evidence.alive)
        if arms.size == 0:  # all were dropped while batches of the race are in flight
            return None
        width = _width(batch)
        if width < len(arms):
            return None
        of_first = batch.arms[:width]
        place = np.searchsorted(of_first, arms)
        if place.max() >= width or not np.array_equal(of_first[place], arms):
            return None
        return np.asarray(place)

    def _untold_before(self, batch: Grouped) -> BoolArray:
        """Which examples of each row were not observed before a batch, shape (G, N)."""
        groups = self._matrix.groups
        untold = self._matrix.untold(batch.arms // groups.n_parts)
        untold[batch.group, batch.examples] = True
        if groups.n_parts > 1:
            untold &= groups.part_of == (batch.arms % groups.n_parts)[:, np.newaxis]
        return untold

    def _note_eliminations(self) -> None:
        is_out = self.evidence.is_out
        newly = is_out & (self.out_in_round < 0)
        self.out_in_round[newly] = self._rounds_told
        self.out_at[newly] = int(self._matrix.told.sum())
        self.out_in_round[~is_out] = self.out_at[~is_out] = -1
        self._rounds_told += 1


def _check_groups(top_m: int, start: Start, prefer: Prefer, *, is_least: bool) -> None:
    """Raise `InvalidParameter` if a setting is incompatible with groups."""
    if top_m > 1:
        raise InvalidParameter("top_m", top_m, "1 if groups are compared")
    if prefer == "cost":
        raise InvalidParameter("prefer", prefer, "'mean' if groups are compared")
    if is_least and start == "race":
        raise InvalidParameter("start", start, "'auto' or 'champion' for the least mean of groups")


def _check_sparing(config: BestMeanConfig, *, has_groups: bool) -> None:
    """Raise `InvalidParameter` if a setting is incompatible with `spares`."""
    for name, value, holds, requirement in (
        ("delta", config.delta, config.delta is not None, "set if outcomes can be spared"),
        ("max_unscored", config.max_unscored, config.max_unscored == 1.0, "1 if outcomes can be spared"),
        ("groups", "an array", not has_groups, "None if outcomes can be spared"),
    ):
        if not holds:
            raise InvalidParameter(name, value, requirement)


def _width(batch: Batch) -> int:
    """Number of arms per example if all examples have the same arms; else 0.

    The batch must not be empty.
    """
    changes = np.flatnonzero(batch.examples[1:] != batch.examples[:-1])
    width = int(changes[0]) + 1 if changes.size else len(batch)
    if len(batch) % width:
        return 0
    of_arms, of_examples = batch.arms.reshape(-1, width), batch.examples.reshape(-1, width)
    is_common = (of_arms == of_arms[0]).all() and (of_examples == of_examples[:, :1]).all()
    return width if is_common else 0


class RaceOnly(Champion):
    """Give all arms in question the same random examples until one is left.

    A champion that never leaves the race. It is the better choice if the answer costs less than a row, which
    is 1/K of the K x N pairs. The race ends early only if arms were added, or if eliminated arms are in
    question again because an arm that they raced against was dropped.

    Args:
        config: The problem and the common parameters.
        dropping: Same as in `Champion`.
        additions: Same as in `Champion`.
        groups: Same as in `Champion`.
        group_weights: Same as in `Champion`, required with groups: a race cannot compare arms by their least
            group mean.
        ties: Same as in `Champion`.
        excess: Same as in `Champion`.
        spares: Whether outcomes can be `SPARED`, on common examples of all arms in question. Estimates are
            then means over the other examples, without intervals, and differences come from the race alone.
            Requires `delta`; no arm can be dropped or added.

    Source: this project; see `Champion`.
    """

    def __init__(
        self,
        config: BestMeanConfig,
        *,
        dropping: Dropping = "stated",
        additions: Additions = "stated",
        groups: IntArray | None = None,
        group_weights: FloatArray | None = None,
        ties: Ties = "resolve",
        excess: bool = False,
        spares: bool = False,
    ) -> None:
        if spares:
            _check_sparing(config, has_groups=groups is not None)
        super().__init__(
            config,
            start="race",
            dropping=dropping,
            additions=additions,
            groups=groups,
            group_weights=group_weights,
            ties=ties,
            excess=excess,
            spares=spares,
        )
