"""The most that a campaign takes whose stop is not foreseen: all that its budget allows, at its dearest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from winnow.algorithms.route.config import DEFAULT_DELTA
from winnow.storage.objectives import traits_of
from winnow.storage.queries.costs import ModelRate
from winnow.tasks.answer.expected_engines import expected_unsteady
from winnow.tasks.campaign.canaries.sizes import canary_words
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.objectives.best_duel.objective import BestDuel
from winnow.tasks.objectives.best_mean.objective import BestMean
from winnow.tasks.objectives.certify.objective import Certify
from winnow.tasks.objectives.route.objective import Route
from winnow.tasks.simulation.forecast.exploring import Exploring, prompts_to_show
from winnow.tasks.simulation.forecast.judging import JudgeUse, all_uses, duel_uses, judge_uses, metric_uses
from winnow.tasks.simulation.forecast.pricing import Amounts, Judged, Judgings, Pricing
from winnow.tasks.simulation.forecast.tokens import counted, drawn_examples, tokenizer_of

UNFORESEEN = {
    "autoevaluator": "how many labels it takes until candidates are certified: that hangs on their losses "
    "and on how well the autoevaluator knows them",
    "constraints": "how many comparisons it takes until the best of those that meet the constraints is "
    "known: that hangs on scores and on the values of metrics",
    "gate": "how many comparisons it takes until the candidates are told from the baseline: that hangs on "
    "how far they are from it",
}
"""Unknowns that plan cannot foresee, by what else is asked than an objective's `Traits.unforeseen`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """The most that a campaign can take."""

    name: str
    canaries: str | None
    """The canary prompts that its served models are asked, in words; None if none is served."""
    unsteady: tuple[str, ...]
    """The expected engines that may write other texts in a run that is made again."""
    size: str
    """The size of the campaign, in a few words."""
    limit: int
    """The most that the budget allows, in `unit`."""
    unit: str
    """The unit that the budget counts."""
    most: Amounts
    """The cost at most, every answer as long as it may be; without second tries of models that judge."""
    unforeseen: str
    """The unknown that cannot be foreseen, in words."""
    sampled_examples: int
    guessed_tokens: tuple[str, ...]
    """Models whose prompt tokens are characters / 4."""
    measured: Mapping[str, ModelRate]
    """Rates measured on texts in the database, by model."""
    rate: float | None
    """Requests a second, where the user says so."""
    exploring: Exploring | None = None
    """The prompts after which the explored share of a route shows something; None if none is drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Most:
    """The most that a campaign may ask for."""

    limit: int
    unit: str
    texts: int
    """Texts of all candidates together, or times that they write several."""
    of_each: int
    """The same for any one candidate."""
    judging: Sequence[JudgeUse]
    judged: int
    """Number of these texts, or of pairs of them, that are judged."""
    shown: int
    """Number of answers that are shown to a model with each."""
    beside: Sequence[Judged] = ()
    for_metrics: Sequence[JudgeUse] = ()
    """Calls for metrics about each answer, where metrics are about fewer answers than the judge is."""
    measured: int = 0
    """Number of these answers."""


def plan_ceiling(checked: ResolvedCampaign, *, rate: float | None = None) -> Ceiling:
    """Count what the whole budget takes; nothing is asked of any model.

    Args:
        checked: The campaign.
        rate: Requests a second; None for what the database says of the models.
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
    """A call for a metric about each of so many answers, which have so many tokens at most."""
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
            raise TypeError(f"nothing counts what a {type(other).__name__} takes")
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
    """Two texts a duel; where none is made afresh, at most one of each candidate for each example."""
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
    """Every candidate on each labelled example and on the unlabelled ones that belong to it."""
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
