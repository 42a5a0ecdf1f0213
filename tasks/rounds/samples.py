"""Score pairs with several outputs of a candidate: each is judged, and the pair gets one score in [0, 1]."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, fsum

from winnow.storage.json_types import JsonObject
from winnow.storage.records.record_types import NewComparison, NewOutput, RoundRecord, StoredText
from winnow.storage.text import storable
from winnow.tasks.campaign.missing_texts import GenerationBatch
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.engines.protocol import GenerationFailure
from winnow.tasks.judges.protocol import Judge, Sample, Verdict
from winnow.tasks.rounds.judge_calls import AskedJudge
from winnow.tasks.rounds.score import asked_judges, places_of, shown_of, with_metrics
from winnow.tasks.spec.sections.generate_config import SamplesSpec

NOT_JUDGED = Verdict.unscored("output_missing")
"""The verdict on an output of a pair that lacks another one."""

Answers = Sequence[StoredText | GenerationFailure]


def score_samples(
    campaign: CampaignSession,
    samples: SamplesSpec,
    judge: Judge[Sample],
    round_: RoundRecord,
    texts: GenerationBatch,
) -> list[NewComparison]:
    """One comparison per planned pair, in planned order; the outputs of a pair are consecutive in the batch.

    A pair that lacks one of its outputs has no outcome, and neither has one with an unscored output: the
    remaining outputs would not be a fair draw.
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
        asked: The judge, with everything needed for these outputs.
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
    """One output with its judgment."""

    text: str
    score: float
    """The score, in [0, 1]."""
    answer: str | None = None
    """The answer read by the judge; None if it is the whole output."""
    no_answer: bool = False
    preference: float | None = None
    """The preference for it by a choosing judge; only for `best-of`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """The single score of several outputs."""

    score: float
    """The score, in [0, 1]."""
    shown: int
    """Position of the output that represents them."""
    answer: str
    """A note on how the score was derived."""


def reduced(samples: SamplesSpec, texts: Sequence[ScoredText]) -> Reduced:
    """Reduce several outputs to one score as specified; their order only decides which one is shown."""
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
    """The mean, over all ways to take k of the n scores, of the highest of the k.

    Of scores 0 and 1 of which c are 1 it is 1 - C(n - c, k) / C(n, k): the unbiased estimator of pass@k of
    Chen et al., "Evaluating large language models trained on code" (2021). Of any scores it is unbiased for
    the expected highest score of k texts. Of 1 - score it is one minus the same mean of the lowest: pass^k of
    Yao et al., "tau-bench: a benchmark for tool-agent-user interaction in real-world domains" (2024).

    Args:
        k: From 1 to n.
        scores: In [0, 1], n of them.
    """
    n = len(scores)
    # The i-th lowest is the highest of the k in C(i - 1, k - 1) of the ways.
    weighted = (score * comb(i, k - 1) for i, score in enumerate(sorted(scores)))
    return min(1.0, fsum(weighted) / comb(n, k))


def _best_of(texts: Sequence[ScoredText]) -> Reduced:
    """The score of the preferred output; if several are equally preferred, their mean."""
    preferences = [-1.0 if each.preference is None else each.preference for each in texts]
    most = max(preferences)
    liked = [position for position, preference in enumerate(preferences) if preference == most]
    score = min(1.0, fsum(texts[position].score for position in liked) / len(liked))
    told = f"best of {', '.join(f'{preference:g}' for preference in preferences)}"
    return Reduced(score=score, shown=liked[0], answer=told)


def _majority(texts: Sequence[ScoredText]) -> Reduced:
    """The score of the most frequent answer; of several such answers, the mean of their scores.

    Outputs without an answer do not vote; if none has one, it is the mean of all.
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
