"""Run the calls of judge models; their replies are stored as generations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from winnow.storage.records.record_types import NewJudgment, RoundRecord, StoredText
from winnow.tasks.campaign.planned_outputs import GenerationBatch, PlannedGeneration, TextOrFailure
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.candidates.likelihood_scoring import Asked
from winnow.tasks.judges.asking.calls import JudgeCall, JudgeReply, ReadReply, Reply
from winnow.tasks.judges.asking.exchange import Exchange, Subject
from winnow.tasks.judges.protocol import Judge, SubjectT
from winnow.tasks.rounds.generate import have_texts, plan_text


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedJudge(Generic[SubjectT]):
    """A judge with all replies that it needs to judge some subjects."""

    judge: Judge[SubjectT]
    stored: Mapping[JudgeCall, int]
    """Ids of the generations from which replies were read, by call."""

    def judgments(self, replies: Sequence[ReadReply], metric: str | None = None) -> list[NewJudgment]:
        """Rows of the calls behind a verdict on a metric, or on the outcome if None."""
        return [
            NewJudgment(
                judge=each.call.judge,
                presentation_order=each.call.presentation_order,
                repeat=each.call.repeat,
                attempt=each.call.attempt,
                generation_id=self.stored.get(each.call),
                verdict=each.score,
                reason=each.reason,
                metric=metric,
            )
            for each in replies
        ]


def ask_models(
    campaign: CampaignSession,
    judges: Sequence[Judge[Subject]],
    round_: RoundRecord,
    subjects: Sequence[Subject],
    texts: GenerationBatch | None = None,
) -> list[AskedJudge[Subject]]:
    """Make the calls that judges need for some outputs or duels, all judges together.

    Every reply is stored before the next calls are planned, so a resumed round repeats no call. Equal calls
    of several judges have one reply. All judges receive their subjects in advance. Raises the errors of
    `have_texts`.

    Args:
        campaign: The campaign of the judges.
        judges: The judges, some of which use models.
        round_: The round of the subjects.
        subjects: The outputs or duels.
        texts: The batch of the outputs, if some calls may have been made already; else None.
    """
    answers: dict[JudgeCall, TextOrFailure] = dict(texts.calls if texts is not None else {})
    exchange = Exchange[Subject]({call: read(answer) for call, answer in answers.items()})
    exchange.begin(judges, subjects)
    while wanted := list(dict.fromkeys(exchange.next_calls())):
        made = have_texts(campaign, round_, plan_judge_calls(campaign, wanted))
        new = dict(zip(wanted, made, strict=True))
        answers |= new
        exchange.take({call: read(answer) for call, answer in new.items()})
    stored = {call: answer.id for call, answer in answers.items() if isinstance(answer, StoredText)}
    knowing = [judge.told(exchange.replies) if judge.models else judge for judge in judges]
    for judge in knowing:
        judge.ahead(subjects)
    return [AskedJudge(judge=judge, stored=stored) for judge in knowing]


def read(answer: TextOrFailure) -> Reply:
    """Convert the answer to a call to the form that judges receive."""
    if isinstance(answer, StoredText):
        return JudgeReply(
            text=answer.text, choice_logprobs=answer.choice_logprobs, finish_reason=answer.finish_reason
        )
    return answer


def plan_judge_calls(campaign: CampaignSession, calls: Sequence[JudgeCall]) -> list[PlannedGeneration]:
    """Plan the requests for calls of a campaign's judges."""
    fingerprints, seed = campaign.checked.judge_fingerprints, campaign.record.seed
    rules = campaign.checked.text_rules
    return [plan_judge_call(fingerprints, each, seed, rules=rules) for each in calls]


def plan_judge_call(
    fingerprints: Mapping[str, str], call: JudgeCall, seed: int, *, rules: int
) -> PlannedGeneration:
    """Plan the request for one call, with its storage key.

    Args:
        fingerprints: Weight fingerprint of each judge model, by name.
        call: A call of a judge.
        seed: Seed of the campaign.
        rules: Version of the campaign's rules.
    """
    return plan_text(
        call.model,
        fingerprints[call.model.name],
        Asked(prompt=call.prompt),
        call.sampling,
        seed=seed,
        rules=rules,
        replicate=call.replicate,
        drawn=call.seed,
    )
