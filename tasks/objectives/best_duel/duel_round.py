"""Steps of a round of duels."""

from winnow.storage.records.record_types import NewComparison, RoundRecord
from winnow.tasks.campaign.missing_texts import GenerationBatch
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.objectives.best_duel.judging import judge_duels
from winnow.tasks.objectives.best_duel.objective import BestDuel
from winnow.tasks.objectives.protocol import RoundSteps


class DuelSteps(RoundSteps):
    """Steps of a round in which a judge prefers one of two outputs to each example."""

    def judge(
        self,
        campaign: CampaignSession,
        checked: ResolvedCampaign,
        round_: RoundRecord,
        texts: GenerationBatch,
    ) -> list[NewComparison]:
        """See `RoundSteps`."""
        assert isinstance(checked, BestDuel)
        return judge_duels(campaign, checked.judge, round_, texts)
