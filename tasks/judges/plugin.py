"""Judges of other packages and of the program: what they raise becomes an unscored output."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from winnow.tasks.judges.protocol import InvalidScore, Judge, Sample, Verdict, checked_score
from winnow.tasks.plugins.entry_points import Plugin, calling


class PluginJudge:
    """Calls a plug-in's judge.

    Args:
        plugin: Whose it is.
        inner: The judge.

    Raises:
        PluginFailed: If it has no method `judge`.
    """

    def __init__(self, plugin: Plugin, inner: Judge) -> None:
        self._plugin = plugin
        with calling(plugin):
            self._judge = inner.judge

    def judge(self, sample: Sample) -> Verdict:
        """See `Judge`.

        Raises:
            InvalidScore: If a verdict was made of what is no score.
            PluginFailed: If anything else was raised.
        """
        with calling(self._plugin, InvalidScore):
            return self._judge(sample)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionJudge:
    """Calls a function with an output and its targets."""

    function: Callable[..., object]
    """Returns a score in [0, 1], True or False, None where there is no score, or a `Verdict`."""
    params: Mapping[str, object] = field(default_factory=dict)
    """Given to it by name."""

    def judge(self, sample: Sample) -> Verdict:
        """See `Judge`; an output without a score has the reason no_score."""
        found = self.function(sample.output, sample.targets, **self.params)
        if isinstance(found, Verdict):
            return found
        return (
            Verdict.unscored("no_score") if found is None else Verdict(score=checked_score(found, "a score"))
        )


def judge_factory(function: Callable[..., object]) -> Callable[..., Judge]:
    """Return what builds such judges for a catalogue: it takes the function's keyword parameters."""

    def factory(**params: object) -> Judge:
        return FunctionJudge(function=function, params=params)

    own = inspect.signature(function, eval_str=True).parameters.values()
    keywords = [each for each in own if each.kind is inspect.Parameter.KEYWORD_ONLY]
    factory.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    factory.__doc__ = inspect.getdoc(function)
    return factory
