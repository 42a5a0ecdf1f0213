"""Judges of other packages and of the program: what they raise becomes an unscored output."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.errors import WinnowError
from winnow.tasks.judges.asking.calls import JudgeCall, ReadReply, Replies, Reply
from winnow.tasks.judges.protocol import (
    InvalidScore,
    Judge,
    Sample,
    Verdict,
    ahead,
    calls_of,
    checked_kind,
    checked_score,
    models_of,
    told,
    try_out,
)
from winnow.tasks.plugins.entry_points import Plugin, PluginFailed, calling, parameters_of


class PluginJudge:
    """Calls a plug-in's judge, whose models are read once.

    Args:
        plugin: The plug-in that the judge is of.
        inner: The judge.
        replies: Replies of models to the calls that it wanted.

    Raises:
        PluginFailed: If it has no method `judge`, or its models are none.
    """

    def __init__(self, plugin: Plugin, inner: Judge, replies: Replies | None = None) -> None:
        self._plugin, self._inner, self._replies = plugin, inner, replies or {}
        with calling(plugin):
            self._judge = inner.judge
            self.models: Sequence[ModelRef] = tuple(checked_kind(each, ModelRef) for each in models_of(inner))

    def try_out(self) -> None:
        """See `tasks.judges.protocol.try_out`."""
        with calling(self._plugin, WinnowError):
            try_out(self._inner)

    def ahead(self, samples: Sequence[Sample]) -> None:
        """See `tasks.judges.protocol.ahead`; verdicts are the same without."""
        with suppress(PluginFailed), calling(self._plugin):
            ahead(self._inner, samples)

    def calls(self, sample: Sample, replies: Replies) -> Sequence[JudgeCall]:
        """See `Judge`; where the plug-in fails there are none, and `judge` then says so."""
        try:
            return self._calls(sample, replies)
        except PluginFailed:
            return ()

    def told(self, replies: Replies) -> "PluginJudge":
        """See `Judge`.

        Raises:
            PluginFailed: If anything is raised.
        """
        with calling(self._plugin):
            return PluginJudge(self._plugin, told(self._inner, replies), replies)

    def judge(self, sample: Sample) -> Verdict:
        """See `Judge`.

        Raises:
            InvalidScore: If a verdict was made of what is no score.
            PluginFailed: If anything else was raised.
        """
        asked = self._asked(sample) if self.models else {}
        with calling(self._plugin, InvalidScore):
            verdict = self._judge(sample)
        if not asked or not isinstance(verdict, Verdict) or verdict.replies:
            return verdict
        # What a verdict rests on is stored with it, whether or not the plug-in says what it read.
        read = [ReadReply(call=call, score=verdict.score, reason=verdict.reason) for call in asked]
        return replace(verdict, replies=read)

    def _asked(self, sample: Sample) -> Mapping[JudgeCall, Reply]:
        """The calls that were made for an output, in their order, with the replies to them."""
        known: dict[JudgeCall, Reply] = {}
        while new := [call for call in self._calls(sample, known) if call not in known]:
            if not all(call in self._replies for call in new):
                break
            known |= {call: self._replies[call] for call in new}
        return known

    def _calls(self, sample: Sample, replies: Replies) -> Sequence[JudgeCall]:
        with calling(self._plugin):
            wanted = tuple(checked_kind(each, JudgeCall) for each in calls_of(self._inner, sample, replies))
            if strange := [each.model.name for each in wanted if each.model not in self.models]:
                raise ValueError(f"it calls the model {strange[0]!r}, which is not one of its models")
            return wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionJudge:
    """Calls a function with an output and its targets."""

    function: Callable[..., object]
    """Returns a score in [0, 1], True or False, None where there is no score, or a `Verdict`."""
    params: Mapping[str, object] = field(default_factory=dict)
    """Parameters that the function is given by name."""

    def judge(self, sample: Sample) -> Verdict:
        """See `Judge`; an output without a score has the reason no_score."""
        found = self.function(sample.output, sample.targets, **self.params)
        if isinstance(found, Verdict):
            return found
        return (
            Verdict.unscored("no_score") if found is None else Verdict(score=checked_score(found, "a score"))
        )


def judge_factory(
    function: Callable[..., object], made: Callable[..., object] = FunctionJudge
) -> Callable[..., object]:
    """Return what builds such judges for a catalogue: it takes the function's keyword parameters."""

    def factory(**params: object) -> object:
        return made(function=function, params=params)

    own = parameters_of(function)
    keywords = [each for each in own if each.kind is inspect.Parameter.KEYWORD_ONLY]
    factory.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    factory.__doc__ = inspect.getdoc(function)
    return factory
