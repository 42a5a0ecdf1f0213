"""Upper bound on the cost of a campaign: its whole budget, at the highest price.

For campaigns whose end cannot be predicted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from winnow.algorithms.route.advantage import AdvantageRecord
from winnow.algorithms.route.config import DEFAULT_DELTA
from winnow.storage.objectives import traits_of
from winnow.storage.queries.costs import ModelRate
from winnow.tasks.answer.expected_engines import expected_unsteady
from winnow.tasks.campaign.contacts import canary_words
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.objectives.best_duel.objective import BestDuel
from winnow.tasks.objectives.best_mean.objective import BestMean
from winnow.tasks.objectives.certify.objective import Certify
from winnow.tasks.objectives.route.objective import Route
from winnow.tasks.simulation.forecast.pricing import Amounts, Judged, Judgings, Pricing
from winnow.tasks.simulation.forecast.tokens import (
    JudgeUse,
    all_uses,
    counted,
    drawn_examples,
    duel_uses,
    judge_uses,
    metric_uses,
    tokenizer_of,
)

GAIN = 0.1
"""Assumed gain in mean score of routing over the best single candidate."""
BEST = 0.8
"""Assumed mean score of the right candidate for a prompt."""
MOST_PROMPTS = 100_000
AT_ONCE = 1_000
BETWEEN_LOOKS = 1.1
"""Factor by which the number of prompts grows between two looks at the interval."""
SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploring:
    """The assumed result of exploring a share of the prompts."""

    explore: float
    gain: float
    prompts: int | None
    """Number of prompts needed in one simulated stream; None if more than `MOST_PROMPTS`."""


def prompts_to_show(n_arms: int, *, explore: float, delta: float) -> Exploring:
    """Number of prompts until routing's advantage is proven to be above 0.

    This is the interval in the answer's line *pays*. Assumptions: each candidate is the right one for equally
    many prompts, routing finds it for all prompts that are not explored, and scores are 0 or 1. The interval
    is that of `AdvantageRecord`. It narrows with the number of explored prompts of each candidate, so fewer
    explored prompts or more candidates need more prompts.

    Args:
        n_arms: Number K of candidates, at least two.
        explore: Share of prompts whose candidate is drawn at random, in (0, 1].
        delta: Error probability of the interval.
    """
    prompts = _until_shown(n_arms, explore, delta, np.random.default_rng(SEED))
    return Exploring(explore=explore, gain=GAIN, prompts=prompts)


def _until_shown(n_arms: int, explore: float, delta: float, rng: np.random.Generator) -> int | None:
    record = AdvantageRecord(n_arms, explore=explore, delta=delta, max_unscored=1.0)
    worse = BEST - GAIN * n_arms / (n_arms - 1)
    prompts = looked = 0
    while prompts < MOST_PROMPTS:
        right = rng.integers(n_arms, size=AT_ONCE)
        arms = np.where(rng.random(AT_ONCE) < explore, rng.integers(n_arms, size=AT_ONCE), right)
        propensities = np.where(arms == right, 1.0 - explore, 0.0) + explore / n_arms
        scores = (rng.random(AT_ONCE) < np.where(arms == right, BEST, worse)).astype(np.float64)
        record.tell(arms, 2.0 * scores - 1.0, propensities)
        prompts += AT_ONCE
        if prompts < BETWEEN_LOOKS * looked:
            continue
        looked = prompts
        advantage = record.advantage()
        if advantage is not None and advantage.lower > 0.0:
            return prompts
    return None


UNFORESEEN = {
    "autoevaluator": "the number of labels until candidates are certified, which depends on their losses "
    "and on how well the autoevaluator predicts them",
    "constraints": "the number of comparisons until the best candidate under the constraints is known, "
    "which depends on scores and on the values of metrics",
    "gate": "the number of comparisons until the candidates are separated from the baseline, which depends "
    "on their distance from it",
}
"""What plan cannot predict, in words, for settings that an objective's `Traits.unforeseen` does not cover."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """Upper bound on what a campaign can use."""

    name: str
    canaries: str | None
    """Clause on the canary prompts for served models; None if no model is served."""
    unsteady: tuple[str, ...]
    """Expected engines that may not reproduce their outputs."""
    size: str
    """The size of the campaign, in a few words."""
    limit: int
    """The limit of the budget, in `unit`."""
    unit: str
    """The unit of the budget."""
    most: Amounts
    """Maximum cost, with every output of maximum length, and without repeated calls of judge models."""
    unforeseen: str
    """What cannot be predicted, in words."""
    sampled_examples: int
    guessed_tokens: tuple[str, ...]
    """Models whose prompt tokens are estimated as characters / 4."""
    measured: Mapping[str, ModelRate]
    """Rates measured on outputs in the database, by model."""
    rate: float | None
    """Requests per second that the user gave; None if not given."""
    exploring: Exploring | None = None
    """Number of prompts after which a route's explored share is informative; None without an explored
    share.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class _Most:
    """Upper bounds on a campaign's requests."""

    limit: int
    unit: str
    texts: int
    """Maximum number of outputs of all candidates together, or of sets of several outputs."""
    of_each: int
    """Maximum number of outputs of any single candidate."""
    judging: Sequence[JudgeUse]
    judged: int
    """Number of these outputs, or of pairs of them, that are judged."""
    shown: int
    """Number of outputs that a judge model receives in each call."""
    beside: Sequence[Judged] = ()
    for_metrics: Sequence[JudgeUse] = ()
    """Calls of metrics for each output, if metrics cover fewer outputs than the judge."""
    measured: int = 0
    """Number of outputs that the metrics judge."""


def plan_ceiling(checked: ResolvedCampaign, *, rate: float | None = None) -> Ceiling:
    """Compute the cost of the whole budget, without sending any request.

    Args:
        checked: The campaign.
        rate: Requests per second; None for the models' measured rates in the database.
    """
    most = _most(checked)
    pricing = Pricing(checked, most.judging, rate)
    judged, measured = (count * checked.spec.texts_each for count in (most.judged, most.measured))
    by_arm = pricing.dearest(most.texts, most.of_each)
    longest = float(pricing.longest.max())
    return Ceiling(
        name=checked.spec.name,
        canaries=canary_words(checked),
        unsteady=expected_unsteady(checked),
        size=checked.size,
        limit=most.limit,
        unit=most.unit,
        most=pricing.amounts(
            by_arm,
            at_length=True,
            judged=Judgings(judged, judged * most.shown * longest),
            beside=[*most.beside, *(_of_metric(use, measured, longest) for use in most.for_metrics)],
        ),
        unforeseen=_unforeseen(checked),
        sampled_examples=pricing.tokens.examples,
        guessed_tokens=pricing.tokens.guessed,
        measured=pricing.measured,
        rate=rate,
        exploring=_exploring(checked),
    )


def _exploring(checked: ResolvedCampaign) -> Exploring | None:
    explore = checked.spec.selector.params.get("explore", 0.0)
    if not isinstance(checked, Route) or not explore or len(checked.candidates) < 2:
        return None
    delta = checked.spec.stopping.delta
    return prompts_to_show(
        len(checked.candidates), explore=explore, delta=DEFAULT_DELTA if delta is None else delta
    )


def _of_metric(use: JudgeUse, answers: int, longest: float) -> Judged:
    """The cost of a metric's calls.

    Args:
        use: A call of the metric.
        answers: Number of outputs, each of which needs one call.
        longest: Maximum length of an output, in tokens.
    """
    return Judged(
        model=use.model,
        calls=answers,
        shown=answers * (use.prompt_tokens + longest),
        made=answers * use.reply_tokens,
    )


def _unforeseen(checked: ResolvedCampaign) -> str:
    if isinstance(checked, BestMean):
        return UNFORESEEN["constraints" if checked.constraints else "gate"]
    if isinstance(checked, Certify) and checked.certification.autoevaluator is not None:
        return UNFORESEEN["autoevaluator"]
    return traits_of(checked.spec.objective).unforeseen


def _most(checked: ResolvedCampaign) -> _Most:
    match checked:
        case BestDuel():
            return _of_duels(checked)
        case Certify():
            return _of_labels(checked)
        case Route():
            limit, unit = checked.most, "prompts"
        case BestMean():
            limit, unit = checked.most, "comparisons"
        case other:
            raise TypeError(f"no upper bound is defined for {type(other).__name__}")
    return _Most(
        limit=limit,
        unit=unit,
        texts=limit,
        of_each=min(limit, len(checked.dataset.examples)),
        judging=all_uses(checked),
        judged=limit,
        shown=1,
    )


def _of_duels(checked: BestDuel) -> _Most:
    """Upper bounds for duels: two outputs per duel.

    Without fresh generations, at most one output per candidate and example.
    """
    limit, examples = checked.most, checked.dataset.examples
    of_each = limit if checked.repeats_examples else min(limit, len(examples))
    return _Most(
        limit=limit,
        unit="duels",
        texts=min(2 * limit, len(checked.candidates) * of_each),
        of_each=of_each,
        judging=duel_uses(checked.judge, examples, checked.spec.seed),
        judged=limit,
        shown=2,
    )


def _of_labels(checked: Certify) -> _Most:
    """Upper bounds for certify.

    Every candidate answers each labelled example and the unlabelled ones that belong to it.
    """
    certification, examples = checked.certification, checked.dataset.examples
    limit, per_label = checked.most, certification.parts.blocks.shape[1]
    answered, beside = limit * (1 + per_label), []
    autoevaluator = certification.autoevaluator
    if autoevaluator is not None:
        counter = tokenizer_of(autoevaluator.model.model)
        prompts = [autoevaluator.prompt(each) for each in drawn_examples(examples, checked.spec.seed)]
        beside.append(
            Judged(
                model=autoevaluator.model.name,
                calls=answered,
                shown=answered * float(np.mean([counted(prompt, counter) for prompt in prompts])),
                made=answered * float(autoevaluator.sampling.max_tokens),
            )
        )
    return _Most(
        limit=limit,
        unit="labels",
        texts=len(checked.candidates) * answered,
        of_each=answered,
        judging=judge_uses(checked.judge, examples, checked.spec.seed),
        # An answer to a labelled example is scored against the label and against the autoevaluator's answer.
        judged=len(checked.candidates) * (answered + (limit if autoevaluator is not None else 0)),
        shown=1,
        beside=beside,
        for_metrics=metric_uses(checked),
        measured=len(checked.candidates) * limit,
    )
