"""Estimate the number of comparisons until `Champion` stops.

The rest of the run is simulated. No claim depends on the estimate. A continuation draws plausible means of
the arms in question, gives their unobserved pairs scores with these means, and lets a copy of the selector
run on these scores to its stop.

The means are those of `switch.py`: sample means, shrunk towards each other by the share of their variance
that is noise, plus noise. The score of an unobserved pair is that of a donor: an example on which the arm was
scored. If all arms in question were scored on the same examples, they share their donors, which keeps the
correlation of their scores. Otherwise a donor is about as easy as the example. Then scores are moved
towards 0 or 1 until their mean is the drawn one: a random share of them if scores are 0 or 1, otherwise all
of them proportionally.
"""

import copy
from typing import NamedTuple

import numpy as np

from winnow.algorithms.champion.selector import Champion
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray

CONTINUATIONS = 20
SHARE = 0.8
"""Share of the continuations between `Remaining.fewest` and `Remaining.most`."""
NEIGHBOURS = 2  # donors on either side of an example if no donor is exactly as easy
LEAST_KEPT = 0.05  # smallest share of the differences of sample means that is not treated as noise
PRIOR_SLOPE, PRIOR_WEIGHT = 0.3, 0.1  # of a regression on how easy examples are, as in `control_variates.py`
PRIOR_VARIANCE = 0.1


class Observed(NamedTuple):
    """Scores and observed pairs of a selector."""

    scores: FloatArray
    """Shape (K, N); NaN if the pair has no score."""
    asked: BoolArray
    """Shape (K, N), whether a pair was observed, with or without a score."""


class Remaining(NamedTuple):
    """Distribution of the number of comparisons until the stop."""

    comparisons: int
    """Median over the continuations."""
    fewest: int
    """Lower end of the middle `SHARE` of the continuations."""
    most: int
    """Upper end of the middle `SHARE` of the continuations."""
    is_settled: bool
    """Whether most continuations stop with a claim.
    The others stop because no pair is left to observe."""


def remaining(selector: Champion, observed: Observed, rng: np.random.Generator) -> Remaining:
    """Estimate the number of comparisons until a selector stops.

    Args:
        selector: A selector that has observed exactly `observed`, without a budget or constraints. The call
            does not change it.
        observed: The observations.
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
    """Scores of all pairs, shape (K, N): observed or simulated.

    Scores are simulated for the unobserved pairs of some arms.

    Args:
        observed: The observations.
        arms: Shape (A,), the arms whose unobserved pairs get simulated scores.
        champion: Arm of the filled row that the others are tested against; None if no row is filled.
        rng: Draws the simulated scores.
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
        found[arm, rest] = _shift_to_mean(drawn[row, rest], min(max(target, 0.0), 1.0), is_binary, rng)
    return found


def _common_donors(is_scored: BoolArray, n_arms: int, rng: np.random.Generator) -> IntArray:
    """Draw a scored example as donor of each example, shape (A, N).

    All arms have the same donors.
    """
    known, n_examples = np.flatnonzero(is_scored), len(is_scored)
    chosen = rng.choice(known, n_examples) if len(known) else np.zeros(n_examples, dtype=np.int64)
    return np.broadcast_to(chosen, (n_arms, n_examples))


def _donors(is_scored: BoolArray, ease: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw donors that are about as easy as each example, shape (A, N).

    A donor of an arm is one of its scored examples.
    """
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
    """Means and variances of A arms, shape (A,) each.

    They come from a regression of scores on the ease of examples.
    """
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
    """Draw plausible means over all examples for A arms, shape (A,).

    Args:
        estimates: Shape (A,), estimated means.
        variances: Shape (A,), variances of one score.
        counts: Shape (A,), numbers of scores.
        seen: Shape (A,), share of all examples that was observed for each arm.
        rng: Draws the noise.
    """
    noise = variances / np.maximum(counts, 1) * (1.0 - seen)
    kept = min(1.0, max(LEAST_KEPT, 1.0 - noise.mean() / max(estimates.var(), 1e-12)))
    kept = kept if len(estimates) > 1 else 1.0
    shrunk = estimates.mean() + kept * (estimates - estimates.mean())
    centre = np.where(seen < 1.0, shrunk, estimates)
    return np.asarray(centre + np.sqrt(kept * noise) * rng.standard_normal(len(estimates)))


def _shift_to_mean(
    values: FloatArray, target: float, is_binary: bool, rng: np.random.Generator
) -> FloatArray:
    """Move scores towards 0 or 1 until their expected mean is the target.

    All are in [0, 1]. If `is_binary`, a random share of the scores is set to 0 or 1; otherwise all are moved
    proportionally.
    """
    mean = float(values.mean())
    goal, distance = (1.0, 1.0 - mean) if target > mean else (0.0, mean)
    if distance == 0.0:
        return values
    share = abs(target - mean) / distance
    if is_binary:
        return np.where(rng.random(len(values)) < share, goal, values)
    return np.asarray(values + share * (goal - values))
