"""Number of comparisons until a champion stops, by continuing it on plausible scores of unobserved pairs.

This is an estimate, and no claim depends on it. A continuation draws plausible means of the arms in question,
gives them scores with these means, and lets a copy of the selector run on these scores to its stop.

The means are those of `switch.py`: sample means, shrunk towards each other by the share of their variance
that is noise, plus noise. The score of an unobserved pair is that of a donor: an example on which the arm was
scored. If all arms in question were scored on the same examples, they have the same donors, so that the
correlation of their scores is kept. Otherwise a donor is about as easy as the example. Then scores are moved
towards 0 or 1 until their mean is the drawn one: a random share of them if scores are 0 or 1, else all alike.
"""

import copy
from typing import NamedTuple

import numpy as np

from winnow.algorithms.champion.selector import Champion
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray

CONTINUATIONS = 20
SHARE = 0.8
"""Share of continuations between the two ends of `Remaining`."""
NEIGHBOURS = 2  # donors on either side of an example that is as easy as no donor
LEAST_KEPT = 0.05  # share of the differences of sample means that is taken for real
PRIOR_SLOPE, PRIOR_WEIGHT = 0.3, 0.1  # of a regression on how easy examples are, as in `control_variates.py`
PRIOR_VARIANCE = 0.1


class Observed(NamedTuple):
    """Observations of a selector, by arm and example."""

    scores: FloatArray
    """Shape (K, N); NaN where there is none."""
    asked: BoolArray
    """Shape (K, N), observed pairs, with a score or without."""


class Remaining(NamedTuple):
    """Comparisons until the stop."""

    comparisons: int
    """Their median over the continuations."""
    fewest: int
    """Lower end of the middle `SHARE` of the continuations."""
    most: int
    """Upper end."""
    is_settled: bool
    """Whether most continuations end with a claim, not just because nothing is left to observe."""


def remaining(selector: Champion, observed: Observed, rng: np.random.Generator) -> Remaining:
    """Estimate the number of comparisons until a selector stops.

    Args:
        selector: Has observed all of this, without a budget or constraints; unchanged afterwards.
        observed: What it has observed.
        rng: Draws scores and the examples of continuations.
    """
    counts, n_settled = np.empty(CONTINUATIONS, dtype=np.int64), 0
    known = copy.deepcopy(selector)
    known.leave_out_intervals()  # they take half of the time
    for number in range(CONTINUATIONS):
        scores = plausible_scores(
            observed, np.flatnonzero(known.evidence.alive), known.evidence.champion, rng
        )
        played, told = copy.deepcopy(known), 0
        while len(batch := played.ask(rng)):
            played.tell(batch, scores[batch.arms, batch.examples])
            told += len(batch)
        counts[number], n_settled = told, n_settled + (played.decision().reason == "confident")
    counts.sort()
    outside = round((1.0 - SHARE) / 2.0 * CONTINUATIONS) - 1  # continuations beyond each end
    return Remaining(
        comparisons=round(float(np.median(counts))),
        fewest=int(counts[outside]),
        most=int(counts[-1 - outside]),
        is_settled=2 * n_settled > CONTINUATIONS,
    )


def plausible_scores(
    observed: Observed, arms: IntArray, champion: int | None, rng: np.random.Generator
) -> FloatArray:
    """Scores of all pairs, shape (K, N): observed ones, and drawn ones of some arms' unobserved pairs.

    Args:
        observed: What was observed.
        arms: Shape (A,), the arms to complete.
        champion: The filled row that others are tested against; None before there is one.
        rng: Draws them.
    """
    scores, asked = observed.scores[arms], observed.asked[arms]
    is_scored = ~np.isnan(scores)
    counts = is_scored.sum(axis=1)
    sums = np.nansum(scores, axis=1)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), 0.5)  # (A,)
    residuals = np.where(is_scored, scores - means[:, np.newaxis], 0.0)  # (A, N)
    ease = residuals.sum(axis=0) / (1 + is_scored.sum(axis=0))  # (N,)
    if champion is not None:
        ease = np.nan_to_num(observed.scores[champion])
    are_common = bool((is_scored == is_scored[0]).all())
    donors = _common_donors(is_scored[0], len(arms), rng) if are_common else _donors(is_scored, ease, rng)
    drawn = np.take_along_axis(scores, donors, axis=1)
    drawn = np.where(np.isnan(drawn), 0.5, drawn)  # arms without a score
    estimates, variances = means, (residuals**2).sum(axis=1) / np.maximum(counts, 1)
    if champion is not None:
        estimates, variances = _controlled(residuals, is_scored, means, ease)
    elif are_common and len(arms) > 1:
        own = residuals - residuals.mean(axis=0)
        variances = (own**2).sum(axis=1) / np.maximum(counts, 1) * len(arms) / (len(arms) - 1)
    variances = (variances * counts + PRIOR_VARIANCE) / (counts + 1)
    n_asked, n_examples = asked.sum(axis=1), asked.shape[1]
    targets = _plausible_means(estimates, variances, counts, n_asked / n_examples, rng)
    found = observed.scores.copy()
    for row, arm in enumerate(arms):
        rest = ~asked[row]
        if not rest.any():
            continue
        target = (n_examples * targets[row] - n_asked[row] * means[row]) / rest.sum()
        is_binary = bool(np.isin(scores[row, is_scored[row]], (0.0, 1.0)).all())
        found[arm, rest] = _moved(drawn[row, rest], min(max(target, 0.0), 1.0), is_binary, rng)
    return found


def _common_donors(is_scored: BoolArray, n_arms: int, rng: np.random.Generator) -> IntArray:
    """A random scored example for each example, the same one for all arms, shape (A, N)."""
    known, n_examples = np.flatnonzero(is_scored), len(is_scored)
    chosen = rng.choice(known, n_examples) if len(known) else np.zeros(n_examples, dtype=np.int64)
    return np.broadcast_to(chosen, (n_arms, n_examples))


def _donors(is_scored: BoolArray, ease: FloatArray, rng: np.random.Generator) -> IntArray:
    """For each arm and example, a random one of its scored examples that are about as easy, shape (A, N)."""
    n_examples = len(ease)
    donors = np.zeros(is_scored.shape, dtype=np.int64)
    for row, mine in enumerate(is_scored):
        known = np.flatnonzero(mine)
        if len(known) == 0:
            continue
        known = known[np.lexsort((rng.random(len(known)), ease[known]))]
        first = np.searchsorted(ease[known], ease, "left")
        last = np.searchsorted(ease[known], ease, "right")
        is_alone = first == last
        first = np.clip(first - NEIGHBOURS * is_alone, 0, len(known) - 1)
        last = np.clip(last + NEIGHBOURS * is_alone, first + 1, len(known))
        donors[row] = known[first + (rng.random(n_examples) * (last - first)).astype(np.int64)]
    return donors


def _controlled(
    residuals: FloatArray, is_scored: BoolArray, means: FloatArray, ease: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Means and variances of A arms by a regression of their scores on how easy examples are, (A,) each."""
    counts = np.maximum(is_scored.sum(axis=1), 1)
    centred = ease - ease.mean()
    excess = (is_scored * centred).sum(axis=1) / counts  # (A,) of the scored examples over all
    features = np.where(is_scored, centred - excess[:, np.newaxis], 0.0)
    slopes = (residuals * features).sum(axis=1) + PRIOR_SLOPE * PRIOR_WEIGHT
    slopes /= (features**2).sum(axis=1) + PRIOR_WEIGHT
    rest = residuals - slopes[:, np.newaxis] * features
    return means - slopes * excess, (rest**2).sum(axis=1) / counts


def _plausible_means(
    estimates: FloatArray, variances: FloatArray, counts: IntArray, seen: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Draw means of A arms over all examples; `seen` is the share of examples observed of each."""
    noise = variances / np.maximum(counts, 1) * (1.0 - seen)
    kept = min(1.0, max(LEAST_KEPT, 1.0 - noise.mean() / max(estimates.var(), 1e-12)))
    kept = kept if len(estimates) > 1 else 1.0
    shrunk = estimates.mean() + kept * (estimates - estimates.mean())
    centre = np.where(seen < 1.0, shrunk, estimates)
    return np.asarray(centre + np.sqrt(kept * noise) * rng.standard_normal(len(estimates)))


def _moved(values: FloatArray, target: float, is_binary: bool, rng: np.random.Generator) -> FloatArray:
    """Move scores towards 0 or 1 until their expected mean is the target; both in [0, 1]."""
    mean = float(values.mean())
    goal, distance = (1.0, 1.0 - mean) if target > mean else (0.0, mean)
    if distance == 0.0:
        return values
    share = abs(target - mean) / distance
    if is_binary:
        return np.where(rng.random(len(values)) < share, goal, values)
    return np.asarray(values + share * (goal - values))
