"""What follows from a round: the algorithm is told, and says what it believes now."""

from collections.abc import Sequence

import numpy as np

from algorithms.protocols import Batch, Decision, FloatArray
from storage.records import NewComparison, RoundRecord
from tasks.running import RunningCampaign, as_losses, as_scores


def decide_round(
    campaign: RunningCampaign, round_: RoundRecord, comparisons: Sequence[NewComparison]
) -> Decision:
    """Tell the selector a round's outcomes, in planned order, and ask what it believes."""
    batch = Batch(arms=np.array(round_.arms), examples=np.array(round_.examples))
    campaign.selector.tell(batch, _outcomes(campaign, comparisons))
    return campaign.selector.decision()


def _outcomes(campaign: RunningCampaign, comparisons: Sequence[NewComparison]) -> FloatArray:
    if campaign.checked.certification is None:
        return as_scores([each.outcome for each in comparisons])
    return as_losses([(each.human_loss, each.auto_loss, each.unlabelled_loss) for each in comparisons])
