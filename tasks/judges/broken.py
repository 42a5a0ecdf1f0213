"""A judge that fails on everything ends the campaign: what is bought with a broken judge is wasted.

One that fails on some outputs leaves those unscored, and one that fails on all outputs of a candidate costs
that candidate its place, as `fail_on_error` says. A judge is held to be broken once it has failed so often in
a row that no candidate's outputs explain it. The round in which that shows is not recorded, so that who goes
on judges its texts again and makes none a second time.
"""

from collections.abc import Sequence
from itertools import takewhile

from winnow.storage.queries import unscored as unscored_views
from winnow.storage.records.values import NewComparison
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.errors import WinnowError
from winnow.tasks.judges.scores import JUDGE_FAILED
from winnow.tasks.plugins.entry_points import remedy

MOST_IN_A_ROW = 10
"""Failures in a row from which on a judge is held to be broken, if they are not of one candidate."""


class JudgeBroken(WinnowError):
    """A judge failed on everything that it was given of late."""


def require_sound_judge(campaign: CampaignSession, comparisons: Sequence[NewComparison]) -> None:
    """Refuse to record a round whose judge, a plug-in, fails again and again.

    Args:
        campaign: Whose rounds before this one count as well.
        comparisons: Of the round, in planned order.

    Raises:
        JudgeBroken: With what was raised last.
    """
    judged = [each for each in reversed(comparisons) if each.is_answered]
    failed = list(takewhile(lambda each: each.reason == JUDGE_FAILED, judged))
    if not failed:
        return
    involved = [{each.candidate_a_id, each.candidate_b_id or each.candidate_a_id} for each in failed]
    if len(failed) == len(judged):
        with campaign.database.reading() as session:
            before = unscored_views.latest(session, campaign.record.id, JUDGE_FAILED)
        involved += [{a, b or a} for a, b in before]
    in_all = set.intersection(*involved)
    if len(involved) < MOST_IN_A_ROW or (in_all and in_all != set(campaign.candidate_ids)):
        return
    raise JudgeBroken(
        f"{failed[0].detail}; so it did on each of the last {len(involved)} comparisons, and this round is "
        f"not recorded; {remedy()}"
    )
