"""What follows from a round: the algorithm is told, and says what it believes now."""

from collections.abc import Sequence

import numpy as np

from algorithms.protocols import Batch, Decision
from storage.records import NewComparison, RoundRecord
from tasks.running import RunningCampaign, as_scores


def decide_round(
    campaign: RunningCampaign, round_: RoundRecord, comparisons: Sequence[NewComparison]
) -> Decision:
    """Tell the selector a round's outcomes, in planned order, and ask what it believes."""
    batch = Batch(arms=np.array(round_.arms), examples=np.array(round_.examples))
    campaign.selector.tell(batch, as_scores([comparison.outcome for comparison in comparisons]))
    return campaign.selector.decision()
