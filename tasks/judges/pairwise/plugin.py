"""A pair judge of another package: what it raises becomes an unscored duel, as what it returns may."""

from collections.abc import Mapping, Sequence

from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.judges.pairwise.protocol import Duel, JudgmentCall, PairJudge, PairVerdict, Reply
from winnow.tasks.judges.scores import InvalidScore, checked_kind
from winnow.tasks.plugins.entry_points import Plugin, calling


class PluginPairJudge:
    """Calls a plug-in's pair judge, whose models and identity are read once.

    Args:
        plugin: Whose it is.
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
