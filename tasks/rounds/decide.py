"""What follows from a round: the algorithm is told, and says what it believes now."""

from collections.abc import Sequence

from winnow.algorithms.decision import Decision
from winnow.algorithms.errors import ImpossibleState
from winnow.storage.records.values import NewComparison, RoundRecord
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.errors import ContradictoryState


def decide_round(
    campaign: CampaignSession, round_: RoundRecord, comparisons: Sequence[NewComparison]
) -> Decision:
    """Tell the selector a round's outcomes, in planned order, and ask what it believes.

    Raises:
        ContradictoryState: If what it believes cannot be true of any scores.
    """
    checked = campaign.checked
    losses = [
        (each.human_loss, each.auto_loss, each.unlabelled_loss, each.unlabelled_missing)
        for each in comparisons
    ]
    names = checked.told_metrics
    metrics = [_values(each, names) for each in comparisons]
    outcomes = checked.outcomes([each.outcome for each in comparisons], losses, metrics)
    campaign.tell(round_, outcomes, sum(each.is_answered for each in comparisons))
    try:
        return campaign.selector.decision()
    except ImpossibleState as error:
        raise ContradictoryState(campaign.record.name, round_.number, str(error)) from error


def _values(comparison: NewComparison, metrics: Sequence[str]) -> list[float | None]:
    """What some metrics say of a comparison, None where there is no value."""
    known = {each.name: each.score for each in comparison.metrics}
    return [known.get(name) for name in metrics]
