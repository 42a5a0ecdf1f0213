"""Checks that stored replies are to what their judges would ask: each judge is made and asked again."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from winnow.storage.admin.recorded_comparisons import RecordedJudgment, RecordedText
from winnow.storage.records.values import CampaignRecord
from winnow.storage.text import storable
from winnow.tasks.campaign.missing_texts import PlannedGeneration
from winnow.tasks.campaign.stored_values import stored_spec
from winnow.tasks.candidates.text_rules import rules_of
from winnow.tasks.engines.protocol import GenerationFailure
from winnow.tasks.errors import WinnowError
from winnow.tasks.judges.asking.calls import JudgeCall, JudgeReply, Reply
from winnow.tasks.judges.pairwise.protocol import Duel, JudgmentCall, PairJudge
from winnow.tasks.judges.pairwise.registry import create_pair_judge, pair_judge_code
from winnow.tasks.judges.protocol import Judge, Sample, calls_of
from winnow.tasks.judges.registry import create_judge, is_plugin, judge_code
from winnow.tasks.objectives.best_duel.judging import plan_call
from winnow.tasks.plugins.allowed_code import NotAllowed
from winnow.tasks.rounds.ask import plan_judge_call
from winnow.tasks.spec.stored_spec import judge_parts, judging_fingerprints

MOST_CALLS = 10_000
"""Calls of a judge for one duel, after which it is held to want more for ever."""


CallT = TypeVar("CallT", JudgmentCall, JudgeCall)


class Unchecked(Exception):
    """The reason why something could not be compared."""


class JudgesAgain:
    """The judges of one campaign, each made once."""

    def __init__(self, campaign: CampaignRecord) -> None:
        self._campaign = campaign
        self._fingerprints = judging_fingerprints(campaign.spec)
        self._of_duels: PairJudge | Unchecked | None = None
        self._of_scores: dict[str | None, Judge | Unchecked] = {}  # by metric, None for the outcome

    def has_metric(self, metric: str) -> bool:
        """Whether the campaign has a metric of this name."""
        return any(each["name"] == metric for each in self._campaign.spec.get("metrics", ()))

    def is_of_plugin(self, metric: str | None) -> bool:
        """Whether a plug-in has a part in the judge of a metric, or of the outcome."""
        of_metrics = {each["name"]: each["judge"] for each in self._campaign.spec.get("metrics") or ()}
        judge = self._campaign.spec["judge"] if metric is None else of_metrics.get(metric)
        return judge is not None and any(is_plugin(each["type"]) for each in judge_parts(judge))

    def wrong_of_duel(self, duel: Duel, judgments: list[RecordedJudgment]) -> Iterator[str]:
        """The faults of the judgments of a duel.

        Raises:
            Unchecked: If the judge cannot be made, is another one by now, or wants what is not stored.
        """
        judge = self._judge_of_duels()
        left = {
            (judgment.judge, judgment.presentation_order, judgment.repeat, judgment.attempt): judgment
            for judgment in judgments
        }
        replies: dict[JudgmentCall, Reply] = {}
        while (wanted := _wanted(lambda: judge.calls(duel, replies))) and len(replies) < MOST_CALLS:
            for call in wanted:
                judgment = left.pop((call.judge, call.presentation_order, call.repeat, call.attempt), None)
                if judgment is None:
                    raise Unchecked(f"judge {call.judge} wants a call that is not stored")
                if (wrong := self._wrong_reply(judgment, call)) is not None:
                    yield wrong
                replies[call] = _as_reply(judgment)
        for judge_id, presentation_order, *_ in left:
            yield f"the judgment of judge {judge_id} ({presentation_order}) is one that it does not ask for"

    def wrong_of_output(
        self, metric: str | None, sample: Sample, left: list[RecordedJudgment]
    ) -> Iterator[str]:
        """The faults of the judgments of one output; its judgments are removed from `left`.

        Raises:
            Unchecked: If the judge cannot be made, is another one by now, or wants what is not stored.
        """
        judge = self._judge_of_scores(metric)
        replies: dict[JudgeCall, Reply] = {}
        while (wanted := _wanted(lambda: calls_of(judge, sample, replies))) and len(replies) < MOST_CALLS:
            for call in wanted:
                alike = [each for each in left if _place(each) == (call.judge, call.repeat, call.attempt)]
                if not alike:
                    raise Unchecked(f"judge {call.judge} wants a call that is not stored")
                judgment = min(alike, key=lambda each: not _answers(each, call))
                left.remove(judgment)
                if (wrong := self._wrong_reply(judgment, call)) is not None:
                    yield wrong
                replies[call] = _as_reply(judgment)

    def _wrong_reply(self, judgment: RecordedJudgment, call: JudgmentCall | JudgeCall) -> str | None:
        if judgment.reply is None:
            return None if judgment.reason else f"the reply of judge {judgment.judge} is not there"
        rules = rules_of(self._campaign.spec)
        if isinstance(call, JudgmentCall):
            planned = plan_call(self._fingerprints, call, rules=rules)
        else:
            planned = plan_judge_call(self._fingerprints, call, self._campaign.seed, rules=rules)
        return mismatch(judgment.reply, planned, f"the reply of judge {judgment.judge}")

    def _judge_of_duels(self) -> PairJudge:
        if self._of_duels is None:
            self._of_duels = self._made_pair_judge()
        if isinstance(self._of_duels, Unchecked):
            raise self._of_duels
        return self._of_duels

    def _judge_of_scores(self, metric: str | None) -> Judge:
        if metric not in self._of_scores:
            self._of_scores[metric] = self._made_judge(metric)
        judge = self._of_scores[metric]
        if isinstance(judge, Unchecked):
            raise judge
        return judge

    def _made_pair_judge(self) -> PairJudge | Unchecked:
        try:
            spec = stored_spec(self._campaign, storage="").judge
            judge = create_pair_judge(spec.type, **spec.params)
        except (WinnowError, KeyError, ValueError) as error:
            return Unchecked(f"its judge cannot be made: {said(error)}")
        identity = {**(self._campaign.spec.get("judge_identity") or {})}
        identity.pop("fingerprints", None)
        if identity != {"code": pair_judge_code(spec.type), **judge.identity}:
            return Unchecked("its judge is not the one any more that the campaign began with")
        return judge

    def _made_judge(self, metric: str | None) -> Judge | Unchecked:
        known, whose = self._campaign.spec, "its judge" if metric is None else f"the judge of metric {metric}"
        begun_with = (known.get("judge_identity") or {}).get("code")
        if metric is not None:
            begun_with = known.get("metric_code", {}).get(metric)
        try:
            whole = stored_spec(self._campaign, storage="")
            of_metrics = {each.name: each.judge for each in whole.metrics}
            spec = whole.judge if metric is None else of_metrics[metric]
            judge, code = create_judge(spec.type, **spec.params), judge_code(spec.type, **spec.params)
        except (WinnowError, KeyError, ValueError) as error:
            return Unchecked(f"{whose} cannot be made: {said(error)}")
        if begun_with != code:
            return Unchecked(f"{whose} is not the one any more that the campaign began with")
        return judge


def mismatch(text: RecordedText, planned: PlannedGeneration, which: str) -> str | None:
    """The way in which a stored text is not the answer to a request; None where it is."""
    if text.prompt != storable(planned.request.prompt):
        return f"{which} answers another prompt"
    if text.request_key != planned.key:
        return f"{which} was made by another model, sampling or seed"
    return None


def said(error: Exception) -> str:
    """An error as a part of a sentence."""
    return f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else str(error)


def _wanted(calls: Callable[[], Sequence[CallT]]) -> Sequence[CallT]:
    """The calls that a judge wants, where no code has to run that nobody has allowed."""
    try:
        return calls()
    except NotAllowed as error:
        raise Unchecked(f"to know what its judge asks, {error}") from error


def _as_reply(judgment: RecordedJudgment) -> Reply:
    if (reply := judgment.reply) is None:
        return GenerationFailure(reason=str(judgment.reason), detail="")
    return JudgeReply(
        text=reply.text, choice_logprobs=reply.choice_logprobs, finish_reason=reply.finish_reason
    )


def _place(judgment: RecordedJudgment) -> tuple[str, int, int]:
    return judgment.judge, judgment.repeat, judgment.attempt


def _answers(judgment: RecordedJudgment, call: JudgeCall) -> bool:
    """Whether a stored reply was given to this prompt: parts of a judge may ask the same model."""
    return judgment.reply is not None and judgment.reply.prompt == storable(call.prompt)
