"""Adapters from judges of packages and programs to `Judge`.

An exception of a plug-in becomes a verdict without a score.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, TypeVar

from winnow.tasks.engines.protocol import ModelRef, Sampling
from winnow.tasks.errors import WinnowError
from winnow.tasks.judges.asking.calls import JudgeCall, ReadReply, Replies, Reply
from winnow.tasks.judges.pairwise.protocol import Judgment, JudgmentCall, PairJudge, PairVerdict
from winnow.tasks.judges.protocol import (
    Duel,
    InvalidScore,
    Judge,
    Sample,
    Verdict,
    checked_kind,
    checked_score,
    verdict_of,
)
from winnow.tasks.plugins.entry_points import Plugin, PluginFailed, calling, parameters_of


class PluginJudge(Judge[Sample]):
    """Adapt a plug-in's judge of outputs, whose members except `judge` are optional.

    Args:
        plugin: The judge's plug-in.
        inner: The judge; its models are read once.
        replies: Replies of models to its calls.

    Raises:
        PluginFailed: If the judge has no method `judge`, or its models are invalid.
    """

    def __init__(self, plugin: Plugin, inner: object, replies: Replies | None = None) -> None:
        self._plugin, self._inner, self._replies = plugin, inner, replies or {}
        with calling(plugin):
            self._judge: Callable[[Sample], Verdict] = inner.judge  # type: ignore[attr-defined]
            self._models = _models(getattr(inner, "models", ()))

    @property
    def models(self) -> Sequence[ModelRef]:
        """See `Judge`."""
        return self._models

    def try_out(self) -> None:
        """See `Judge`."""
        if (method := getattr(self._inner, "try_out", None)) is not None:
            with calling(self._plugin, WinnowError):
                method()

    def ahead(self, subjects: Sequence[Sample]) -> None:
        """See `Judge`."""
        if (method := getattr(self._inner, "ahead", None)) is not None:
            with suppress(PluginFailed), calling(self._plugin):
                method(subjects)

    def calls(self, subject: Sample, replies: Replies) -> Sequence[JudgeCall]:
        """See `Judge`; empty if the plug-in fails, which `judge` then reports."""
        try:
            return self._calls(subject, replies)
        except PluginFailed:
            return ()

    def told(self, replies: Replies) -> "PluginJudge":
        """See `Judge`.

        Raises:
            PluginFailed: If the plug-in raises any exception.
        """
        method = getattr(self._inner, "told", None)
        with calling(self._plugin):
            return PluginJudge(self._plugin, self._inner if method is None else method(replies), replies)

    def judge(self, subject: Sample, /) -> Verdict:
        """See `Judge`.

        Raises:
            InvalidScore: If the plug-in raises it, because a verdict is invalid.
            PluginFailed: If the plug-in raises any other exception.
        """
        asked = self._asked(subject) if self._models else {}
        with calling(self._plugin, InvalidScore):
            verdict = self._judge(subject)
        if not asked or not isinstance(verdict, Verdict) or verdict.replies:
            return verdict
        # The replies behind a verdict are stored with it, even if the plug-in does not list them.
        read = [ReadReply(call=call, score=verdict.score, reason=verdict.reason) for call in asked]
        return replace(verdict, replies=read)

    def _asked(self, sample: Sample) -> Mapping[JudgeCall, Reply]:
        """The calls made for an output, in order, with their replies."""
        known: dict[JudgeCall, Reply] = {}
        while new := [call for call in self._calls(sample, known) if call not in known]:
            if not all(call in self._replies for call in new):
                break
            known |= {call: self._replies[call] for call in new}
        return known

    def _calls(self, sample: Sample, replies: Replies) -> Sequence[JudgeCall]:
        method = getattr(self._inner, "calls", None)
        with calling(self._plugin):
            wanted = () if method is None else method(sample, replies)
            return tuple(_of_models(checked_kind(each, JudgeCall), self._models) for each in wanted)


class PluginPairJudge(Judge[Duel]):
    """Adapt a plug-in's `PairJudge`, which sees only the calls and replies of one duel.

    Args:
        plugin: The judge's plug-in.
        inner: The judge; its models and identity are read once.
        replies: Replies of models to its calls, in any duel.

    Raises:
        PluginFailed: If the judge does not implement `PairJudge`.
    """

    def __init__(self, plugin: Plugin, inner: PairJudge, replies: Replies | None = None) -> None:
        self._plugin, self._inner, self._replies = plugin, inner, replies or {}
        with calling(plugin):
            self._models = _models(inner.models)
            self._identity: Mapping[str, object] = dict(inner.identity)
            self._is_deterministic = bool(inner.is_deterministic)
            self._calls, self._verdict = inner.calls, inner.verdict

    @property
    def models(self) -> Sequence[ModelRef]:
        """See `Judge`."""
        return self._models

    @property
    def identity(self) -> Mapping[str, object]:
        """See `Judge`."""
        return self._identity

    @property
    def is_deterministic(self) -> bool:
        """See `Judge`."""
        return self._is_deterministic

    def calls(self, subject: Duel, replies: Replies) -> Sequence[JudgeCall]:
        """See `Judge`; empty if the plug-in fails, which `judge` then reports."""
        try:
            return self._exchange(subject, replies)[1]
        except PluginFailed:
            return ()

    def told(self, replies: Replies) -> "PluginPairJudge":
        """See `Judge`."""
        return PluginPairJudge(self._plugin, self._inner, replies)

    def judge(self, subject: Duel, /) -> Verdict:
        """See `Judge`; failures of the plug-in become verdicts too."""
        return verdict_of(lambda: self._judged(subject))

    def _judged(self, duel: Duel) -> Verdict:
        known, _ = self._exchange(duel, self._replies)
        with calling(self._plugin, InvalidScore):
            found = checked_kind(self._verdict(duel, known), PairVerdict)
        return Verdict(
            score=found.outcome,
            reason=found.reason,
            answer=found.answer,
            detail=found.detail,
            replies=[_read(judgment, known) for judgment in found.judgments],
        )

    def _exchange(
        self, duel: Duel, replies: Replies
    ) -> tuple[Mapping[JudgmentCall, Reply], Sequence[JudgeCall]]:
        """Calls of a duel with their replies, and the calls that still lack one.

        Raises:
            PluginFailed: If the plug-in raises, or a call is invalid or names a model that is not the
                judge's.
        """
        known: dict[JudgmentCall, Reply] = {}
        while True:
            with calling(self._plugin):
                wanted = [
                    _of_models(checked_kind(each, JudgmentCall), self._models)
                    for each in self._calls(duel, known)
                ]
            new = {each: _judge_call(each) for each in wanted if each not in known}
            missing = [call for call in new.values() if call not in replies]
            if missing or not new:
                return known, missing
            known |= {each: replies[call] for each, call in new.items()}


def _models(given: Iterable[object]) -> Sequence[ModelRef]:
    return tuple(checked_kind(each, ModelRef) for each in given)


CallT = TypeVar("CallT", JudgeCall, JudgmentCall)


def _of_models(call: CallT, models: Sequence[ModelRef]) -> CallT:
    if call.model not in models:
        raise ValueError(f"it calls the model {call.model.name!r}, which is not in its `models`")
    return call


def _judge_call(call: JudgmentCall) -> JudgeCall:
    return JudgeCall(
        judge=call.judge,
        model=call.model,
        prompt=call.prompt,
        sampling=call.sampling,
        seed=call.seed,
        presentation_order=call.presentation_order,
        repeat=call.repeat,
        attempt=call.attempt,
    )


def _read(judgment: Judgment, known: Iterable[JudgmentCall]) -> ReadReply:
    """A judgment with its call; if the judgment has no call, with an empty one."""

    def place(each: Judgment | JudgmentCall) -> tuple[object, ...]:
        return each.judge, each.presentation_order, each.repeat, each.attempt

    made = {place(call): call for call in known}.get(place(judgment)) or JudgmentCall(
        judge=judgment.judge,
        model=ModelRef(name=judgment.judge, provider="", model=""),
        prompt="",
        sampling=Sampling(),
        seed=0,
        presentation_order=judgment.presentation_order,
        repeat=judgment.repeat,
        attempt=judgment.attempt,
    )
    return ReadReply(call=_judge_call(made), score=judgment.verdict, reason=judgment.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionJudge(Judge[Sample]):
    """Score outputs by a function of the output and its targets."""

    function: Callable[..., object]
    """Returns a score in [0, 1], True or False, a `Verdict`, or None if there is no score."""
    params: Mapping[str, object] = field(default_factory=dict)
    """Keyword parameters of the function."""

    def judge(self, sample: Sample) -> Verdict:
        """See `Judge`; if the function returns None, the reason is no_score."""
        found = self.function(sample.output, sample.targets, **self.params)
        if isinstance(found, Verdict):
            return found
        return (
            Verdict.unscored("no_score") if found is None else Verdict(score=checked_score(found, "a score"))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionPairJudge:
    """Compare two answers by a function of both and the targets; uses no model."""

    function: Callable[..., object]
    """Returns the preference for the first answer, in [0, 1], or a `PairVerdict`; None if it has no
    preference."""
    params: Mapping[str, object] = field(default_factory=dict)
    """Keyword parameters of the function."""
    models: ClassVar[tuple[ModelRef, ...]] = ()
    identity: ClassVar[Mapping[str, object]] = MappingProxyType({})
    is_deterministic: ClassVar = False  # a user's function may be random

    def calls(self, duel: Duel, replies: Mapping[JudgmentCall, Reply]) -> tuple[()]:
        """Return no calls, because the verdict needs no model."""
        return ()

    def verdict(self, duel: Duel, replies: Mapping[JudgmentCall, Reply]) -> PairVerdict:
        """The function's verdict; if the function returns None, the reason is no_preference."""
        found = self.function(duel.answer_a, duel.answer_b, duel.targets, **self.params)
        if isinstance(found, PairVerdict):
            return found
        if found is None:
            return PairVerdict(reason="no_preference")
        return PairVerdict(outcome=checked_score(found, "a preference"))


def judge_factory(
    function: Callable[..., object], made: Callable[..., object] = FunctionJudge
) -> Callable[..., object]:
    """Factory for a catalogue that creates judges from a function's keyword parameters."""

    def factory(**params: object) -> object:
        return made(function=function, params=params)

    own = parameters_of(function)
    keywords = [each for each in own if each.kind is inspect.Parameter.KEYWORD_ONLY]
    factory.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    factory.__doc__ = inspect.getdoc(function)
    return factory
