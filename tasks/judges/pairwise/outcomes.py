"""The verdict of any pair judge, as far as it can be stored."""

from collections.abc import Mapping

from winnow.tasks.judges.pairwise.protocol import Duel, JudgmentCall, PairJudge, PairVerdict, Reply
from winnow.tasks.judges.scores import INVALID_SCORE, JUDGE_FAILED, InvalidScore, checked_kind
from winnow.tasks.plugins.entry_points import PluginFailed


def verdict_of(judge: PairJudge, duel: Duel, replies: Mapping[JudgmentCall, Reply]) -> PairVerdict:
    """The judge's verdict; unscored where it is none or something is raised, as a plug-in's may be."""
    try:
        return checked_kind(judge.verdict(duel, replies), PairVerdict)
    except InvalidScore as error:
        return PairVerdict(reason=INVALID_SCORE, detail=str(error))
    except PluginFailed as failed:
        return PairVerdict(reason=JUDGE_FAILED, detail=failed.what)
