"""A judge of another package: what it raises becomes an unscored output, as what it returns may."""

from winnow.tasks.judges.protocol import Judge, Sample, Verdict
from winnow.tasks.judges.scores import InvalidScore
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
