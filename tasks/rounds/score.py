"""Scoring a benchmark round: each output against the targets of its example."""

from collections.abc import Sequence

from winnow.storage.columns import storable
from winnow.storage.records.values import NewComparison, RoundRecord, StoredText
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.engines.protocol import GenerationFailure
from winnow.tasks.judges.protocol import Judge
from winnow.tasks.rounds.generation_batch import GenerationBatch


def score_outputs(
    campaign: CampaignSession, judge: Judge, round_: RoundRecord, texts: GenerationBatch
) -> list[NewComparison]:
    """One comparison per planned pair, in planned order."""
    return [
        scored(
            campaign,
            judge,
            position,
            arm,
            example,
            texts[position],
            campaign.checked.dataset.examples[example].targets,
        )
        for position, (arm, example) in enumerate(zip(round_.arms, round_.examples, strict=True))
    ]


def scored(
    campaign: CampaignSession,
    judge: Judge,
    position: int,
    arm: int,
    example: int,
    text: StoredText | GenerationFailure,
    targets: Sequence[str],
) -> NewComparison:
    """The comparison of one output with some targets."""
    if isinstance(text, GenerationFailure):
        return NewComparison(
            position=position,
            candidate_a_id=campaign.candidate_ids[arm],
            example_id=campaign.example_ids[example],
            judge=campaign.judge_id,
            reason=text.reason,
            detail=storable(text.detail),
        )
    verdict = judge.judge(text.text, targets)
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
    )
