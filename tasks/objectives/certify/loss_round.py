"""Steps of a round of losses, on examples with human labels."""

from collections.abc import Sequence

from winnow.storage.records.record_types import NewComparison, RoundRecord
from winnow.tasks.campaign.missing_texts import GenerationBatch
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.objectives.certify.check import Certification
from winnow.tasks.objectives.certify.human_labels import lacks_labels
from winnow.tasks.objectives.certify.objective import Certify, needed_by_losses
from winnow.tasks.objectives.certify.scoring import answers_of, generate_answers, score_losses
from winnow.tasks.objectives.protocol import RoundSteps


class LossSteps(RoundSteps):
    """Steps of a round with outputs of candidates, baseline and autoevaluator, and losses by labels."""

    counts_failures = True

    def lacks_labels(self, campaign: CampaignSession, round_: RoundRecord) -> bool:
        """See `RoundSteps`."""
        return lacks_labels(campaign, round_)

    def generate(self, campaign: CampaignSession, round_: RoundRecord) -> GenerationBatch:
        """See `RoundSteps`."""
        return generate_answers(campaign, _certification(campaign.checked), round_)

    def examples_of(self, campaign: CampaignSession, round_: RoundRecord) -> list[int]:
        """See `RoundSteps`; includes outputs of a baseline."""
        return [example for _, example in answers_of(_certification(campaign.checked), round_)]

    def judge(
        self,
        campaign: CampaignSession,
        checked: ResolvedCampaign,
        round_: RoundRecord,
        texts: GenerationBatch,
    ) -> list[NewComparison]:
        """See `RoundSteps`."""
        assert isinstance(checked, Certify)
        return score_losses(campaign, checked.certification, checked.judge, round_, texts)

    def models_needed(self, checked: ResolvedCampaign) -> Sequence[tuple[str, ModelRef]]:
        """See `RoundSteps`."""
        assert isinstance(checked, Certify)
        return needed_by_losses(checked)


def _certification(checked: ResolvedCampaign) -> Certification:
    assert isinstance(checked, Certify)
    return checked.certification
