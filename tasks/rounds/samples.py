"""Scoring pairs of which a candidate wrote several texts: each is judged, and the pair gets one score."""

from collections.abc import Sequence

from winnow.storage.json_types import JsonObject
from winnow.storage.records.values import NewComparison, NewOutput, RoundRecord, StoredText
from winnow.storage.text import storable
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.engines.protocol import GenerationFailure
from winnow.tasks.judges.protocol import Judge, Sample, Verdict
from winnow.tasks.rounds.ask import AskedJudge, ask_models
from winnow.tasks.rounds.generation_batch import GenerationBatch
from winnow.tasks.rounds.reducers import ScoredText, reduced
from winnow.tasks.rounds.score import metrics_of, places_of, shown_of
from winnow.tasks.spec.sections.generate_config import SamplesSpec

NOT_JUDGED = Verdict.unscored("output_missing")
"""Of a text of a pair that lacks another one."""

Answers = Sequence[StoredText | GenerationFailure]


def score_samples(
    campaign: CampaignSession, samples: SamplesSpec, judge: Judge, round_: RoundRecord, texts: GenerationBatch
) -> list[NewComparison]:
    """One comparison per planned pair, in planned order; the texts of a pair stand together in the batch.

    A pair that lacks one of its texts has no outcome, and neither has one of which the judge leaves a text
    open: the texts that are left would be no fair draw.
    """
    pairs = list(zip(round_.arms, round_.examples, strict=True))
    places = [places_of(campaign, at) for at in range(len(pairs))]
    shown = [shown_of(campaign, *pair, texts, at) for pair, at in zip(pairs, places, strict=True)]
    asked = ask_models(campaign, judge, round_, [sample for of_pair in shown for sample in of_pair], texts)
    return [
        NewComparison(
            position=position,
            candidate_a_id=campaign.candidate_ids[arm],
            example_id=campaign.example_ids[example],
            judge=campaign.judge_id,
            metrics=metrics_of(campaign.checked.metrics, shown[position]),
            **_found(samples, asked, [texts[place] for place in places[position]], shown[position]),
        )
        for position, (arm, example) in enumerate(pairs)
    ]


def _found(samples: SamplesSpec, asked: AskedJudge, answers: Answers, shown: Sequence[Sample]) -> JsonObject:
    """What becomes of a pair: the fields of its comparison that follow from its texts."""
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
    """Of the text that stands for its pair."""
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
