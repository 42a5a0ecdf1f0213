"""Statements about new examples like those of the benchmark.

"The best on these 150 examples" implies nothing for the 151st. But if the benchmark's examples are a random
sample of the examples in production, so are the score differences of two candidates. Three statements are
derived from these differences, each with its own error probability:

1. which candidates could be the best on new examples;
2. that one candidate is better on them than every other one;
3. the difference between the best candidate and an opponent. Both are chosen by their scores, so the interval
   holds for all pairs of candidates at once.

Which examples were scored for two candidates depends on scores, and so does the end of the campaign; see
`algorithms.new_examples.paired_sample`. If a selector chooses examples by its predictions, the scored ones
are not a random sample. Then nothing is derived for two candidates, unless both were evaluated on all
examples.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sqlalchemy.orm import Session

from winnow.storage.queries.objective import paired as paired_views
from winnow.storage.records.record_types import EQUAL_OUTPUTS
from winnow.tasks.answer.earlier_campaigns import Earlier
from winnow.tasks.data.clusters import LEAST_CLUSTERS
from winnow.tasks.spec.selector_traits import CHOOSES_EXAMPLES
from winnow.tasks.text.canonical_json import digest

if TYPE_CHECKING:
    from winnow.algorithms.new_examples import PairedSample, Row
    from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray

LEVEL = 0.05
"""Error probability of each statement."""
LEAST = LEAST_CLUSTERS
"""Minimum number of examples, or clusters, scored for both candidates; with fewer, intervals are useless."""
MOST_EXCLUDERS = 8
"""Maximum number of candidates that all others are compared with to exclude them.
A lower number excludes fewer candidates and stays valid.
"""
MOST_RIVALS = 4
"""Maximum number of candidates whose intervals are computed to find the winner's closest opponent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beyond:
    """The statements about new examples.

    `could_be_best`, `is_better`, `unjudged` and `unscored` are only derived in a search for the single best
    mean.
    """

    could_be_best: tuple[str, ...] | None = None
    """Candidates not shown to be worse than another on new examples, by arm; None if not derived."""
    is_better: bool = False
    """Whether exactly one candidate could be the best, and it is shown to be better than every other one."""
    unjudged: tuple[str, ...] = ()
    """Candidates of `could_be_best` that cannot be compared, because they were dropped, or joined after
    scores had been seen.
    """
    unscored: int = 0
    """Number of comparisons of all candidates without an outcome; 0 if `could_be_best` is not derived."""
    winner: str
    """The best candidate; with `top_m`, the last of the m best; for a gate, the one with the highest
    estimate.
    """
    rival: str
    """The candidate whose difference to the winner has the highest upper end; for a gate, the baseline."""
    n: int
    """Number of examples scored for both candidates that form a random sample."""
    clusters: int | None = None
    """Number of clusters of these examples, if whole clusters are a random sample; else None."""
    left_out: int
    """Number of comparisons of the two candidates without an outcome; for duels, those against each other."""
    is_sample: bool
    """Whether these examples are all of the benchmark's, or a random sample of them."""
    joined: str | None = None
    """The candidate of the two that was added after scores on these examples had been seen, so that they are
    not a random sample for it. None without such a candidate.
    """
    alike: int = 0
    """Number of examples whose prompt for the winner repeats that of an earlier example."""
    earlier: Earlier | None = None
    """An earlier campaign with outcomes of other candidates, or by another judge, on these examples; None
    without one.
    """
    difference: float | None
    """Mean difference on these examples, in [-1, 1]; for duels, the winner's share, in [0, 1]. None if the
    examples are too few or not a random sample.
    """
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The campaign that the statements are about, with its candidates and examples."""

    session: Session
    campaign_id: int
    names: Sequence[str]
    """All candidates, by position."""
    n_examples: int
    """Number of the benchmark's examples that selection can use."""
    selector: str
    is_duel: bool
    baseline: str | None = None
    """The baseline of a gate, which is fixed before any score; None for other campaigns."""
    joined: Collection[str] = ()
    """Candidates that joined after the campaign had begun."""
    dropped: Collection[str] = ()
    """Candidates that were dropped because they lacked outcomes."""
    clusters: Sequence[str] | None = None
    """Cluster of each example of the dataset, by position; None if examples were drawn one by one."""
    spares: bool = False
    """Whether equal outputs needed no verdict, so that their score differences are known to be 0."""
    lacks_texts: bool = False
    """Whether examples without a stored output were left out.
    Which ones were depends on scores.
    """
    earlier: Earlier | None = None
    """The earlier campaign to report in `Beyond.earlier`."""

    @property
    def are_drawn(self) -> bool:
        """Whether examples were drawn at random for each candidate, or pair in duels."""
        return draws_examples(self.selector) and not self.lacks_texts


def beyond_of(question: Question, winner: str, rival: str, *, finds_best: bool) -> Beyond:
    """Derive the statements about new examples.

    Args:
        question: The campaign.
        winner: Name of the best candidate, as in `Beyond`.
        rival: Name of its closest opponent on the benchmark's examples.
        finds_best: Whether the campaign searches for the single best mean. If so, the two statements about
            all candidates are derived, and `rival` is replaced by the candidate with the highest upper end.
    """
    samples = DuelSamples(question) if question.is_duel else ScoreSamples(question)
    could_be_best: tuple[str, ...] | None = None
    is_better, unscored = False, 0
    unjudged: tuple[str, ...] = ()
    if isinstance(samples, ScoreSamples) and finds_best:
        could_be_best, is_better, unjudged = _best_there(question, samples)
        unscored = samples.unscored
        rival = _closest(question, samples, winner, could_be_best) or rival
    joined = next((name for name in (winner, rival) if name in question.joined), None)
    left_out = paired_views.unscored(
        question.session,
        question.campaign_id,
        winner,
        rival,
        duels=question.is_duel,
        but=(EQUAL_OUTPUTS,) if question.spares else (),
    )
    found = samples.of(winner, rival)
    is_sample = found.complete is not None or question.are_drawn
    n_drawn = len(found.largest)
    ends = None
    if n_drawn >= LEAST and is_sample and joined is None:
        ends = _ends(question, found)
    difference = None if ends is None else found.mean
    lower, upper = (None, None) if ends is None else ends
    if question.is_duel and ends is not None and difference is not None:
        difference, lower, upper = (difference + 1.0) / 2.0, (ends[0] + 1.0) / 2.0, (ends[1] + 1.0) / 2.0
    return Beyond(
        could_be_best=could_be_best,
        is_better=is_better,
        unjudged=unjudged,
        unscored=unscored,
        winner=winner,
        rival=rival,
        n=found.n_examples,
        clusters=None if question.clusters is None else n_drawn,
        left_out=left_out,
        is_sample=is_sample,
        joined=joined,
        alike=0 if ends is None else _alike(question, winner, rival),
        earlier=question.earlier,
        difference=difference,
        lower=lower,
        upper=upper,
    )


def _ends(question: Question, sample: "PairedSample") -> tuple[float, float] | None:
    """Interval of a difference, valid for all pairs that could have been chosen."""
    from winnow.algorithms.new_examples import difference_interval

    n = len(question.names)
    pairs = n - 1 if question.baseline is not None else n * (n - 1) / 2
    return difference_interval(sample, LEVEL / pairs)


def _best_there(question: Question, samples: "ScoreSamples") -> tuple[tuple[str, ...], bool, tuple[str, ...]]:
    from winnow.algorithms.new_examples import best_there, is_higher

    names = question.names
    silent = frozenset(
        arm for arm, name in enumerate(names) if name in question.joined or name in question.dropped
    )
    found = best_there(
        len(names),
        samples.promising()[:MOST_EXCLUDERS],
        silent,
        LEVEL,
        lambda first, second, level: is_higher(samples.of(names[first], names[second]), level),
    )
    unjudged = tuple(names[arm] for arm in found.candidates if arm in silent)
    return tuple(names[arm] for arm in found.candidates), found.is_better, unjudged


def _closest(
    question: Question, samples: "ScoreSamples", winner: str, could_be_best: Collection[str]
) -> str | None:
    """The candidate whose difference to the winner has the highest upper end.

    Candidates that could be the best come first. None if no candidate has an interval.
    """
    others = [
        name
        for name in question.names
        if name != winner and name not in question.joined and name not in question.dropped
    ]
    pairs = {name: samples.of(name, winner) for name in others}
    hoped = {name: _hoped(pair) for name, pair in pairs.items() if len(pair.largest) >= LEAST}
    first = sorted(hoped, key=lambda name: (name not in could_be_best, -hoped[name]))[:MOST_RIVALS]
    ends = {name: found for name in first if (found := _ends(question, pairs[name])) is not None}
    return max(ends, key=lambda name: (name in could_be_best, ends[name][1]), default=None)


def _hoped(sample: "PairedSample") -> float:
    """Approximate upper end of a difference, to choose whose interval to compute."""
    differences = sample.largest
    spread: float = (differences.std() + 0.1) / len(differences) ** 0.5
    return sample.mean + 3.0 * spread


def _alike(question: Question, winner: str, rival: str) -> int:
    session, id_ = question.session, question.campaign_id
    if question.is_duel:
        n_asked, n_prompts = paired_views.prompts_of_duels(session, id_, winner, rival)
        return n_asked - n_prompts
    scores = paired_views.score_differences(session, id_, winner, rival)
    prompts = [each.prompt_id for each in scores if each.prompt_id is not None]
    return len(prompts) - len(set(prompts))


@dataclass(frozen=True)
class ScoreSamples:
    """Score differences of pairs of candidates, each as a random sample."""

    question: Question

    def of(self, first: str, second: str) -> "PairedSample":
        """The sample for two candidates: the first one's scores minus the second one's."""
        from winnow.algorithms.new_examples import NOTHING, paired_sample

        one, other = (self._rows[self._arms[name]] for name in (first, second))
        if self.question.clusters is None:
            return paired_sample(one, other, self._order, are_drawn=self.question.are_drawn)
        if not (one.asked.all() and other.asked.all()):
            return NOTHING  # which examples of a cluster were evaluated depends on scores
        return _of_clusters(self.question.clusters, self._positions, one.scores - other.scores)

    def promising(self) -> list[int]:
        """Arms by number of evaluated examples, then by mean, highest first."""
        import numpy as np

        def worth(arm: int) -> tuple[int, float]:
            scores = self._rows[arm].scores
            known = scores[_is_known(scores)]
            return -len(self._rows[arm].order), -float(np.mean(known)) if len(known) else 0.0

        return sorted(range(len(self._rows)), key=worth)

    @property
    def unscored(self) -> int:
        """Number of comparisons of all candidates without an outcome."""
        return sum(int(each.asked.sum() - _is_known(each.scores).sum()) for each in self._rows)

    @cached_property
    def _arms(self) -> Mapping[str, int]:
        return {name: arm for arm, name in enumerate(self.question.names)}

    @cached_property
    def _order(self) -> "IntArray":
        """The examples in a fixed pseudo-random order."""
        return by_chance(range(self.question.n_examples)).astype(int)

    @cached_property
    def _positions(self) -> list[int]:
        """Dataset positions of all examples that were evaluated."""
        return sorted({draw.example for draw in self._draws})

    @cached_property
    def _draws(self) -> list[paired_views.Draw]:
        spared = 0.0 if self.question.spares else None  # for all candidates compared on the example
        return paired_views.draws(self.question.session, self.question.campaign_id, spared=spared)

    @cached_property
    def _rows(self) -> "list[Row]":
        import numpy as np

        from winnow.algorithms.new_examples import Row

        question = self.question
        places = {each: place for place, each in enumerate(self._positions)}
        n = max(question.n_examples, len(places))
        found: list[list[tuple[int, float]]] = [[] for _ in question.names]
        for arm, example, outcome in self._draws:
            found[arm].append((places[example], np.nan if outcome is None else outcome))
        rows = []
        for each in found:
            order = np.array([place for place, _ in each], dtype=np.int64)
            scores, asked = np.full(n, np.nan), np.zeros(n, dtype=np.bool_)
            scores[order] = [outcome for _, outcome in each]
            asked[order] = True
            rows.append(Row(order, scores, asked & _is_known(scores) if question.lacks_texts else asked))
        return rows


@dataclass(frozen=True)
class DuelSamples:
    """Outcomes of duels of pairs of candidates, each as a random sample.

    Only the first scored duel on each example counts.
    """

    question: Question

    def of(self, first: str, second: str) -> "PairedSample":
        """The sample for two candidates: 1 for a win of the first, -1 for a loss."""
        import numpy as np

        from winnow.algorithms.new_examples import NOTHING, PairedSample

        question = self.question
        duels = paired_views.first_duels(question.session, question.campaign_id, first, second)
        values = np.array(
            [np.nan if each.outcome is None else 2.0 * each.outcome - 1.0 for each in duels], dtype=np.float64
        )
        known = values[_is_known(values)]
        complete, is_complete = None, len(duels if question.are_drawn else known) == question.n_examples
        if question.clusters is not None:
            positions = [each.example for each in duels]
            return _of_clusters(question.clusters, positions, values) if is_complete else NOTHING
        if is_complete:
            complete = by_chance(
                known[np.argsort([each.example for each in duels if each.outcome is not None])]
            )
        return PairedSample(complete, False, [known] if question.are_drawn else [], len(known))


def _of_clusters(
    clusters: Sequence[str], positions: Sequence[int], differences: "FloatArray"
) -> "PairedSample":
    """The sample of clusters; `NOTHING`, an empty sample, if the clusters are too few.

    Args:
        clusters: Cluster of each example of the dataset, by position.
        positions: Dataset positions of the examples, in the order of the differences.
        differences: Score differences, shape (N,); NaN if unscored.
    """
    import numpy as np

    from winnow.algorithms.new_examples import NOTHING, clustered_sample

    found = [clusters[position] for position in positions]
    numbers = {name: number for number, name in enumerate(sorted(set(found)))}
    of_example = np.array([numbers[name] for name in found], dtype=np.int64)
    sample = clustered_sample(differences, of_example, by_chance(range(len(numbers))).astype(int))
    return sample if len(sample.largest) >= LEAST else NOTHING


def _is_known(values: "FloatArray") -> "BoolArray":
    import numpy as np

    return ~np.isnan(values)


def by_chance(values: "Sequence[float] | FloatArray") -> "FloatArray":
    """Reorder values pseudo-randomly, independently of the values and their positions.

    The order is the same in every run. The guarantee of bets on one value after another requires that the
    values are independent draws, in an order that does not depend on them.
    """
    import numpy as np

    # The JSON is written by hand, because there can be a hundred thousand values.
    places = sorted(range(len(values)), key=lambda place: digest(f'["order",{place}]'))
    return np.asarray(values, dtype=np.float64)[places]


def draws_examples(selector: str) -> bool:
    """Whether a selector draws examples uniformly from the remaining ones.

    False for a plug-in, whose draws are unknown.
    """
    from winnow.algorithms.registry import SELECTORS

    is_ours = any(selector in names for names in SELECTORS.values())
    return is_ours and selector not in CHOOSES_EXAMPLES
