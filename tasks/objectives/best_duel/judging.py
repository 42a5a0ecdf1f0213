"""Judging the duels of a round: each pair of answers by a pair judge, whose model calls are made here.

The calls of all duels are made together, as often as the judge wants more of them. Every reply is stored as
a generation, in groups, before the next calls are planned, so that a resumed round makes none again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from winnow.storage.records.values import NewComparison, NewJudgment, RoundRecord, StoredText
from winnow.storage.text import storable
from winnow.tasks.campaign.missing_texts import GenerationBatch, PlannedGeneration
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.candidates.cache_keys import generation_key, request_content, request_seed
from winnow.tasks.candidates.text_rules import settled
from winnow.tasks.data.datasets import Example
from winnow.tasks.engines.protocol import GenerationFailure, Request
from winnow.tasks.judges.asking.calls import Reply
from winnow.tasks.judges.pairwise.protocol import (
    Duel,
    Judgment,
    JudgmentCall,
    PairJudge,
    PairVerdict,
    verdict_of,
)
from winnow.tasks.judges.protocol import JUDGE_FAILED
from winnow.tasks.plugins.entry_points import PluginFailed
from winnow.tasks.rounds.ask import read
from winnow.tasks.rounds.generate import have_texts


@dataclass(slots=True)
class _Match:
    """A duel whose two answers are there, and the replies to its calls so far."""

    duel: Duel
    replies: dict[JudgmentCall, Reply] = field(default_factory=dict)
    stored: dict[JudgmentCall, int] = field(default_factory=dict)
    """Ids of the generations that replies were read from."""
    failed: PairVerdict | None = None
    """The verdict, which is a reason, where the judge could not say which calls it wants."""

    def wanted(self, judge: PairJudge) -> Sequence[JudgmentCall]:
        """The calls that the judge still wants; none once it has failed."""
        if self.failed is not None:
            return ()
        try:
            return judge.calls(self.duel, self.replies)
        except PluginFailed as failed:
            self.failed = PairVerdict(reason=JUDGE_FAILED, detail=failed.what)
            return ()

    def verdict(self, judge: PairJudge) -> PairVerdict:
        """The judge's verdict, once it wants nothing more."""
        return self.failed or verdict_of(judge, self.duel, self.replies)


def judge_duels(
    campaign: CampaignSession, judge: PairJudge, round_: RoundRecord, texts: GenerationBatch
) -> list[NewComparison]:
    """One comparison per planned duel, in planned order; raises like `judge_round`."""
    sides = [(texts[2 * position], texts[2 * position + 1]) for position in range(len(round_.examples))]
    matches = {position: _Match(duel) for position, duel in round_duels(campaign, round_, texts).items()}
    _make_calls(campaign, judge, round_, matches)
    return [
        _comparison(campaign, judge, round_, position, sides[position], matches.get(position))
        for position in range(len(round_.examples))
    ]


def round_duels(campaign: CampaignSession, round_: RoundRecord, texts: GenerationBatch) -> dict[int, Duel]:
    """The duels of a round whose two answers are there, by their position."""
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
    """Two answers to an example, as a judge is shown them."""
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
    """The seed of one duel, from the campaign's and its place; in [0, 2**31)."""
    return request_seed(campaign_seed, {"round": round_number, "position": position})


def _make_calls(
    campaign: CampaignSession, judge: PairJudge, round_: RoundRecord, matches: Mapping[int, _Match]
) -> None:
    """Give every match the replies that the judge wants."""
    while wanted := [(match, call) for match in matches.values() for call in match.wanted(judge)]:
        fingerprints, rules = campaign.checked.judge_fingerprints, campaign.checked.text_rules
        planned = [plan_call(fingerprints, call, rules=rules) for _, call in wanted]
        answers = have_texts(campaign, round_, planned)
        for place, (match, call) in enumerate(wanted):
            answer = answers[place]
            if isinstance(answer, StoredText):
                match.stored[call] = answer.id
            match.replies[call] = read(answer)


def plan_call(fingerprints: Mapping[str, str], call: JudgmentCall, *, rules: int) -> PlannedGeneration:
    """The request of one call, and the key it is stored under.

    Args:
        fingerprints: Fingerprints of the weights of each model that judges, by its name.
        call: A call of a pair judge.
        rules: The version of the campaign's rules; see `tasks.candidates.text_rules`.
    """
    fingerprint = fingerprints[call.model.name]
    sampling = settled(call.sampling, call.model, call.prompt, rules=rules)
    content = request_content(call.model, fingerprint, call.prompt, sampling, 0)
    return PlannedGeneration(
        key=generation_key(content, call.seed),
        model=call.model,
        fingerprint=fingerprint,
        request=Request(prompt=call.prompt, sampling=sampling, seed=call.seed),
    )


def _comparison(
    campaign: CampaignSession,
    judge: PairJudge,
    round_: RoundRecord,
    position: int,
    sides: tuple[StoredText | GenerationFailure, StoredText | GenerationFailure],
    match: _Match | None,
) -> NewComparison:
    arms = round_.arms[position]
    verdict = _unanswered(sides) if match is None else match.verdict(judge)
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
        outcome=verdict.outcome,
        reason=verdict.reason,
        detail=storable("; ".join(details)) if details else None,
        judgments=[] if match is None else [_new_judgment(judgment, match) for judgment in verdict.judgments],
    )


def _unanswered(sides: tuple[StoredText | GenerationFailure, ...]) -> PairVerdict:
    """A duel that lacks an answer: not lost by the side without one, since that may be anybody's fault."""
    return PairVerdict(reason=next(side.reason for side in sides if isinstance(side, GenerationFailure)))


def _new_judgment(judgment: Judgment, match: _Match) -> NewJudgment:
    played = (judgment.judge, judgment.presentation_order, judgment.repeat, judgment.attempt)
    ids = {
        (call.judge, call.presentation_order, call.repeat, call.attempt): id_
        for call, id_ in match.stored.items()
    }
    return NewJudgment(
        judge=judgment.judge,
        presentation_order=judgment.presentation_order,
        repeat=judgment.repeat,
        attempt=judgment.attempt,
        generation_id=ids.get(played),
        verdict=judgment.verdict,
        reason=judgment.reason,
    )
