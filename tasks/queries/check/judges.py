"""Check that stored replies match the judges' calls: each judge is created again."""

from collections.abc import Iterator, Sequence
from typing import Never, cast

from winnow.storage.admin.recorded_comparisons import RecordedJudgment, RecordedText
from winnow.storage.objectives import traits_of
from winnow.storage.records.record_types import CampaignRecord
from winnow.storage.text import storable
from winnow.tasks.campaign.missing_texts import PlannedGeneration
from winnow.tasks.campaign.stored_values import stored_spec
from winnow.tasks.candidates.text_rules import rules_of
from winnow.tasks.engines.protocol import GenerationFailure
from winnow.tasks.errors import WinnowError
from winnow.tasks.judges.asking.calls import JudgeCall, JudgeReply, Reply
from winnow.tasks.judges.asking.exchange import Exchange
from winnow.tasks.judges.protocol import Duel, Judge, Sample
from winnow.tasks.judges.registry import (
    create_judge,
    create_pair_judge,
    judge_code,
    pair_judge_code,
)
from winnow.tasks.plugins.allowed_code import NotAllowed
from winnow.tasks.rounds.judge_calls import plan_judge_call
from winnow.tasks.spec.judge_tree import judge_tree, judging_fingerprints

MOST_CALLS = 10_000
"""Maximum number of calls of a judge for one duel, after which it is assumed to be endless."""


class Unchecked(Exception):
    """Why something could not be checked."""


class JudgesAgain:
    """The judges of one campaign, each created once."""

    def __init__(self, campaign: CampaignRecord) -> None:
        self._campaign = campaign
        self._fingerprints = judging_fingerprints(campaign.spec)
        self._made: dict[str | None, Judge[Never] | Unchecked] = {}  # by metric, None for the outcome

    def has_metric(self, metric: str) -> bool:
        """Whether the campaign has a metric of this name."""
        return any(each["name"] == metric for each in self._campaign.spec.get("metrics", ()))

    def is_of_plugin(self, metric: str | None) -> bool:
        """Whether a plug-in is part of the judge of a metric, or of the outcome."""
        of_metrics = {each["name"]: each["judge"] for each in self._campaign.spec.get("metrics") or ()}
        judge = self._campaign.spec["judge"] if metric is None else of_metrics.get(metric)
        return judge is not None and any(each.is_plugin for each in judge_tree(judge).walk())

    def wrong_of(
        self, metric: str | None, subject: Sample | Duel, left: list[RecordedJudgment]
    ) -> Iterator[str]:
        """The faults of the judgments of one output or duel; its judgments are removed from `left`.

        Raises:
            Unchecked: If the judge cannot be created, has changed, or needs calls that are not stored.
        """
        judge = cast("Judge[Sample | Duel]", self._judge_of(metric))  # it is shown what it judges
        exchange = Exchange[Sample | Duel]({})
        exchange.begin([judge], [subject])
        while (wanted := _wanted(exchange)) and len(exchange.replies) < MOST_CALLS:
            for call in wanted:
                alike = [each for each in left if _place(each) == _place(call)]
                if not alike:
                    raise Unchecked(f"judge {call.judge} makes a call that is not stored")
                judgment = min(alike, key=lambda each: not _answers(each, call))
                left.remove(judgment)
                if (wrong := self._wrong_reply(judgment, call)) is not None:
                    yield wrong
                exchange.take({call: _as_reply(judgment)})

    def _wrong_reply(self, judgment: RecordedJudgment, call: JudgeCall) -> str | None:
        if judgment.reply is None:
            return None if judgment.reason else f"the reply of judge {judgment.judge} is not there"
        rules = rules_of(self._campaign.spec)
        planned = plan_judge_call(self._fingerprints, call, self._campaign.seed, rules=rules)
        return mismatch(judgment.reply, planned, f"the reply of judge {judgment.judge}")

    def _judge_of(self, metric: str | None) -> Judge[Never]:
        if metric not in self._made:
            self._made[metric] = self._made_again(metric)
        judge = self._made[metric]
        if isinstance(judge, Unchecked):
            raise judge
        return judge

    def _made_again(self, metric: str | None) -> Judge[Never] | Unchecked:
        known, whose = self._campaign.spec, "its judge" if metric is None else f"the judge of metric {metric}"
        begun_with = dict(known.get("judge_identity") or {})
        begun_with.pop("fingerprints", None)
        if metric is not None:
            begun_with = {"code": known.get("metric_code", {}).get(metric)}
        judge: Judge[Never]
        try:
            whole = stored_spec(self._campaign, storage="")
            of_metrics = {each.name: each.judge for each in whole.metrics}
            spec = whole.judge if metric is None else of_metrics[metric]
            if traits_of(self._campaign.objective).compares_pairs:
                judge, code = create_pair_judge(spec.type, **spec.params), pair_judge_code(spec.type)
            else:
                judge, code = create_judge(spec.type, **spec.params), judge_code(spec.type, **spec.params)
        except (WinnowError, KeyError, ValueError) as error:
            return Unchecked(f"{whose} cannot be made: {said(error)}")
        if begun_with != {"code": code, **judge.identity}:
            return Unchecked(f"{whose} differs from the one that the campaign began with")
        return judge


def mismatch(text: RecordedText, planned: PlannedGeneration, which: str) -> str | None:
    """Difference between a stored output and the answer to a request, in words; None without one."""
    if text.prompt != storable(planned.request.prompt):
        return f"{which} answers another prompt"
    if text.request_key != planned.key:
        return f"{which} was made by another model, sampling or seed"
    return None


def said(error: Exception) -> str:
    """An error as a part of a sentence."""
    return f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else str(error)


def _wanted(exchange: Exchange[Sample | Duel]) -> Sequence[JudgeCall]:
    """The calls that a judge needs, if no code has to run without permission."""
    try:
        return exchange.next_calls()
    except NotAllowed as error:
        raise Unchecked(f"to know what its judge asks, {error}") from error


def _as_reply(judgment: RecordedJudgment) -> Reply:
    if (reply := judgment.reply) is None:
        return GenerationFailure(reason=str(judgment.reason), detail="")
    return JudgeReply(
        text=reply.text, choice_logprobs=reply.choice_logprobs, finish_reason=reply.finish_reason
    )


def _place(judgment: RecordedJudgment | JudgeCall) -> tuple[str, str, int, int]:
    return judgment.judge, judgment.presentation_order, judgment.repeat, judgment.attempt


def _answers(judgment: RecordedJudgment, call: JudgeCall) -> bool:
    """Whether a stored reply belongs to this prompt: parts of a judge may use the same model."""
    return judgment.reply is not None and judgment.reply.prompt == storable(call.prompt)
