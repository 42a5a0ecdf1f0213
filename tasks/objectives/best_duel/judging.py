"""Judge a round of duels: a judge of pairs compares two outputs for each example."""

from winnow.storage.records.record_types import NewComparison, RoundRecord, StoredText
from winnow.storage.text import storable
from winnow.tasks.campaign.planned_outputs import GenerationBatch
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.candidates.cache_keys import request_seed
from winnow.tasks.data.datasets import Example
from winnow.tasks.engines.protocol import GenerationFailure
from winnow.tasks.judges.protocol import Duel, Judge, Verdict
from winnow.tasks.objectives.best_duel.objective import BestDuel
from winnow.tasks.objectives.protocol import RoundSteps
from winnow.tasks.rounds.judge_calls import AskedJudge, ask_models


def judge_duels(
    campaign: CampaignSession, judge: Judge[Duel], round_: RoundRecord, texts: GenerationBatch
) -> list[NewComparison]:
    """Return one comparison per planned duel, in planned order.

    Raises the errors of `judge_round`.
    """
    sides = [(texts[2 * position], texts[2 * position + 1]) for position in range(len(round_.examples))]
    duels = round_duels(campaign, round_, texts)
    [asked] = ask_models(campaign, [judge], round_, list(duels.values()))
    return [
        _comparison(campaign, asked, round_, position, sides[position], duels.get(position))
        for position in range(len(round_.examples))
    ]


def round_duels(campaign: CampaignSession, round_: RoundRecord, texts: GenerationBatch) -> dict[int, Duel]:
    """The duels of a round with both outputs, by position."""
    sides = [(texts[2 * position], texts[2 * position + 1]) for position in range(len(round_.examples))]
    return {
        position: _duel(campaign, round_, position, a.text, b.text)
        for position, (a, b) in enumerate(sides)
        if isinstance(a, StoredText) and isinstance(b, StoredText)
    }


def _duel(campaign: CampaignSession, round_: RoundRecord, position: int, a: str, b: str) -> Duel:
    example = campaign.checked.dataset.examples[round_.examples[position]]
    seed = duel_seed(campaign.record.seed, round_.number, position)
    return duel_on(example, a, b, has_forms=campaign.checked.has_target_forms, seed=seed)


def duel_on(example: Example, answer_a: str, answer_b: str, *, has_forms: bool, seed: int) -> Duel:
    """Create the duel of two outputs for an example, in the form that judges receive."""
    return Duel(
        question=example.question,
        answer_a=answer_a,
        answer_b=answer_b,
        targets=example.targets,
        has_forms=has_forms,
        fields=example.fields,
        seed=seed,
    )


def duel_seed(campaign_seed: int, round_number: int, position: int) -> int:
    """Seed of one duel, from the campaign's seed and its position; in [0, 2**31)."""
    return request_seed(campaign_seed, {"round": round_number, "position": position})


def _comparison(
    campaign: CampaignSession,
    asked: AskedJudge[Duel],
    round_: RoundRecord,
    position: int,
    sides: tuple[StoredText | GenerationFailure, StoredText | GenerationFailure],
    duel: Duel | None,
) -> NewComparison:
    arms = round_.arms[position]
    verdict = _unanswered(sides) if duel is None else asked.judge.judge(duel)
    failures = [
        f"{campaign.checked.candidates[arm].name}: {side.detail}"
        for arm, side in zip(arms, sides, strict=True)
        if isinstance(side, GenerationFailure)
    ]
    details = [verdict.detail] if verdict.detail else failures
    generations = [side.id if isinstance(side, StoredText) else None for side in sides]
    return NewComparison(
        position=position,
        candidate_a_id=campaign.candidate_ids[arms[0]],
        candidate_b_id=campaign.candidate_ids[arms[1]],
        example_id=campaign.example_ids[round_.examples[position]],
        generation_a_id=generations[0],
        generation_b_id=generations[1],
        judge=campaign.judge_id,
        answer=None if verdict.answer is None else storable(verdict.answer),
        outcome=verdict.score,
        reason=verdict.reason,
        detail=storable("; ".join(details)) if details else None,
        judgments=asked.judgments(verdict.replies),
    )


def _unanswered(sides: tuple[StoredText | GenerationFailure, ...]) -> Verdict:
    """The verdict on a duel without both outputs: unscored.

    The candidate of the missing output may not be at fault.
    """
    return Verdict(reason=next(side.reason for side in sides if isinstance(side, GenerationFailure)))


class DuelSteps(RoundSteps):
    """Steps of a round in which a judge prefers one of two outputs for each example."""

    def judge(
        self,
        campaign: CampaignSession,
        checked: ResolvedCampaign,
        round_: RoundRecord,
        texts: GenerationBatch,
    ) -> list[NewComparison]:
        """See `RoundSteps`."""
        assert isinstance(checked, BestDuel)
        return judge_duels(campaign, checked.judge, round_, texts)
