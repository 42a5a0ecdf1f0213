"""Score a round: each output, with everything that its judge receives.

If a pair has several outputs, each is judged, and the pair gets one score in [0, 1].
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from math import comb, fsum

from winnow.algorithms.protocols import Sparing
from winnow.storage.json_types import JsonObject
from winnow.storage.records.record_types import (
    EQUAL_OUTPUTS,
    NewComparison,
    NewMetric,
    NewOutput,
    RoundRecord,
    StoredText,
)
from winnow.storage.text import storable
from winnow.tasks.campaign.planned_outputs import GenerationBatch
from winnow.tasks.campaign.replay import batch_of
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.candidates.likelihood_scoring import asked_of
from winnow.tasks.engines.protocol import GenerationFailure
from winnow.tasks.judges.protocol import Judge, Sample, Verdict
from winnow.tasks.rounds.judge_calls import AskedJudge, ask_models
from winnow.tasks.spec.sections.generate_config import SamplesSpec

NOT_JUDGED = Verdict.unscored("output_missing")
"""Verdict on an output whose pair lacks another output."""

Answers = Sequence[StoredText | GenerationFailure]


def score_samples(
    campaign: CampaignSession,
    samples: SamplesSpec,
    judge: Judge[Sample],
    round_: RoundRecord,
    texts: GenerationBatch,
) -> list[NewComparison]:
    """Score a round with several outputs per pair: one comparison per planned pair.

    The outputs of a pair are consecutive in the batch. A pair that lacks one of its outputs has no outcome,
    and neither has a pair with an unscored output: the remaining outputs would not be a fair sample.
    """
    pairs = list(zip(round_.arms, round_.examples, strict=True))
    places = [places_of(campaign, at) for at in range(len(pairs))]
    shown = [shown_of(campaign, *pair, texts, at) for pair, at in zip(pairs, places, strict=True)]
    every = [sample for of_pair in shown for sample in of_pair]
    asked, metrics = asked_judges(campaign, judge, round_, every, texts)
    comparisons = [
        NewComparison(
            position=position,
            candidate_a_id=campaign.candidate_ids[arm],
            example_id=campaign.example_ids[example],
            judge=campaign.judge_id,
            **found_in(samples, asked, [texts[place] for place in places[position]], shown[position]),
        )
        for position, (arm, example) in enumerate(pairs)
    ]
    return [with_metrics(each, metrics, of) for each, of in zip(comparisons, shown, strict=True)]


def found_in(
    samples: SamplesSpec, asked: AskedJudge[Sample], answers: Answers, shown: Sequence[Sample]
) -> JsonObject:
    """Fields of a pair's comparison that depend on its outputs.

    Args:
        samples: How scores are reduced to one.
        asked: The judge, with all replies for these outputs.
        answers: The outputs of the pair.
        shown: The judge's samples, one per output; empty if an output is missing.
    """
    verdicts = [asked.judge.judge(each) for each in shown] or [NOT_JUDGED] * len(answers)
    found: JsonObject = {
        "outputs": _outputs(answers, verdicts),
        "judgments": [each for verdict in verdicts for each in asked.judgments(verdict.replies)],
    }
    if failure := next((each for each in answers if isinstance(each, GenerationFailure)), None):
        return found | {"reason": failure.reason, "detail": storable(failure.detail)}
    texts = [each for each in answers if isinstance(each, StoredText)]
    open_ = [at for at, verdict in enumerate(verdicts) if verdict.score is None]
    if open_:
        verdict = verdicts[open_[0]]
        detail = None if verdict.detail is None else storable(verdict.detail)
        return found | _standing(texts, verdicts, open_[0]) | {"reason": verdict.reason, "detail": detail}
    known = [
        ScoredText(
            text=text.text,
            score=score,
            answer=verdict.answer,
            no_answer=verdict.no_answer,
            preference=verdict.preference,
        )
        for text, verdict in zip(texts, verdicts, strict=True)
        if (score := verdict.score) is not None
    ]
    one = reduced(samples, known)
    standing = _standing(texts, verdicts, one.shown)
    return found | standing | {"outcome": one.score, "answer": storable(one.answer)}


def _standing(texts: Sequence[StoredText], verdicts: Sequence[Verdict], shown: int) -> JsonObject:
    """Fields of the output that represents its pair."""
    return {"generation_a_id": texts[shown].id, "no_answer": verdicts[shown].no_answer}


def _outputs(answers: Answers, verdicts: Sequence[Verdict]) -> list[NewOutput]:
    return [
        NewOutput(
            number=number,
            generation_id=text.id,
            answer=None if verdict.answer is None else storable(verdict.answer),
            score=verdict.score,
            reason=verdict.reason,
            no_answer=verdict.no_answer,
            preference=verdict.preference,
        )
        for number, (text, verdict) in enumerate(zip(answers, verdicts, strict=True))
        if isinstance(text, StoredText)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredText:
    """An output with its judgment."""

    text: str
    score: float
    """Score of the output, in [0, 1]."""
    answer: str | None = None
    """The answer that the judge read; None if it read the whole output."""
    no_answer: bool = False
    preference: float | None = None
    """How much a choosing judge prefers this output; only for `best-of`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """The single score of several outputs."""

    score: float
    """The single score, in [0, 1]."""
    shown: int
    """Position of the output that represents its pair."""
    answer: str
    """Text on how the score was derived."""


def reduced(samples: SamplesSpec, texts: Sequence[ScoredText]) -> Reduced:
    """Reduce the scores of several outputs to one, as the spec defines.

    The order of the outputs only affects which one is shown.
    """
    if samples.reduce == "majority":
        return _majority(texts)
    if samples.reduce == "best-of":
        return _best_of(texts)
    scores = [each.score for each in texts]
    told = f"{samples.reduce} of {', '.join(f'{score:g}' for score in scores)}"
    if samples.k is None:
        return Reduced(score=min(1.0, fsum(scores) / len(scores)), shown=0, answer=told)
    if samples.reduce.startswith("pass^"):
        score = 1.0 - pass_at(samples.k, [1.0 - each for each in scores])
        return Reduced(score=score, shown=scores.index(min(scores)), answer=told)
    return Reduced(score=pass_at(samples.k, scores), shown=scores.index(max(scores)), answer=told)


def pass_at(k: int, scores: Sequence[float]) -> float:
    """The mean, over all choices of k of the n scores, of the highest of the k.

    For scores 0 and 1, of which c are 1, this is 1 - C(n - c, k) / C(n, k), the unbiased estimator of pass@k
    of Chen et al., "Evaluating large language models trained on code" (2021). For any scores it is unbiased
    for the expected highest score of k outputs. Applied to 1 - score, one minus the result is the mean of the
    lowest of the k scores: pass^k of Yao et al., "tau-bench: a benchmark for tool-agent-user interaction in
    real-world domains" (2024).

    Args:
        k: From 1 to n.
        scores: The n scores, in [0, 1].
    """
    n = len(scores)
    # The i-th lowest is the highest of the k in C(i - 1, k - 1) of the ways.
    weighted = (score * comb(i, k - 1) for i, score in enumerate(sorted(scores)))
    return min(1.0, fsum(weighted) / comb(n, k))


def _best_of(texts: Sequence[ScoredText]) -> Reduced:
    """Score of the preferred output; the mean score if several are equally preferred."""
    preferences = [-1.0 if each.preference is None else each.preference for each in texts]
    most = max(preferences)
    liked = [position for position, preference in enumerate(preferences) if preference == most]
    score = min(1.0, fsum(texts[position].score for position in liked) / len(liked))
    told = f"best of {', '.join(f'{preference:g}' for preference in preferences)}"
    return Reduced(score=score, shown=liked[0], answer=told)


def _majority(texts: Sequence[ScoredText]) -> Reduced:
    """Score of the most frequent answer; the mean if several are equally frequent.

    Outputs without an answer do not vote. If no output has an answer, the result is the mean of all scores.
    """
    votes: dict[str, list[int]] = {}
    for position, each in enumerate(texts):
        if not each.no_answer:
            votes.setdefault(each.text.strip() if each.answer is None else each.answer, []).append(position)
    if not votes:
        score = min(1.0, fsum(each.score for each in texts) / len(texts))
        return Reduced(score=score, shown=0, answer=f"none of {len(texts)} holds an answer")
    most = max(map(len, votes.values()))
    won = {answer: positions for answer, positions in votes.items() if len(positions) == most}
    voters = [position for positions in won.values() for position in positions]
    score = min(1.0, fsum(texts[position].score for position in voters) / len(voters))
    first, *others = won
    tie = f", as many as {len(others)} other" if others else ""
    return Reduced(score=score, shown=won[first][0], answer=f"{first} ({most} of {len(texts)}{tie})")


def spared_places(campaign: CampaignSession, round_: RoundRecord, texts: GenerationBatch) -> Set[int]:
    """Positions of outputs that need no verdict, because all candidates agree.

    They agree if all candidates in question wrote the same output. Empty unless the campaign spares such
    verdicts. The result depends only on the round and on earlier observations.
    """
    selector = campaign.selector
    if not campaign.checked.spares or not isinstance(selector, Sparing):
        return frozenset()
    if not selector.compares_all(batch_of(round_)):
        return frozenset()
    outputs: dict[int, set[str | None]] = defaultdict(set)
    for example, text in zip(round_.examples, texts, strict=True):
        outputs[example].add(text.text if isinstance(text, StoredText) else None)
    return {
        place
        for place, example in enumerate(round_.examples)
        if len(outputs[example]) == 1 and None not in outputs[example]
    }


def score_outputs(
    campaign: CampaignSession, judge: Judge[Sample], round_: RoundRecord, texts: GenerationBatch
) -> list[NewComparison]:
    """Score a round: one comparison per planned pair, in planned order."""
    spared = spared_places(campaign, round_, texts)
    pairs = list(zip(round_.arms, round_.examples, strict=True))
    samples = [
        sample_of(campaign, arm, example, texts, position) for position, (arm, example) in enumerate(pairs)
    ]
    shown = [None if each is None else _shown(campaign, each) for each in samples]
    judged = [sample for place, sample in enumerate(shown) if sample is not None and place not in spared]
    asked, metrics = asked_judges(campaign, judge, round_, judged, texts)
    comparisons = [
        scored(campaign, asked, position, arm, example, texts[position], shown[position], spared)
        for position, (arm, example) in enumerate(pairs)
    ]
    return [
        with_metrics(each, metrics, [] if sample is None else [sample])
        for each, sample in zip(comparisons, samples, strict=True)
    ]


def _shown(campaign: CampaignSession, sample: Sample) -> Sample:
    """The sample that the judge receives.

    If verdicts are spared, it has no parts in which equal outputs differ.
    """
    if not campaign.checked.spares:
        return sample
    return Sample(
        output=sample.output,
        targets=sample.targets,
        has_forms=sample.has_forms,
        fields=sample.fields,
        example=sample.example,
    )


def asked_judges(
    campaign: CampaignSession,
    judge: Judge[Sample],
    round_: RoundRecord,
    samples: Sequence[Sample],
    texts: GenerationBatch,
) -> tuple[AskedJudge[Sample], dict[str, AskedJudge[Sample]]]:
    """Create the judges of the outcome and of the metrics, with all their calls made.

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
    """The judge's samples of a pair; empty if an output is missing."""
    samples = [sample_of(campaign, arm, example, texts, place) for place in places]
    known = [each for each in samples if each is not None]
    return known if len(known) == len(samples) else []


def sample_of(
    campaign: CampaignSession, arm: int, example: int, texts: GenerationBatch, position: int
) -> Sample | None:
    """The judge's sample of an output; None if the output is missing.

    Args:
        campaign: The campaign.
        arm: The candidate of the output.
        example: Position of its example.
        texts: The outputs of its round.
        position: Position of the output among them.
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
    spared: Set[int] = frozenset(),
) -> NewComparison:
    """Create the comparison of one output.

    Args:
        campaign: The campaign.
        asked: The judge, with all replies for this output.
        position: Position of the pair in its round.
        arm: The candidate.
        example: Position of the example.
        text: The output, or the failure to generate it.
        sample: The judge's sample of the output; None if the output is missing.
        spared: Positions that need no verdict.
    """
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
    verdict = Verdict.unscored(EQUAL_OUTPUTS) if position in spared else asked.judge.judge(sample)
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
    """Add one value per metric to a comparison: the mean over its outputs.

    A metric has no value if one of the outputs has none.

    Args:
        comparison: The comparison with its outcome's judgments; those of metrics are appended.
        metrics: The judges by name, with all replies for these outputs.
        samples: The judge's samples, one per output of the pair; empty if an output is missing.
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
