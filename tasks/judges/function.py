"""A judge that is a function of a program."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from winnow.tasks.judges.protocol import Judge, Verdict
from winnow.tasks.judges.scores import checked_score


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionJudge:
    """Calls a function with an output and its targets."""

    function: Callable[..., object]
    """Returns a score in [0, 1], True or False, None where there is no score, or a `Verdict`."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Given to it by name."""

    def judge(self, output: str, targets: Sequence[str]) -> Verdict:
        """See `Judge`; an output without a score has the reason no_score."""
        found = self.function(output, targets, **self.params)
        if isinstance(found, Verdict):
            return found
        return (
            Verdict.unscored("no_score") if found is None else Verdict(score=checked_score(found, "a score"))
        )


def judge_factory(function: Callable[..., object]) -> Callable[..., Judge]:
    """Return what builds such judges for a catalogue: it takes the function's keyword parameters."""

    def factory(**params: Any) -> Judge:  # noqa: ANN401 -- of whatever types the function takes
        return FunctionJudge(function=function, params=params)

    own = inspect.signature(function, eval_str=True).parameters.values()
    keywords = [each for each in own if each.kind is inspect.Parameter.KEYWORD_ONLY]
    factory.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    factory.__doc__ = inspect.getdoc(function)
    return factory
