"""What follows from a round: the algorithm is told, and says what it believes now."""

from collections.abc import Sequence

from algorithms.decision import Decision
from storage.records import NewComparison, RoundRecord
from tasks.running import RunningCampaign


def decide_round(
    campaign: RunningCampaign, round_: RoundRecord, comparisons: Sequence[NewComparison]
) -> Decision:
    """Tell the selector a round's outcomes, in planned order, and ask what it believes."""
    checked = campaign.checked
    losses = [(each.human_loss, each.auto_loss, each.unlabelled_loss) for each in comparisons]
    outcomes = checked.outcomes([each.outcome for each in comparisons], losses)
    campaign.tell(round_, outcomes, sum(each.is_answered for each in comparisons))
    return campaign.selector.decision()
