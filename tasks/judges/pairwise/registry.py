"""Pair judges by name.

A package adds pair judges through the entry point group `winnow.pair_judges`: each entry is a callable whose
keyword parameters are typed and which returns a `PairJudge`. A built-in judge cannot be replaced.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.judges.asking.calls import Reply
from winnow.tasks.judges.catalogue import Catalogue, JudgeDescription
from winnow.tasks.judges.pairwise.protocol import Duel, JudgmentCall, PairJudge, PairVerdict
from winnow.tasks.judges.protocol import InvalidScore, checked_kind, checked_score
from winnow.tasks.plugins.entry_points import Plugin, calling


class PluginPairJudge:
    """Calls a plug-in's pair judge, whose models and identity are read once.

    Args:
        plugin: The plug-in that the judge is of.
        inner: The judge.

    Raises:
        PluginFailed: If it is not what a `PairJudge` is.
    """

    def __init__(self, plugin: Plugin, inner: PairJudge) -> None:
        self._plugin = plugin
        with calling(plugin):
            self.models: Sequence[ModelRef] = tuple(checked_kind(each, ModelRef) for each in inner.models)
            self.identity: Mapping[str, object] = dict(inner.identity)
            self.is_deterministic = bool(inner.is_deterministic)
            self._calls, self._verdict = inner.calls, inner.verdict

    def calls(self, duel: Duel, replies: Mapping[JudgmentCall, Reply]) -> Sequence[JudgmentCall]:
        """See `PairJudge`.

        Raises:
            PluginFailed: If anything is raised, or a call is none or of a model that is not the judge's.
        """
        with calling(self._plugin):
            wanted = tuple(checked_kind(each, JudgmentCall) for each in self._calls(duel, replies))
            if strange := [each.model.name for each in wanted if each.model not in self.models]:
                raise ValueError(f"it calls the model {strange[0]!r}, which is not one of its models")
            return wanted

    def verdict(self, duel: Duel, replies: Mapping[JudgmentCall, Reply]) -> PairVerdict:
        """See `PairJudge`.

        Raises:
            InvalidScore: If a verdict was made of what is no outcome.
            PluginFailed: If anything else was raised.
        """
        with calling(self._plugin, InvalidScore):
            return self._verdict(duel, replies)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionPairJudge:
    """Calls a function with two answers and the targets of their example; it asks no model."""

    function: Callable[..., object]
    """Returns how far the first answer is preferred, in [0, 1], None where that cannot be told, or a
    `PairVerdict`."""
    params: Mapping[str, object] = field(default_factory=dict)
    """Parameters that the function is given by name."""
    models: ClassVar[tuple[ModelRef, ...]] = ()
    identity: ClassVar[Mapping[str, object]] = MappingProxyType({})
    is_deterministic: ClassVar = False  # nobody knows

    def calls(self, duel: Duel, replies: Mapping[JudgmentCall, Reply]) -> tuple[()]:
        """None: the verdict is always ready."""
        return ()

    def verdict(self, duel: Duel, replies: Mapping[JudgmentCall, Reply]) -> PairVerdict:
        """The function's verdict; a duel without a preference has the reason no_preference."""
        found = self.function(duel.answer_a, duel.answer_b, duel.targets, **self.params)
        if isinstance(found, PairVerdict):
            return found
        if found is None:
            return PairVerdict(reason="no_preference")
        return PairVerdict(outcome=checked_score(found, "a preference"))


GROUP = "winnow.pair_judges"

BUILT_IN = {
    "human": "winnow.tasks.judges.pairwise.human:HumanPairJudge",
    "llm": "winnow.tasks.judges.pairwise.llm_params:llm_judge",
    "rules": "winnow.tasks.judges.pairwise.rules:rules_judge",
}
"""Name -> "module:class"."""

_CATALOGUE = Catalogue("pair judge", group=GROUP, guard=PluginPairJudge, built_in=BUILT_IN)


def pair_judge_names() -> tuple[str, ...]:
    """Every pair judge there is, built in and installed, in alphabetical order; none is imported."""
    return _CATALOGUE.names()


def describe(name: str) -> JudgeDescription:
    """A pair judge's summary and parameters.

    Raises:
        JudgeError: If there is no such judge or it cannot be imported.
    """
    return _CATALOGUE.describe(name)


def pair_judge_code(type: str, /) -> JsonObject:
    """The code of this pair judge, as far as verdicts depend on it, as JSON values.

    Raises:
        JudgeError: If there is no such judge or it cannot be imported.
    """
    return _CATALOGUE.code(type, {})


def create_pair_judge(type: str, /, **params: object) -> PairJudge:
    """The pair judge of this name with these parameters.

    Args:
        type: One of `pair_judge_names()`.
        params: The parameters that `describe(type)` lists.

    Raises:
        SpecError: If the name, a parameter, a value or a file named by one is not one that is accepted.
    """
    judge: PairJudge = _CATALOGUE.create(type, params)
    return judge
