"""Score a benchmark round: each output, with everything that its judge sees."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from winnow.storage.records.record_types import NewComparison, NewMetric, RoundRecord, StoredText
from winnow.storage.text import storable
from winnow.tasks.campaign.missing_texts import GenerationBatch
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.candidates.likelihood_scoring import asked_of
from winnow.tasks.engines.protocol import GenerationFailure
from winnow.tasks.judges.protocol import Judge, Sample, Verdict
from winnow.tasks.rounds.judge_calls import AskedJudge, ask_models


def score_outputs(
    campaign: CampaignSession, judge: Judge[Sample], round_: RoundRecord, texts: GenerationBatch
) -> list[NewComparison]:
    """One comparison per planned pair, in planned order."""
    pairs = list(zip(round_.arms, round_.examples, strict=True))
    samples = [
        sample_of(campaign, arm, example, texts, position) for position, (arm, example) in enumerate(pairs)
    ]
    shown = [sample for sample in samples if sample is not None]
    asked, metrics = asked_judges(campaign, judge, round_, shown, texts)
    comparisons = [
        scored(campaign, asked, position, arm, example, texts[position], samples[position])
        for position, (arm, example) in enumerate(pairs)
    ]
    return [
        with_metrics(each, metrics, [] if sample is None else [sample])
        for each, sample in zip(comparisons, samples, strict=True)
    ]


def asked_judges(
    campaign: CampaignSession,
    judge: Judge[Sample],
    round_: RoundRecord,
    samples: Sequence[Sample],
    texts: GenerationBatch,
) -> tuple[AskedJudge[Sample], dict[str, AskedJudge[Sample]]]:
    """The judges of the outcome and of the metrics, with all their calls made together.

    See `ask_models`.
    """
    metrics = campaign.checked.metrics
    asked, *others = ask_models(campaign, [judge, *metrics.values()], round_, samples, texts)
    return asked, dict(zip(metrics, others, strict=True))


def places_of(campaign: CampaignSession, pair: int) -> range:
    """Positions of a pair's outputs among those of its round."""
    n = campaign.checked.spec.texts_each
    return range(pair * n, (pair + 1) * n)


def shown_of(
    campaign: CampaignSession, arm: int, example: int, texts: GenerationBatch, places: range
) -> list[Sample]:
    """The judge's samples of a pair; empty if one of its outputs is missing."""
    samples = [sample_of(campaign, arm, example, texts, place) for place in places]
    known = [each for each in samples if each is not None]
    return known if len(known) == len(samples) else []


def sample_of(
    campaign: CampaignSession, arm: int, example: int, texts: GenerationBatch, position: int
) -> Sample | None:
    """The judge's sample of an output; None if the output is missing.

    Args:
        campaign: The judge's campaign.
        arm: Position of its candidate.
        example: Position of its example.
        texts: The outputs of its round.
        position: Its position among them.
    """
    text = texts[position]
    if isinstance(text, GenerationFailure):
        return None
    row = campaign.checked.dataset.examples[example]
    candidate = campaign.checked.candidates[arm]
    told = text.choice_logprobs or {}
    asked = None
    if campaign.checked.weighing is not None:
        asked = asked_of(candidate, campaign.checked.weighing, row.fields, row.key)
    return Sample(
        output=text.text,
        reasoning=text.reasoning,
        targets=row.targets,
        has_forms=campaign.checked.has_target_forms,
        fields=row.fields,
        example=row.key,
        prompt=texts.planned[position].request.prompt,
        finish_reason=text.finish_reason,
        input_tokens=text.input_tokens,
        output_tokens=text.output_tokens,
        logprobs=text.token_logprobs,
        choices=() if asked is None else asked.texts,
        loglikelihoods=() if asked is None else [told[each] for each in asked.continuations],
        reported=told if asked is None else {},
        candidate=candidate.choices,
    )


def scored(
    campaign: CampaignSession,
    asked: AskedJudge[Sample],
    position: int,
    arm: int,
    example: int,
    text: StoredText | GenerationFailure,
    sample: Sample | None,
) -> NewComparison:
    """The comparison of one output, whose sample for the judge is `sample`; None if it is missing."""
    if isinstance(text, GenerationFailure):
        return NewComparison(
            position=position,
            candidate_a_id=campaign.candidate_ids[arm],
            example_id=campaign.example_ids[example],
            judge=campaign.judge_id,
            reason=text.reason,
            detail=storable(text.detail),
        )
    assert sample is not None
    verdict = asked.judge.judge(sample)
    return NewComparison(
        position=position,
        candidate_a_id=campaign.candidate_ids[arm],
        example_id=campaign.example_ids[example],
        generation_a_id=text.id,
        judge=campaign.judge_id,
        answer=None if verdict.answer is None else storable(verdict.answer),
        outcome=verdict.score,
        reason=verdict.reason,
        detail=None if verdict.detail is None else storable(verdict.detail),
        no_answer=verdict.no_answer,
        judgments=asked.judgments(verdict.replies),
    )


def with_metrics(
    comparison: NewComparison, metrics: Mapping[str, AskedJudge[Sample]], samples: Sequence[Sample]
) -> NewComparison:
    """A comparison with one value per metric: the mean over several outputs, none if one has none.

    Args:
        comparison: The comparison with its outcome's judgments; those of metrics are appended.
        metrics: The judges by name, with everything needed for these outputs.
        samples: Samples for the judge, one per output of the pair; empty if there is none.
    """
    if not (metrics and samples):
        return comparison
    found = {name: [asked.judge.judge(sample) for sample in samples] for name, asked in metrics.items()}
    judgments = [
        judgment
        for name, verdicts in found.items()
        for verdict in verdicts
        for judgment in metrics[name].judgments(verdict.replies, name)
    ]
    values = [_metric(name, verdicts) for name, verdicts in found.items()]
    return replace(comparison, metrics=values, judgments=[*comparison.judgments, *judgments])


def _metric(name: str, verdicts: Sequence[Verdict]) -> NewMetric:
    scores = [verdict.score for verdict in verdicts if verdict.score is not None]
    if len(scores) < len(verdicts):
        reason = next(verdict.reason for verdict in verdicts if verdict.reason is not None)
        return NewMetric(name=name, reason=reason)
    return NewMetric(name=name, score=min(1.0, sum(scores) / len(scores)))
