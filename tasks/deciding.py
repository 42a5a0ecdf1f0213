"""What follows from a round: the algorithm is told, and says what it believes now."""

from collections.abc import Sequence

import numpy as np

from algorithms.decision import Decision
from algorithms.errors import ImpossibleState
from algorithms.protocols import Batch
from storage.records import NewComparison, RoundRecord
from tasks.errors import ContradictoryState
from tasks.running import RunningCampaign


def decide_round(
    campaign: RunningCampaign, round_: RoundRecord, comparisons: Sequence[NewComparison]
) -> Decision:
    """Tell the selector a round's outcomes, in planned order, and ask what it believes.

    Raises:
        ContradictoryState: If what it believes cannot be true of any scores.
    """
    checked = campaign.checked
    losses = [(each.human_loss, each.auto_loss, each.unlabelled_loss) for each in comparisons]
    outcomes = checked.outcomes([each.outcome for each in comparisons], losses)
    batch = Batch(arms=np.array(round_.arms), examples=np.array(round_.examples))
    campaign.selector.tell(batch, outcomes)
    try:
        return campaign.selector.decision()
    except ImpossibleState as error:
        raise ContradictoryState(campaign.record.name, round_.number, str(error)) from error
