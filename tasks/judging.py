"""From texts to outcomes: a verdict for each, or the reason there is none."""

from storage.records import NewComparison, RoundRecord, StoredText
from tasks.engines.protocol import GenerationFailure
from tasks.generating import RoundTexts, pairs, storable
from tasks.running import RunningCampaign


def judge_round(campaign: RunningCampaign, round_: RoundRecord, texts: RoundTexts) -> list[NewComparison]:
    """One comparison per planned pair, in planned order; an unscored one says why."""
    comparisons = []
    for position, (arm, example) in enumerate(pairs(round_)):
        generation = texts.planned[position]
        text = texts.texts.get(generation.key)
        if text is None:
            comparison = _failed(campaign, position, arm, example, texts.failures[generation.key])
        else:
            comparison = _judged(campaign, position, arm, example, text)
        comparisons.append(comparison)
    return comparisons


def _judged(
    campaign: RunningCampaign, position: int, arm: int, example: int, text: StoredText
) -> NewComparison:
    verdict = campaign.checked.judge.judge(text.text, campaign.checked.dataset.examples[example].targets)
    return NewComparison(
        position=position,
        candidate_a_id=campaign.candidate_ids[arm],
        example_id=campaign.example_ids[example],
        generation_a_id=text.id,
        judge=campaign.judge_id,
        answer=None if verdict.answer is None else storable(verdict.answer),
        outcome=verdict.score,
        reason=verdict.reason,
    )


def _failed(
    campaign: RunningCampaign, position: int, arm: int, example: int, failure: GenerationFailure
) -> NewComparison:
    return NewComparison(
        position=position,
        candidate_a_id=campaign.candidate_ids[arm],
        example_id=campaign.example_ids[example],
        judge=campaign.judge_id,
        reason=failure.reason,
        detail=storable(failure.detail),
    )
